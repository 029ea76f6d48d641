"""The Agent Client Protocol: the agent in an editor. See `server.py` for where to begin to read."""
