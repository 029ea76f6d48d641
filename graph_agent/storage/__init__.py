"""Durable storage on one SQLite file: checkpoints, journal, decisions, locks, blobs.

Importing the package imports nothing else: short-lived commands use single modules without the graph framework.
"""

__all__: list[str] = []
