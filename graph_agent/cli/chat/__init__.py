"""The chat: its loop, its input line, its slash commands and what it shows."""
