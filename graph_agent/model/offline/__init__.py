"""The command mode: words in, tool calls out, and no model."""
