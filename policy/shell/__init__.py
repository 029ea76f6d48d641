"""Reading shell commands: words, options, programs and what they do."""
