"""A thread that this process has open: send messages, decide, resume, stop, rewind."""
