"""A terminal coding agent whose every tool call is a durable record."""

import os

__all__: list[str] = []

# The graph framework reads this once, when it is first imported; without it a crafted checkpoint runs code.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"
