"""Commands that run in the background."""

from graph_agent.storage.sqlite.migrations import Migration

__all__ = ["MIGRATION"]

MIGRATION = Migration(
    "background_shells",
    """
CREATE TABLE shells (                        -- commands that go on in the background
    id INTEGER PRIMARY KEY AUTOINCREMENT,    -- never used again: the model knows one by it
    thread_id TEXT NOT NULL,
    call_id TEXT NOT NULL,                   -- with thread and attempt its journal row, with the process group
    attempt INTEGER NOT NULL,
    command TEXT NOT NULL,
    folder TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    ending TEXT,                             -- JSON: ShellEnding
    read_from INTEGER NOT NULL DEFAULT 0,    -- bytes of its output: what the last reading began and ended with
    read_until INTEGER NOT NULL DEFAULT 0,
    read_by TEXT NOT NULL DEFAULT ''         -- the call that read
);
CREATE INDEX shells_by_thread ON shells (thread_id, id);
""",
)
