"""Which messages are in the search index, and which have to be removed from it."""

from graph_agent.storage.sqlite.migrations import Migration

__all__ = ["MIGRATION"]

MIGRATION = Migration(
    "search",
    """
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
""",
)
