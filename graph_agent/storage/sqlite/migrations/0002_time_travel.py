"""Rewinds, and what pruning keeps of the checkpoints it deletes."""

from graph_agent.storage.sqlite.migrations import Migration

__all__ = ["MIGRATION"]

MIGRATION = Migration(
    "time_travel",
    """
CREATE TABLE rewinds (                       -- written before the first file is touched
    id INTEGER PRIMARY KEY,
    thread_id TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,             -- where to
    head TEXT NOT NULL,                      -- where from
    scope TEXT NOT NULL,                     -- both, files, chat
    plan TEXT NOT NULL,                      -- JSON: files with both contents as blobs, calls that become undone
    status TEXT NOT NULL,                    -- planned, done, undoing, undone
    at TEXT NOT NULL,
    ended_at TEXT
);
CREATE INDEX rewinds_by_thread ON rewinds (thread_id, id);
CREATE TABLE cuts (                          -- oldest checkpoints that a prune left standing: all before is gone
    thread_id TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    branch INTEGER NOT NULL,                 -- the last row of the transcript that its state rests on
    seq INTEGER NOT NULL,
    PRIMARY KEY (thread_id, checkpoint_id)
);
CREATE TABLE pruned (                        -- ids that stood once
    thread_id TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    PRIMARY KEY (checkpoint_id, thread_id)
) WITHOUT ROWID;
""",
)
