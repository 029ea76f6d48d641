"""The journal in the order of time; from here on the file can shrink."""

from graph_agent.storage.sqlite.migrations import Migration

__all__ = ["MIGRATION"]

MIGRATION = Migration(
    "journal_by_time",
    """
CREATE INDEX journal_by_time ON journal (thread_id, started_at);
""",
    releases_space=True,
)
