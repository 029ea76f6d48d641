"""Whether a decision lets a call run outside the sandbox: 1."""

from graph_agent.storage.sqlite.migrations import Migration

__all__ = ["MIGRATION"]

MIGRATION = Migration(
    "outside_sandbox",
    """
ALTER TABLE decisions ADD COLUMN outside INTEGER NOT NULL DEFAULT 0;
""",
)
