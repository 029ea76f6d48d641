"""The usage of a thread at its head, and the model that was chosen for it, both as JSON."""

from graph_agent.storage.sqlite.migrations import Migration

__all__ = ["MIGRATION"]

MIGRATION = Migration(
    "usage_and_model",
    """
ALTER TABLE threads ADD COLUMN usage TEXT;
ALTER TABLE threads ADD COLUMN asks TEXT NOT NULL DEFAULT '';
""",
)
