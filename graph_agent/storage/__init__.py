"""Durable storage: checkpoints, journal, decisions, locks and blobs.

Importing the package imports nothing else: short-lived commands use single modules without LangGraph.
"""

__all__: list[str] = []
