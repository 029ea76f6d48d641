"""Further folders of a thread, as a JSON list."""

from graph_agent.storage.sqlite.migrations import Migration

__all__ = ["MIGRATION"]

MIGRATION = Migration(
    "added_folders",
    """
ALTER TABLE threads ADD COLUMN add_dirs TEXT NOT NULL DEFAULT '[]';
""",
)
