"""A thread held by one process: opened, sent to, answered, stopped. Knows no terminal."""
