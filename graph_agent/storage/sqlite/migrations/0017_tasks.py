"""Tasks that wait for a worker, and the workers that run them."""

from graph_agent.storage.sqlite.migrations import Migration

__all__ = ["MIGRATION"]

MIGRATION = Migration(
    "tasks",
    """
CREATE TABLE tasks (
    task_id TEXT NOT NULL PRIMARY KEY,
    thread_id TEXT NOT NULL,
    prompt TEXT NOT NULL,
    workspace TEXT NOT NULL,
    options TEXT NOT NULL DEFAULT '{}',
    branch TEXT NOT NULL DEFAULT '',
    state TEXT NOT NULL,
    outcome TEXT NOT NULL DEFAULT '',
    error TEXT NOT NULL DEFAULT '',
    not_before TEXT NOT NULL,
    every INTEGER NOT NULL DEFAULT 0,
    added_by TEXT NOT NULL,
    added_at TEXT NOT NULL,
    started_at TEXT,
    ended_at TEXT,
    worker TEXT
);
CREATE INDEX open_tasks ON tasks (not_before) WHERE state IN ('queued', 'started');
CREATE TABLE workers (
    worker_id TEXT NOT NULL PRIMARY KEY,
    host TEXT NOT NULL,
    pid INTEGER NOT NULL,
    process_started TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    slots INTEGER NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT
);
""",
)
