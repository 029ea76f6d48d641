"""Checkpoints that came out of a file."""

from graph_agent.storage.sqlite.migrations import Migration

__all__ = ["MIGRATION"]

MIGRATION = Migration(
    "imports",
    """
CREATE TABLE imported (                      -- checkpoints out of a file: nobody here let their calls through
    thread_id TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    PRIMARY KEY (thread_id, checkpoint_id)
) WITHOUT ROWID;
""",
)
