"""The agent that was chosen for a thread, as it was defined then, as JSON; empty for none."""

from graph_agent.storage.sqlite.migrations import Migration

__all__ = ["MIGRATION"]

MIGRATION = Migration(
    "named_agents",
    """
ALTER TABLE threads ADD COLUMN agent TEXT NOT NULL DEFAULT '';
""",
)
