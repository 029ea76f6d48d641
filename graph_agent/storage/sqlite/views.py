"""Views that let one set of statements read databases of other programs and of earlier versions.

Temporary tables and views supply what such a file lacks or names otherwise; nothing of them reaches the file.
In a database of LangGraph's own SQLite saver every namespace of a subgraph is shown as a thread,
`THREAD/NAMESPACE`.
"""

import json
import sqlite3
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from graph_agent.errors import DamagedDatabase
from graph_agent.ports import normalize_time
from graph_agent.ports.checkpoint_values import is_message, planned_nodes, role_of
from graph_agent.ports.stored_text import plain_text
from graph_agent.storage.decoder import PlainDecoder, Snapshot
from graph_agent.storage.legacy_names import COLUMNS, CONTENTS, TABLES

__all__ = ["create_foreign_views", "create_legacy_views"]

_CHECKPOINTS = frozenset(
    ("thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "type", "checkpoint", "metadata")
)
_WRITES = frozenset(("thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "value"))
_GREGORIAN = datetime(1582, 10, 15, tzinfo=UTC)
_LONGEST_TITLE = 80

_FOREIGN = """
PRAGMA temp_store = MEMORY;
CREATE TEMP TABLE spaces (thread_id TEXT PRIMARY KEY, own TEXT, ns TEXT);
INSERT OR IGNORE INTO spaces
    SELECT DISTINCT thread_id || CASE checkpoint_ns WHEN '' THEN '' ELSE '/' || checkpoint_ns END,
        thread_id, checkpoint_ns FROM main.checkpoints ORDER BY checkpoint_ns <> '';
CREATE TEMP VIEW checkpoints AS
    SELECT s.thread_id, '' AS checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id, c.type, c.checkpoint,
        c.metadata
    FROM spaces s CROSS JOIN main.checkpoints c ON c.thread_id = s.own AND c.checkpoint_ns = s.ns;
CREATE TEMP VIEW writes AS
    SELECT s.thread_id, '' AS checkpoint_ns, w.checkpoint_id, w.task_id, {task_path} AS task_path, w.idx, w.channel,
        w.type, w.value
    FROM spaces s CROSS JOIN main.writes w ON w.thread_id = s.own AND w.checkpoint_ns = s.ns;
CREATE TEMP VIEW threads AS
    SELECT s.rowid AS rowid, s.thread_id, head_title(c.type, c.checkpoint) AS title, '' AS workspace,
        '[]' AS add_dirs, '' AS model,
        '' AS mode, coalesce(id_time((SELECT min(checkpoint_id) FROM main.checkpoints m
            WHERE m.thread_id = s.own AND m.checkpoint_ns = s.ns)), '') AS created_at,
        coalesce(id_time(c.checkpoint_id), head_time(c.type, c.checkpoint)) AS updated_at, c.checkpoint_id,
        head_turns(c.type, c.checkpoint) AS turns, '' AS outcome,
        CASE s.ns WHEN '' THEN NULL ELSE s.own END AS parent_thread, nullif(s.ns, '') AS parent_call,
        head_next(c.type, c.checkpoint) AS next_nodes, 0 AS branch, NULL AS usage
    FROM spaces s CROSS JOIN main.checkpoints c ON c.thread_id = s.own AND c.checkpoint_ns = s.ns
        AND c.checkpoint_id = (SELECT max(checkpoint_id) FROM main.checkpoints m
            WHERE m.thread_id = s.own AND m.checkpoint_ns = s.ns);
CREATE TEMP TABLE call_log (thread_id, call_id, seq, tool_name, status, record, abandoned);
CREATE INDEX temp.call_log_open ON call_log (thread_id);
CREATE TEMP TABLE journal (thread_id, call_id, attempt, owner, status, started_at, ended_at, intent, outcome,
    reverted, process_group, process_started, boot_id);
CREATE TEMP TABLE decisions (thread_id, call_id, attempt, question, args_digest, kind, reason, by, at, applied_at,
    superseded_at);
CREATE TEMP TABLE leases (thread_id, pid, process_started, boot_id, host, since, ended_at);
CREATE TEMP TABLE inbox (id, thread_id, taken_at);
CREATE TEMP TABLE transcript (thread_id, seq, branch, message_id, role, body, checkpoint_id, at);
CREATE TEMP TABLE branches (thread_id, branch, parent_branch, from_seq);
CREATE TEMP TABLE grants (scope, rules, mode, thread_id, workspace, call_id, by, at, folder, effect, id,
    revoked_at);
CREATE TEMP TABLE pruned_checkpoints (thread_id, checkpoint_id);
CREATE TEMP TABLE background_shells (id, thread_id, call_id, attempt, command, started_at, ended_at);
CREATE TEMP TABLE rewinds (thread_id, status);
"""

_READ = {
    "threads": "thread_id title workspace add_dirs model mode created_at updated_at checkpoint_id next_nodes "
    "branch turns outcome parent_thread parent_call usage model_choice",
    "writes": "thread_id checkpoint_ns checkpoint_id task_id task_path idx channel type value",
    "call_log": "thread_id call_id seq tool_name status risk record checkpoint_id updated_at abandoned",
    "journal": "thread_id call_id attempt owner status started_at ended_at intent outcome process_group "
    "process_started boot_id reverted",
    "decisions": "id thread_id call_id attempt question args_digest kind args reason by at applied_at "
    "superseded_at outside_sandbox",
    "leases": "thread_id owner_token pid process_started boot_id host since ended_at",
    "grants": "id scope rules mode thread_id workspace folder effect call_id by at revoked_at revoked_by",
    "rewinds": "id thread_id checkpoint_id head scope plan status at ended_at",
    "prune_points": "thread_id checkpoint_id branch seq",
    "pruned_checkpoints": "thread_id checkpoint_id",
    "imported_checkpoints": "thread_id checkpoint_id",
    "background_shells": "id thread_id call_id attempt command folder started_at ended_at ending",
    "tasks": "task_id thread_id prompt workspace options branch state outcome error not_before every added_by "
    "added_at started_at ended_at worker",
    "search_entries": "id thread_id seq",
}
"""The columns that are read of each table that had another name, columns or contents, or that came later."""
_READ_COLUMNS = {table: columns.split() for table, columns in _READ.items()}
_ORDERED = frozenset(("threads", "writes", "call_log", "journal"))
"""Tables of which rows are read in the order in which they were stored."""
_DEFAULTS = {
    ("threads", "add_dirs"): "'[]'",
    ("threads", "model_choice"): "''",
    ("grants", "folder"): "'.'",
    ("grants", "effect"): "'allow'",
    ("decisions", "outside_sandbox"): "0",
}


def create_foreign_views(connection: sqlite3.Connection) -> bool:
    """Whether the open file is one of LangGraph's saver; then the views make it look like one of ours.

    Raises:
        sqlite3.Error: the file cannot be read.
    """
    checkpoints, writes = _columns(connection, "checkpoints"), _columns(connection, "writes")
    if not (checkpoints.issuperset(_CHECKPOINTS) and writes.issuperset(_WRITES)):
        return False
    for name, function in _HEAD_FUNCTIONS.items():
        connection.create_function(name, 1 if name == "id_time" else 2, function, deterministic=True)
    connection.execute("PRAGMA query_only = 0")  # The file itself was opened so that it cannot be written.
    connection.executescript(_FOREIGN.format(task_path="w.task_path" if "task_path" in writes else "''"))
    connection.execute("PRAGMA query_only = 1")
    return True


def create_legacy_views(connection: sqlite3.Connection) -> None:
    """Make a database of an earlier schema look like a current one."""
    connection.execute("PRAGMA query_only = 0")  # The file itself was opened so that it cannot be written.
    connection.execute("PRAGMA temp_store = MEMORY")
    for (table, column), rename in CONTENTS.items():
        connection.create_function(f"current_{table}_{column}", 1, rename, deterministic=True)
    stored_as = {today: old for old, today in TABLES.items()}
    for table, columns in _READ_COLUMNS.items():
        stored = stored_as.get(table, table)
        there = {row[1] for row in connection.execute(f"PRAGMA main.table_info({stored})")}
        if not there:
            selected, source = [f"NULL AS {column}" for column in columns], "WHERE 0"
        else:
            former = {today: old for old, today in COLUMNS.get(table, {}).items()}
            selected = [_selected(table, column, former.get(column, column), there) for column in columns]
            source = f"FROM main.{stored}"
        rowid = ["rowid AS rowid"] if table in _ORDERED and there else []
        connection.execute(f"CREATE TEMP VIEW {table} AS SELECT {', '.join([*rowid, *selected])} {source}")
    connection.execute("PRAGMA query_only = 1")


def _selected(table: str, column: str, stored: str, there: set[str]) -> str:
    if stored not in there:
        return f"{_DEFAULTS.get((table, column), 'NULL')} AS {column}"
    value = f"current_{table}_{column}({stored})" if (table, column) in CONTENTS else stored
    return f"{value} AS {column}"


def _columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """Of a table that is one: a view could ask anything of whoever reads it."""
    is_table = connection.execute(
        "SELECT 1 FROM sqlite_schema WHERE name = ? AND type = 'table'", (table,)
    ).fetchone()
    names = connection.execute("SELECT name FROM pragma_table_info(?)", (table,)).fetchall() if is_table else []
    return frozenset(name for (name,) in names)


def _id_time(checkpoint_id: Any) -> str | None:
    """When the checkpoint was made, which its id says where it is a UUID of version 6."""
    try:
        identifier = UUID(str(checkpoint_id))
        if identifier.version != 6:
            return None
        ticks = (identifier.time_low << 28) | (identifier.time_mid << 12) | (identifier.time_hi_version & 0xFFF)
        made = _GREGORIAN + timedelta(microseconds=ticks // 10)
    except (ValueError, OverflowError):
        return None
    return normalize_time(made.isoformat())


def _head_time(kind: Any, blob: Any) -> str:
    return str(_decoded(kind, blob).get("ts") or "")


def _head_next(kind: Any, blob: Any) -> str:
    return json.dumps(planned_nodes(_decoded(kind, blob)))


def _head_turns(kind: Any, blob: Any) -> int:
    return sum(role_of(message) == "user" for message in _messages(kind, blob))


def _head_title(kind: Any, blob: Any) -> str:
    """The beginning of the first message; empty where the newest checkpoint alone does not hold it."""
    first = next(iter(_messages(kind, blob)), {})
    return " ".join(plain_text(first.get("content")).split())[:_LONGEST_TITLE]


def _messages(kind: Any, blob: Any) -> list[dict[str, Any]]:
    stored = (_decoded(kind, blob).get("channel_values") or {}).get("messages")
    value = stored.value if isinstance(stored, Snapshot) else stored
    return [item for item in value if is_message(item)] if isinstance(value, list) else []


def _decoded(kind: Any, blob: Any) -> dict[str, Any]:
    """Nothing where it cannot be read: a list of threads must not end at one of them."""
    try:
        return PlainDecoder().checkpoint(str(kind), blob) if isinstance(blob, bytes) else {}
    except DamagedDatabase:
        return {}


_HEAD_FUNCTIONS: dict[str, Callable[..., str | int | None]] = {
    "id_time": _id_time,
    "head_time": _head_time,
    "head_next": _head_next,
    "head_turns": _head_turns,
    "head_title": _head_title,
}
