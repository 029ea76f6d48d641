"""Whether the rules of a grant allow or deny; a row of an earlier version allows."""

from graph_agent.storage.sqlite.migrations import Migration

__all__ = ["MIGRATION"]

MIGRATION = Migration(
    "denials",
    """
ALTER TABLE grants ADD COLUMN effect TEXT NOT NULL DEFAULT 'allow';
""",
)
