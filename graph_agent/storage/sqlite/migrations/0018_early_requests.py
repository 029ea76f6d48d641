"""The estimated tokens of a request that was sent before the turn of its message, until its answer is used."""

from graph_agent.storage.sqlite.migrations import Migration

__all__ = ["MIGRATION"]

MIGRATION = Migration(
    "early_requests",
    """
ALTER TABLE inbox ADD COLUMN early_tokens INTEGER;
""",
)
