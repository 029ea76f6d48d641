"""Permissions that were given for later calls too."""

from graph_agent.storage.sqlite.migrations import Migration

__all__ = ["MIGRATION"]

MIGRATION = Migration(
    "grants",
    """
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
""",
)
