"""The database schema as an append-only list of numbered migrations; `PRAGMA user_version` is the last one applied.

`checkpoints` and `writes` have the shape LangGraph's own SQLite savers use, so that their tools can read them.
All other tables are ours; times are ISO-8601 UTC, JSON columns hold text.
"""

import sqlite3
from collections.abc import Callable
from typing import NamedTuple

from graph_agent.storage.sqlite.search_index import update_search_index

__all__ = ["MIGRATIONS", "SCHEMA_VERSION", "Migration"]


class Migration(NamedTuple):
    """One step of the schema; never edited once it has been released."""

    name: str
    sql: str
    gives_space_back: bool = False
    """The file is first rewritten so that it can shrink from then on."""
    fill: Callable[[sqlite3.Connection], None] | None = None
    """Puts in what can be derived from older rows, in the same transaction."""


_SPINE = """
CREATE TABLE checkpoints (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL,
    parent_checkpoint_id TEXT,
    type TEXT,
    checkpoint BLOB,
    metadata BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)
);
CREATE TABLE writes (
    thread_id TEXT NOT NULL,
    checkpoint_ns TEXT NOT NULL DEFAULT '',
    checkpoint_id TEXT NOT NULL,
    task_id TEXT NOT NULL,
    task_path TEXT NOT NULL DEFAULT '',
    idx INTEGER NOT NULL,
    channel TEXT NOT NULL,
    type TEXT,
    value BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)
);

-- Projections: written in the transaction of each checkpoint, rebuildable from the two tables above.
CREATE TABLE threads (
    thread_id TEXT PRIMARY KEY,
    title TEXT NOT NULL DEFAULT '',          -- first words of the first message, until renamed
    workspace TEXT NOT NULL DEFAULT '',
    model TEXT NOT NULL DEFAULT '',
    mode TEXT NOT NULL DEFAULT 'default',
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    checkpoint_id TEXT,                      -- the head
    next_nodes TEXT NOT NULL DEFAULT '[]',   -- JSON list, from the head checkpoint alone; empty means at rest
    branch INTEGER NOT NULL DEFAULT 0,
    turns INTEGER NOT NULL DEFAULT 0,
    outcome TEXT NOT NULL DEFAULT '',        -- how the last turn ended: done, limit, stopped
    parent_thread TEXT,                      -- of a fork or a sub-agent
    parent_call TEXT                         -- the call that opened a sub-agent
);
CREATE INDEX threads_by_time ON threads (updated_at DESC);
CREATE TABLE transcript (
    thread_id TEXT NOT NULL,
    seq INTEGER NOT NULL,                    -- 1, 2, 3 ... per thread over all branches
    branch INTEGER NOT NULL DEFAULT 0,
    message_id TEXT NOT NULL,
    role TEXT NOT NULL,                      -- system, user, assistant, tool
    body TEXT NOT NULL,                      -- JSON: content, tool_calls, tool_call_id, status, usage
    checkpoint_id TEXT NOT NULL,             -- first checkpoint whose state holds the message
    at TEXT NOT NULL,
    PRIMARY KEY (thread_id, seq),
    UNIQUE (thread_id, branch, message_id)
);
CREATE TABLE branches (                      -- the first one, 0, has no row
    thread_id TEXT NOT NULL,
    branch INTEGER NOT NULL,                 -- 1, 2, 3 ... per thread
    parent_branch INTEGER NOT NULL,
    from_seq INTEGER NOT NULL,               -- last row of the transcript that it shares with its parent
    checkpoint_id TEXT NOT NULL,             -- its first checkpoint
    at TEXT NOT NULL,
    PRIMARY KEY (thread_id, branch)
);
CREATE TABLE ledger (
    thread_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    seq INTEGER NOT NULL,                    -- order in which the model asked, per thread
    tool_name TEXT NOT NULL,
    status TEXT NOT NULL,
    risk TEXT NOT NULL DEFAULT '',
    record TEXT NOT NULL,                    -- JSON: the whole ToolCallInfo
    checkpoint_id TEXT NOT NULL,             -- checkpoint of the last change
    updated_at TEXT NOT NULL,
    left_behind INTEGER NOT NULL DEFAULT 0,  -- open on a branch that the thread has come away from
    PRIMARY KEY (thread_id, call_id)
);
CREATE INDEX ledger_open ON ledger (status) WHERE status NOT IN ('success', 'error', 'cancelled');

-- Facts: never rebuilt, never deleted while their thread stands.
CREATE TABLE journal (
    thread_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    owner TEXT NOT NULL,
    status TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    intent TEXT,                             -- JSON: Intent
    outcome TEXT,                            -- JSON: Outcome, inline or {"blob": reference} when big
    process_group INTEGER,
    process_started TEXT,
    boot_id TEXT,
    undone INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (thread_id, call_id, attempt)
);
CREATE TABLE decisions (
    id INTEGER PRIMARY KEY,
    thread_id TEXT NOT NULL,
    call_id TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    question TEXT NOT NULL,                  -- approval, recovery
    args_digest TEXT NOT NULL,
    kind TEXT NOT NULL,                      -- approve, edit, reject, retry, done, cancel
    args TEXT,                               -- JSON: edited arguments
    reason TEXT NOT NULL DEFAULT '',
    by TEXT NOT NULL,
    at TEXT NOT NULL,
    applied_at TEXT,
    superseded_at TEXT
);
CREATE UNIQUE INDEX decisions_first ON decisions (thread_id, call_id, attempt, question)
    WHERE superseded_at IS NULL;
CREATE TABLE leases (
    thread_id TEXT PRIMARY KEY,
    life TEXT NOT NULL,
    pid INTEGER NOT NULL,
    process_started TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    host TEXT NOT NULL,
    since TEXT NOT NULL,
    ended_at TEXT                            -- NULL while held, and after a crash
);
CREATE TABLE inbox (
    id INTEGER PRIMARY KEY,
    thread_id TEXT NOT NULL,
    text TEXT NOT NULL,
    queued_by TEXT NOT NULL,
    queued_at TEXT NOT NULL,
    taken_at TEXT
);
CREATE INDEX inbox_waiting ON inbox (thread_id, id) WHERE taken_at IS NULL;
CREATE TABLE file_states (
    thread_id TEXT NOT NULL,
    path TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (thread_id, path)
);
"""

_TRAVEL = """
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
"""
_ROOM = "CREATE INDEX journal_by_time ON journal (thread_id, started_at)"

_GRANTS = """
CREATE TABLE grants (                        -- what was allowed "always"
    id INTEGER PRIMARY KEY AUTOINCREMENT,    -- never used again: `policy revoke` names one
    scope TEXT NOT NULL,                     -- thread, project, user
    rules TEXT NOT NULL,                     -- JSON list of {"text", "exact"}
    mode TEXT NOT NULL,                      -- the permission mode it was given in
    thread_id TEXT NOT NULL,                 -- where it was given
    workspace TEXT NOT NULL,
    place TEXT NOT NULL DEFAULT '.',         -- where its commands start, relative to the workspace
    call_id TEXT NOT NULL,
    by TEXT NOT NULL,
    at TEXT NOT NULL,
    revoked_at TEXT,
    revoked_by TEXT
);
"""

_SEARCH = """
CREATE TABLE searched (                      -- messages whose words stand in the index "words", under this number
    id INTEGER PRIMARY KEY,
    thread_id TEXT NOT NULL,
    seq INTEGER NOT NULL,
    UNIQUE (thread_id, seq)
);
CREATE TABLE unsearched (                    -- what is to be taken out of the index again, as it went in
    id INTEGER PRIMARY KEY,
    body TEXT NOT NULL
);
CREATE TRIGGER transcript_changed AFTER UPDATE OF body ON transcript WHEN old.body IS NOT new.body BEGIN
    INSERT OR IGNORE INTO unsearched
        SELECT id, old.body FROM searched WHERE thread_id = old.thread_id AND seq = old.seq;
    DELETE FROM searched WHERE thread_id = old.thread_id AND seq = old.seq;
END;
CREATE TRIGGER transcript_removed AFTER DELETE ON transcript BEGIN
    INSERT OR IGNORE INTO unsearched
        SELECT id, old.body FROM searched WHERE thread_id = old.thread_id AND seq = old.seq;
    DELETE FROM searched WHERE thread_id = old.thread_id AND seq = old.seq;
END;
"""
_IMPORT = """
CREATE TABLE imported (                      -- checkpoints out of a file: nobody here let their calls through
    thread_id TEXT NOT NULL,
    checkpoint_id TEXT NOT NULL,
    PRIMARY KEY (thread_id, checkpoint_id)
) WITHOUT ROWID;
"""
_ROOTS = "ALTER TABLE threads ADD COLUMN add_dirs TEXT NOT NULL DEFAULT '[]'"  # JSON list of folders
# 1: the call runs outside of the sandbox. SQLite would take a comment here for part of the table.
_OUTSIDE = "ALTER TABLE decisions ADD COLUMN outside INTEGER NOT NULL DEFAULT 0"
_SHELLS = """
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
"""

# usage: what the requests of the thread used, at its head, as JSON; NULL: from before it was noted. asks: which
# model was chosen for it, as JSON; empty: the one of the settings.
_USAGE = """
ALTER TABLE threads ADD COLUMN usage TEXT;
ALTER TABLE threads ADD COLUMN asks TEXT NOT NULL DEFAULT '';
"""
_ORDER = "CREATE INDEX ledger_in_order ON ledger (thread_id, seq)"  # each new call is given the next seq


def _add_place(connection: sqlite3.Connection) -> None:
    """The column came into the third migration after databases had been made with it."""
    if "place" not in {row[1] for row in connection.execute("PRAGMA table_info(grants)")}:
        connection.execute("ALTER TABLE grants ADD COLUMN place TEXT NOT NULL DEFAULT '.'")


MIGRATIONS: tuple[Migration, ...] = (
    Migration("spine", _SPINE),
    Migration("travel", _TRAVEL),
    Migration("grants", _GRANTS),
    Migration("room", _ROOM, gives_space_back=True),
    Migration("search", _SEARCH, fill=update_search_index),
    Migration("import", _IMPORT),
    Migration("roots", _ROOTS),
    Migration("place", "", fill=_add_place),
    Migration("outside", _OUTSIDE),
    Migration("shells", _SHELLS),
    Migration("usage", _USAGE),
    Migration("order", _ORDER),
)

SCHEMA_VERSION = len(MIGRATIONS)
