"""Checkpoints and writes as LangGraph's own SQLite savers store them, and the tables of this program."""

from graph_agent.storage.sqlite.migrations import Migration

__all__ = ["MIGRATION"]

MIGRATION = Migration(
    "create_tables",
    """
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
    next_nodes TEXT NOT NULL DEFAULT '[]',   -- JSON list, from the head checkpoint alone; empty means idle
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
""",
)
