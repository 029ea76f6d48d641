"""Whether a queued message is handed to the model within the running turn: 1."""

from graph_agent.storage.sqlite.migrations import Migration

__all__ = ["MIGRATION"]

MIGRATION = Migration(
    "urgent_messages",
    """
ALTER TABLE inbox ADD COLUMN urgent INTEGER NOT NULL DEFAULT 0;
""",
)
