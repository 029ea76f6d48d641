"""The port `ReadStore` over an SQLite file: one statement per question, however much the file holds."""

import json
import re
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any

from graph_agent import ports
from graph_agent.config.paths import blob_dir
from graph_agent.errors import DamagedDatabase
from graph_agent.ports.read_store import (
    CallRow,
    DeltaHistory,
    IdKind,
    Lease,
    RunningShell,
    StandingAnswer,
    StoredCheckpoint,
    StoredWrite,
    ThreadHead,
    ThreadRow,
    TranscriptEntry,
)
from graph_agent.storage import ReadSource
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.decoder import PlainDecoder
from graph_agent.storage.sqlite.checkpoint_rows import (
    BrokenCheckpoint,
    Link,
    check_checkpoints,
    explain_damage,
    read_checkpoint,
    read_write,
)
from graph_agent.storage.sqlite.deltas import delta_history, line
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION
from graph_agent.storage.sqlite.row_values import (
    OWN_INTENT,
    CheckpointRow,
    answers_of,
    attempts_of,
    calls_of,
    entry_of,
    grant_of,
    intent_of,
    json_or,
    load_json,
    read_foreign_checkpoint,
    require_valid_attempt,
    sound_thread_columns,
)

__all__ = ["SqliteReadStore"]

_LEASES = "SELECT thread_id, pid, process_started, boot_id, host, since, ended_at FROM leases"
_FAMILIES = """thread_id IN (WITH RECURSIVE family(id) AS (SELECT value FROM json_each(?1)
    UNION SELECT c.thread_id FROM threads c JOIN family ON c.parent_thread = family.id
    WHERE c.parent_call IS NOT NULL) SELECT id FROM family)"""
_BELOW = """WITH RECURSIVE family(id, depth) AS (SELECT ?, 0 UNION SELECT c.thread_id, depth + 1 FROM threads c
    JOIN family ON c.parent_thread = family.id WHERE c.parent_call IS NOT NULL AND depth < 100)
    SELECT id FROM family JOIN threads t ON t.thread_id = id WHERE depth > 0 ORDER BY depth, t.rowid"""
_TOP = """WITH RECURSIVE line(id, depth) AS (SELECT ?, 0 UNION SELECT t.parent_thread, depth + 1 FROM threads t
    JOIN line ON t.thread_id = line.id
    WHERE t.parent_call IS NOT NULL AND t.parent_thread IS NOT NULL AND depth < 100)
    SELECT id FROM line WHERE id IN (SELECT thread_id FROM threads) ORDER BY depth DESC LIMIT 1"""
_NEWEST_THREAD = """SELECT thread_id FROM threads WHERE (?1 IS NULL OR workspace = ?1) AND parent_call IS NULL
    ORDER BY checkpoint_id IS NULL AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.thread_id = threads.thread_id),
    updated_at DESC, rowid DESC LIMIT 1"""

# A sub-agent whose call has ended, or is on a branch that its parent left, works for nobody.
_IS_UNNEEDED = """EXISTS (SELECT 1 FROM threads c JOIN call_log p
    ON p.thread_id = c.parent_thread AND p.call_id = c.parent_call WHERE c.thread_id = {of}.thread_id
    AND (p.abandoned = 1 OR p.status IN ('success', 'error', 'cancelled')))"""
# The partial index on open calls serves this condition.
_IS_OPEN = (
    f"l.status NOT IN ('success', 'error', 'cancelled') AND l.abandoned = 0 AND NOT {_IS_UNNEEDED.format(of='l')}"
)


def _text(column: str) -> str:
    """The value of a column of text; of damaged bytes, which no JSON text may hold, their digits."""
    return f"iif(typeof({column}) = 'blob', hex({column}), {column})"


# Of each call: the rows of the journal, oldest first, and the answers that are not superseded. Appending nothing
# makes plain text of them: nested in another array, JSON would be taken apart.
_JOURNAL = ", ".join(map(_text, ("attempt", "status", "ended_at", "outcome", "started_at")))
_ATTEMPTS = f"""(
    SELECT json_group_array(json_array({_JOURNAL})) FROM (
        SELECT * FROM journal j WHERE j.thread_id = {{call}}.thread_id AND j.call_id = {{call}}.call_id
        AND j.reverted = 0 ORDER BY j.attempt) j) || ''"""  # noqa: S608 - names of our own columns
_DECISION = ", ".join(
    map(_text, ("question", "attempt", "args_digest", "kind", "reason", "by", "at", "applied_at"))
)
_ANSWERS = f"""(
    SELECT json_group_array(json_array({_DECISION}))
    FROM decisions d WHERE d.thread_id = {{call}}.thread_id AND d.call_id = {{call}}.call_id
    AND d.superseded_at IS NULL) || ''"""  # noqa: S608 - names of our own columns
# A long result is in the journal only, in the row of any attempt that has it.
_CALL_ID, _SAFE_RECORD = _text("l.call_id"), _text("l.record")
_RECORD = f"""CASE WHEN NOT json_valid(l.record) OR l.status NOT IN ('success', 'error') THEN {_SAFE_RECORD}
    WHEN json_type(l.record, '$.result') IS NOT NULL THEN l.record
    ELSE json_set(l.record, '$.result', (SELECT json_extract(j.outcome, '$.output') FROM journal j
        WHERE j.thread_id = l.thread_id AND j.call_id = l.call_id AND j.outcome IS NOT NULL
        ORDER BY j.attempt DESC LIMIT 1)) || '' END"""  # noqa: S608 - names of our own columns
_BRIEF_RECORD = f"""CASE WHEN NOT json_valid(l.record) THEN {_SAFE_RECORD}
    ELSE json_remove(l.record, '$.result', '$.preview') || '' END"""
_THREAD_COLUMNS = [
    *("thread_id", "title", "workspace", "model", "mode", "created_at", "updated_at", "checkpoint_id"),
    *("turns", "outcome", "parent_thread", "parent_call"),
]
_THREADS = f"""WITH open AS MATERIALIZED (
        SELECT l.thread_id, json_group_array(json_array(
            {_CALL_ID}, {_SAFE_RECORD}, {_ATTEMPTS.format(call="l")}, {_ANSWERS.format(call="l")})) AS calls
        FROM call_log l {{calls}} AND {_IS_OPEN} GROUP BY l.thread_id)
    SELECT {", ".join(f"t.{name}" for name in _THREAD_COLUMNS)},
    (SELECT count(*) FROM inbox i WHERE i.thread_id = t.thread_id AND i.taken_at IS NULL AND NOT EXISTS (
        SELECT 1 FROM transcript m WHERE m.thread_id = i.thread_id AND m.message_id = 'inbox-' || i.id)),
    t.next_nodes = '[]' OR {_IS_UNNEEDED.format(of="t")},
    CASE WHEN t.next_nodes = '[]' OR open.calls IS NOT NULL THEN 0 WHEN EXISTS (
        SELECT 1 FROM writes w WHERE w.thread_id = t.thread_id AND w.checkpoint_ns = ''
        AND w.checkpoint_id = t.checkpoint_id AND w.channel = '__interrupt__') THEN 1 ELSE 0 END,
    open.calls, t.usage
    FROM threads t LEFT JOIN open USING (thread_id)"""  # noqa: S608 - names of our own columns

_CHECKPOINTS = """SELECT checkpoint_id, parent_checkpoint_id, type, checkpoint, CAST(metadata AS BLOB)
    FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"""
_WRITES = """SELECT task_id, task_path, channel, type, value FROM writes
    WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ? ORDER BY task_path, task_id, idx"""

# The head's branch and those it came from, each with the last row that the head shows of it.
_BRANCHES = """WITH RECURSIVE line (branch, upto) AS (
    SELECT branch, 9223372036854775807 FROM threads WHERE thread_id = ?1
    UNION ALL
    SELECT b.parent_branch, min(b.from_seq, line.upto) FROM line JOIN branches b
    ON b.thread_id = ?1 AND b.branch = line.branch)"""
_IS_SHOWN = "EXISTS (SELECT 1 FROM line WHERE line.branch = t.branch AND t.seq <= line.upto)"
_ALL = 1 << 62
_MESSAGE = "seq, branch, message_id, role, body, checkpoint_id, at"

_IS_SEARCHED = "role NOT IN ('system', 'summary')"
_NEWEST_FIRST = "ORDER BY at DESC, thread_id, seq DESC"
_INDEXED = f"""SELECT t.thread_id, t.seq, t.at FROM {{index}} w JOIN search_entries s ON s.id = w.rowid
    JOIN transcript t USING (thread_id, seq) WHERE {{index}} MATCH :terms UNION
    SELECT t.thread_id, t.seq, t.at FROM transcript t WHERE t.{_IS_SEARCHED} AND NOT EXISTS (
        SELECT 1 FROM search_entries s WHERE s.thread_id = t.thread_id AND s.seq = t.seq) {_NEWEST_FIRST}"""  # noqa: S608 - nothing from outside
_HAS_INDEX = "SELECT 1 FROM sqlite_schema s JOIN pragma_module_list m ON m.name = 'fts5' WHERE s.name = ?"
_LONGEST_PATTERN = 200
"""Characters of a word, and words, that a statement looks for; statements take no patterns of any length."""
_FOUND = f"""SELECT t.role, t.body, t.message_id, t.at, h.title, (
    SELECT min(c.checkpoint_id) FROM checkpoints c WHERE c.thread_id = t.thread_id AND c.checkpoint_ns = ''
    AND c.checkpoint_id >= t.checkpoint_id)
    FROM transcript t JOIN threads h USING (thread_id) WHERE t.thread_id = ? AND t.seq = ? AND t.{_IS_SEARCHED}"""  # noqa: S608 - nothing from outside

_ID_SOURCES: Mapping[IdKind, tuple[str, str]] = {
    "thread": ("thread_id", "threads WHERE TRUE"),
    # A fork has the checkpoints of its origin under the same ids: those mean the origin, unless a thread is named.
    "checkpoint": (
        "checkpoint_id",
        """checkpoints AS own WHERE checkpoint_ns = '' AND (:thread IS NOT NULL OR NOT EXISTS (
            SELECT 1 FROM threads f JOIN checkpoints c ON c.thread_id = f.parent_thread AND c.checkpoint_ns = ''
            AND c.checkpoint_id = own.checkpoint_id WHERE f.thread_id = own.thread_id))""",
    ),
    "call": ("call_id", "call_log WHERE TRUE"),
}
_PRUNED = """SELECT thread_id, checkpoint_id, (SELECT min(c.checkpoint_id) FROM checkpoints c
        WHERE c.thread_id = p.thread_id AND c.checkpoint_ns = '' AND c.checkpoint_id > p.checkpoint_id)
    FROM pruned_checkpoints p WHERE (checkpoint_id = :id
        OR (length(:id) >= :shortest AND (substr(checkpoint_id, 1, :n) = :id OR substr(checkpoint_id, -:n) = :id)))
        AND (:thread = '' OR substr(thread_id, 1, length(:thread)) = :thread
            OR substr(thread_id, -length(:thread)) = :thread)
    ORDER BY checkpoint_id = :id DESC, thread_id LIMIT 1"""

_EXPORTED_AS = {
    # An answer is exported as history: it does not stand where the thread is imported.
    ("decisions", "superseded_at"): "coalesce(superseded_at, applied_at, at)",
    # A message that is in the conversation counts as taken.
    ("inbox", "taken_at"): "coalesce(taken_at, CASE WHEN EXISTS (SELECT 1 FROM transcript m "
    "WHERE m.thread_id = inbox.thread_id AND m.message_id = 'inbox-' || inbox.id) THEN queued_at END)",
    # A permissive mode was chosen by somebody who is not there.
    ("threads", "mode"): "CASE WHEN mode IN ('plan', 'dontAsk') THEN mode ELSE 'default' END",
    ("checkpoints", "type"): "coalesce(type, '')",
    ("checkpoints", "checkpoint"): "coalesce(checkpoint, x'')",
    ("checkpoints", "metadata"): "coalesce(metadata, '{}')",
    ("writes", "type"): "coalesce(type, '')",
    ("writes", "value"): "coalesce(value, x'')",
}
_EXPORT_ORDER = {
    "transcript": "seq",
    "call_log": "seq",
    "branches": "branch",
    "decisions": "id",
    "inbox": "id",
    "pruned_checkpoints": "checkpoint_id",
    "rewinds": "id",
    "prune_points": "checkpoint_id",
}


class SqliteReadStore:
    """The port `ReadStore`."""

    def __init__(self, connection: ReadSource, blobs: FileBlobs | None = None) -> None:
        self._connection = connection
        self._blobs = blobs or FileBlobs(blob_dir(connection.path))
        self._rows = connection.rows
        self._decoder = PlainDecoder()
        self.path = connection.path
        self.note = connection.note
        self.is_foreign = connection.is_foreign
        self._read = read_foreign_checkpoint if connection.is_foreign else read_checkpoint

    def close(self) -> None:
        self._connection.close()

    def snapshot(self) -> AbstractContextManager[None]:
        return self._connection.snapshot()

    def leases(self, families: Sequence[str] | None = None) -> dict[str, Lease]:
        query, values = f"{_LEASES} WHERE {_FAMILIES}", (json.dumps(list(families or ())),)
        rows = self._rows(_LEASES) if families is None else self._rows(query, values)
        return {thread_id: Lease(*columns) for thread_id, *columns in rows}

    def threads(self, families: Sequence[str] | None = None) -> list[ThreadRow]:
        # In a view of an earlier schema there is no index to name.
        every_call = "WHERE TRUE" if self._connection.is_legacy else "INDEXED BY call_log_open WHERE TRUE"
        calls, where = (every_call, "TRUE") if families is None else (f"WHERE l.{_FAMILIES}", f"t.{_FAMILIES}")
        query = f"{_THREADS.format(calls=calls)} WHERE {where} ORDER BY t.updated_at DESC, t.thread_id"
        threads = []
        for row in self._rows(query, () if families is None else (json.dumps(list(families)),)):
            columns = dict(zip(_THREAD_COLUMNS, row, strict=False))
            queued, is_idle, is_asking, calls, usage = row[len(_THREAD_COLUMNS) :]
            whole, damaged = sound_thread_columns(columns)
            open_calls: list[CallRow] = []
            used = None
            try:
                open_calls = [] if is_idle or not calls else calls_of(whole["thread_id"], calls, self._blobs)
                used = None if usage is None else load_json(usage, dict)
            except DamagedDatabase:
                damaged = True
            if damaged:  # One damaged thread must not hide the others.
                whole["title"] = f"(damaged: graph-agent doctor --repair) {whole['title']}"
            threads.append(ThreadRow(whole, queued, bool(is_idle), bool(is_asking), open_calls, used))
        return threads

    def workspaces(self) -> dict[str, str]:
        return dict(self._rows("SELECT thread_id, workspace FROM threads ORDER BY updated_at DESC, thread_id"))

    def roots(self, thread_id: str) -> tuple[str, ...]:
        texts = self._column("SELECT add_dirs FROM threads WHERE thread_id = ?", thread_id)
        return tuple(str(path) for text in texts for path in load_json(text, list))

    def sub_threads(self, thread_id: str) -> tuple[str, ...]:
        select = "SELECT thread_id FROM threads WHERE parent_thread = ? AND parent_call IS NOT NULL"
        return tuple(self._column(f"{select} ORDER BY thread_id", thread_id))

    def top_thread(self, thread_id: str) -> str:
        return next(iter(self._column(_TOP, thread_id)), thread_id)

    def head(self, thread_id: str) -> ThreadHead | None:
        select = "SELECT checkpoint_id, next_nodes, outcome, turns, branch FROM threads WHERE thread_id = ?"
        rows = self._rows(select, (thread_id,))
        for checkpoint_id, nodes, outcome, turns, branch in rows:
            return ThreadHead(checkpoint_id, json_or(nodes, []), outcome, turns, branch)
        return None

    def newest_thread(self, workspace: str | None) -> str | None:
        return next(iter(self._column(_NEWEST_THREAD, workspace)), None)

    def grants(self) -> "list[ports.Grant]":
        rows = self._rows(
            """SELECT scope, rules, mode, thread_id, workspace, call_id, by, at, folder, effect, id FROM grants
            WHERE revoked_at IS NULL ORDER BY id"""
        )
        return list(map(grant_of, rows))

    def calls(
        self, thread_id: str | None = None, call_id: str | None = None, *, is_brief: bool = False
    ) -> Iterator[CallRow]:
        named = {"l.thread_id = ?": thread_id, "l.call_id = ?": call_id}
        given = {condition: value for condition, value in named.items() if value is not None}
        record = _BRIEF_RECORD if is_brief else _RECORD
        return self._calls(record, " AND ".join(given) or "TRUE", list(given.values()))

    def open_calls(self) -> list[CallRow]:
        return list(self._calls(_RECORD, f"{_IS_OPEN} AND t.next_nodes <> '[]'", ()))

    def evidence(self, thread_id: str, records: Mapping[str, dict[str, Any]]) -> list[CallRow]:
        rows = self._rows(
            f"""SELECT w.call_id, {_ATTEMPTS.format(call="w")}, {_ANSWERS.format(call="w")}
            FROM (SELECT ? AS thread_id, value AS call_id FROM json_each(?)) w""",  # noqa: S608 - nothing from outside
            (thread_id, json.dumps(list(records))),
        )
        blobs = self._blobs
        found = {
            call_id: (attempts_of(attempts, blobs), answers_of(answers)) for call_id, attempts, answers in rows
        }
        return [CallRow(thread_id, record, *found[call_id]) for call_id, record in records.items()]

    def approval_answer(self, thread_id: str, call_id: str) -> StandingAnswer | None:
        rows = self._rows(
            """SELECT kind, reason, by, at, applied_at FROM decisions
            WHERE thread_id = ? AND call_id = ? AND question = 'approval' AND superseded_at IS NULL
            ORDER BY attempt DESC LIMIT 1""",
            (thread_id, call_id),
        )
        return StandingAnswer(*rows[0]) if rows else None

    def shared_call_ids(self) -> frozenset[str]:
        return frozenset(self._column("SELECT call_id FROM call_log GROUP BY call_id HAVING count(*) > 1"))

    def reverted_calls(self) -> frozenset[tuple[str, str]]:
        statement = "SELECT thread_id, call_id FROM journal GROUP BY thread_id, call_id HAVING min(reverted) = 1"
        return frozenset((thread_id, call_id) for thread_id, call_id in self._rows(statement))

    def attempts(self, thread_id: str, call_id: str, *, is_reverted: bool = False) -> "list[ports.JournalRow]":
        rows = self._rows(
            f"""SELECT call_id, attempt, owner, status, started_at, ended_at, {OWN_INTENT}, process_group,
            process_started, boot_id FROM journal
            WHERE thread_id = ? AND call_id = ? AND reverted = ? ORDER BY attempt""",  # noqa: S608 - names only
            (thread_id, call_id, is_reverted),
        )
        return [
            ports.JournalRow(
                *require_valid_attempt((call, number, owner, status, started_at, ended_at)),
                intent=intent_of(intent),
                process_group=group,
                process_started=group_started,
                extra={} if boot is None else {"boot_id": boot},
            )
            for call, number, owner, status, started_at, ended_at, intent, group, group_started, boot in rows
        ]

    def executed(self, thread_id: str) -> "list[ports.ExecutedAttempt]":
        rows = self._rows(
            """SELECT j.call_id, j.attempt, j.status, j.started_at, j.intent, l.record FROM journal j
            LEFT JOIN call_log l ON l.thread_id = j.thread_id AND l.call_id = j.call_id
            WHERE j.thread_id = ? AND j.reverted = 0 AND j.status <> 'not_started'
            ORDER BY j.started_at, j.rowid""",
            (thread_id,),
        )
        made = ports.ExecutedAttempt.from_record
        return [
            made(require_valid_attempt(row), intent_of(intent), load_json(text or "{}", dict))
            for *row, intent, text in rows
        ]

    def tool_runs(self) -> list[tuple[str, str, float | None]]:
        # An attempt that was claimed and never entered its tool is no execution.
        rows = self._rows(
            """SELECT l.tool_name, j.status, (julianday(j.ended_at) - julianday(j.started_at)) * 86400
            FROM journal j JOIN call_log l USING (thread_id, call_id)
            WHERE j.status <> 'not_started' ORDER BY l.tool_name"""
        )
        return [(str(tool), status, seconds) for tool, status, seconds in rows]

    def unfinished_shells(self) -> list[RunningShell]:
        rows = self._rows(
            """SELECT b.id, b.thread_id, b.command, b.started_at, j.process_group, j.process_started, j.boot_id
            FROM background_shells b JOIN journal j USING (thread_id, call_id, attempt)
            WHERE b.ended_at IS NULL AND j.process_group IS NOT NULL ORDER BY b.id"""
        )
        return [RunningShell(f"sh{number}", *columns) for number, *columns in rows]

    def logged_calls(self, thread_id: str) -> dict[str, tuple[str, Any, bool]]:
        rows = self._rows(
            "SELECT call_id, status, record, abandoned FROM call_log WHERE thread_id = ?", (thread_id,)
        )
        return {
            call_id: (status, json_or(record, {}), bool(abandoned)) for call_id, status, record, abandoned in rows
        }

    def calls_only_in_journal(self, thread_id: str) -> set[str]:
        statement = """SELECT DISTINCT call_id FROM journal j WHERE thread_id = ? AND NOT EXISTS (
            SELECT 1 FROM call_log l WHERE l.thread_id = j.thread_id AND l.call_id = j.call_id)"""
        return set(self._column(statement, thread_id))

    def checkpointed_threads(self) -> list[str]:
        return self._column(
            """SELECT thread_id FROM (
                SELECT thread_id, max(rowid) AS number FROM checkpoints WHERE checkpoint_ns = '' GROUP BY thread_id
                UNION ALL SELECT thread_id, 0 FROM threads t WHERE checkpoint_id IS NOT NULL AND NOT EXISTS (
                    SELECT 1 FROM checkpoints c WHERE c.thread_id = t.thread_id AND c.checkpoint_ns = '')
                UNION ALL SELECT thread_id, 0 FROM (SELECT thread_id FROM transcript UNION
                    SELECT thread_id FROM journal) o WHERE NOT EXISTS (
                    SELECT 1 FROM threads t WHERE t.thread_id = o.thread_id) AND NOT EXISTS (
                    SELECT 1 FROM checkpoints c WHERE c.thread_id = o.thread_id AND c.checkpoint_ns = '')) f
            ORDER BY number DESC"""
        )

    def damaged_checkpoints(self, thread_id: str) -> dict[str, str]:
        found = check_checkpoints(self._connection.stream, self._decoder, thread_id)
        return {one.id: one.problem for one in found if one.problem}

    def damaged_rows(self) -> list[str]:
        from graph_agent.storage.sqlite.health import damaged_rows  # noqa: PLC0415 - only doctor needs it

        if self.is_foreign or self._column("PRAGMA user_version") != [SCHEMA_VERSION]:
            return []  # The columns of an older schema are checked once it is migrated.
        return [f"thread {row.thread_id}: {row}" for row in damaged_rows(self._connection.stream)]

    def lost_threads(self) -> int:
        from graph_agent.storage.sqlite.thread_lock import lost_threads  # noqa: PLC0415 - as above

        return 0 if self.is_foreign else len(lost_threads(self._connection.stream, self._connection.path))

    def unused_requests(self) -> list[int]:
        is_current = not self.is_foreign and self._column("PRAGMA user_version") == [SCHEMA_VERSION]
        return self._column("SELECT early_tokens FROM inbox WHERE early_tokens > 0") if is_current else []

    def missing_rows(self, thread_id: str) -> list[str]:
        from graph_agent.storage.sqlite.health import missing_rows  # noqa: PLC0415 - as above

        return list(missing_rows(self._rows, thread_id))

    def newest_checkpoint(self, thread_id: str) -> str:
        statement = "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
        [newest] = self._column(statement, thread_id)
        return str(newest or "")

    def checkpoint(self, thread_id: str, checkpoint_id: str) -> StoredCheckpoint | None:
        rows = self._rows(f"{_CHECKPOINTS} AND checkpoint_id = ?", (thread_id, checkpoint_id))
        return CheckpointRow(rows[0], partial(self._decoded, thread_id)) if rows else None

    def checkpoints(self, thread_id: str, newest: int | None = None) -> list[StoredCheckpoint]:
        values = (thread_id, _ALL if newest is None else newest)
        rows = self._rows(f"{_CHECKPOINTS} ORDER BY checkpoint_id DESC LIMIT ?", values)
        return [CheckpointRow(row, partial(self._decoded, thread_id)) for row in reversed(rows)]

    def count_checkpoints(self, thread_id: str) -> int:
        statement = "SELECT count(*) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
        [count] = self._column(statement, thread_id)
        return int(count)

    def ancestors(self, thread_id: str, checkpoint_id: str | None) -> Iterator[StoredCheckpoint]:
        key = (thread_id, "", checkpoint_id or "")
        with self._naming_damage():
            yield from line(self._connection.stream, key, self._decoder, self._read)

    def delta_history(self, thread_id: str, checkpoint_id: str, channels: Sequence[str]) -> dict[str, DeltaHistory]:
        key = (thread_id, "", checkpoint_id)
        with self._naming_damage():
            found = delta_history(self._connection.stream, key, channels, self._decoder, self._read)
        return {
            channel: DeltaHistory(one.get("seed"), [value for _, _, value in one["writes"]])
            for channel, one in found.items()
        }

    def writes(self, thread_id: str, checkpoint_id: str) -> list[StoredWrite]:
        key = (thread_id, "", checkpoint_id)
        with self._naming_damage():
            return [
                StoredWrite(task_id, path, channel, self._write(key, (channel, kind, content)))
                for task_id, path, channel, kind, content in self._rows(_WRITES, key[::2])
            ]

    def written_channels(self, thread_id: str, checkpoint_id: str) -> list[tuple[str, str]]:
        rows = self._rows(
            "SELECT task_path, channel FROM writes "
            "WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?",
            (thread_id, checkpoint_id),
        )
        return [(path, channel) for path, channel in rows]

    def call_writes(self, thread_id: str, checkpoint_ids: Sequence[str]) -> Iterator[tuple[str, Any]]:
        rows = self._rows(
            """SELECT checkpoint_id, type, value FROM writes
            WHERE thread_id = ? AND checkpoint_ns = '' AND channel = 'calls'
            AND checkpoint_id IN (SELECT value FROM json_each(?)) ORDER BY checkpoint_id, task_path, idx""",
            (thread_id, json.dumps(list(checkpoint_ids))),
        )
        with self._naming_damage():
            for checkpoint_id, kind, content in rows:
                yield checkpoint_id, self._write((thread_id, "", checkpoint_id), ("calls", kind, content))

    def messages(self, thread_id: str, *, all_branches: bool = False) -> Iterator[TranscriptEntry]:
        rows = self._connection.stream(
            f"""{_BRANCHES} SELECT {_MESSAGE} FROM transcript t
            WHERE thread_id = ?1 AND {"TRUE" if all_branches else _IS_SHOWN} ORDER BY seq""",  # noqa: S608 - nothing from outside
            (thread_id,),
        )
        for row in rows:
            yield entry_of(row)

    def newest_messages(
        self, thread_id: str, limit: int, *, with_system: bool
    ) -> tuple[list[TranscriptEntry], int]:
        where = f"FROM transcript t WHERE thread_id = ?1 AND {_IS_SHOWN}"
        where += "" if with_system else " AND role <> 'system'"
        rows = self._rows(f"{_BRANCHES} SELECT {_MESSAGE} {where} ORDER BY seq DESC LIMIT ?2", (thread_id, limit))
        [total] = self._column(f"{_BRANCHES} SELECT count(*) {where}", thread_id)
        return [entry_of(row) for row in rows], total

    def last_seq(self, thread_id: str) -> int:
        [last] = self._column("SELECT coalesce(max(seq), 0) FROM transcript WHERE thread_id = ?", thread_id)
        return int(last)

    def search_index(self, terms: str) -> list[tuple[str, int]]:
        index = "words" if self._connection.is_legacy else "search_index"
        try:
            if not self._rows(_HAS_INDEX, (index,)):
                return []
            rows = self._rows(_INDEXED.format(index=index), {"terms": terms})
        except DamagedDatabase:
            return []
        return [(thread_id, seq) for thread_id, seq, _ in rows]

    def search_text(self, words: Sequence[str]) -> list[tuple[str, int]]:
        patterns = []
        for word in words[:_LONGEST_PATTERN]:
            # Only where a body, which is JSON, holds the word unescaped, and SQLite compares it as Python does.
            is_plain = json.dumps(word, ensure_ascii=False) == f'"{word}"'
            if is_plain and (word.isascii() or word.upper() == word.lower()):
                patterns.append("%" + re.sub(r"([!%_])", r"!\1", word[:_LONGEST_PATTERN]) + "%")
        condition = " AND ".join([_IS_SEARCHED, *(["body LIKE ? ESCAPE '!'"] * len(patterns))])
        rows = self._rows(f"SELECT thread_id, seq FROM transcript WHERE {condition} {_NEWEST_FIRST}", patterns)  # noqa: S608 - only question marks go in
        return [(thread_id, seq) for thread_id, seq in rows]

    def message(self, thread_id: str, seq: int) -> tuple[str, str, str, str, str, str | None] | None:
        for role, body, message_id, at, title, checkpoint_id in self._rows(_FOUND, (thread_id, seq)):
            return role, body, message_id, at, title, checkpoint_id
        return None

    def matching_ids(
        self, kinds: Sequence[IdKind], text: str, *, exact: bool, thread_id: str | None = None
    ) -> list[tuple[IdKind, str, str]]:
        within = "" if thread_id is None else "AND thread_id = :thread"
        selects = []
        for kind in kinds:
            name, source = _ID_SOURCES[kind]
            fits = f"{name} = :text"
            if not exact:  # Tables show the last eight characters.
                fits = f":text IN (substr({name}, 1, :n), substr({name}, -:n), substr(substr({name}, -8), 1, :n))"
            selects.append(f"SELECT '{kind}', thread_id, {name} FROM {source} AND {fits} {within}")  # noqa: S608 - names of our own
        named = {"text": text, "n": len(text), "thread": thread_id}
        rows = self._rows(f"{' UNION '.join(selects)} ORDER BY 2, 3", named)
        return [(kind, thread, found) for kind, thread, found in rows]

    def pruned_checkpoint(self, thread: str, text: str, shortest: int) -> tuple[str, str, str | None] | None:
        named = {"id": text, "n": len(text), "thread": thread, "shortest": shortest}
        for thread_id, checkpoint_id, following in self._rows(_PRUNED, named):
            return thread_id, checkpoint_id, following
        return None

    def sub_agents(self, thread_id: str) -> list[str]:
        return self._column(_BELOW, thread_id)

    def has_unfinished_rewind(self, thread_id: str) -> bool:
        statement = "SELECT 1 FROM rewinds WHERE thread_id = ? AND status NOT IN ('done', 'reverted', 'imported')"
        return bool(self._rows(statement, (thread_id,)))

    def export_rows(self, table: str, columns: Sequence[str], thread_id: str) -> Generator[tuple[Any, ...]]:
        names = ", ".join(_EXPORTED_AS.get((table, column), column) for column in columns)
        order = _EXPORT_ORDER.get(table, "rowid")
        statement = f"SELECT {names} FROM {table} WHERE thread_id = ? ORDER BY {order}"  # noqa: S608 - names of our own
        return self._connection.stream(statement, (thread_id,))

    def _decoded(self, thread_id: str, row: Sequence[Any]) -> Link:
        with self._naming_damage():
            return self._read(self._decoder, thread_id, row)

    def _write(self, key: tuple[str, str, str], row: tuple[str, str, bytes]) -> Any:
        return self._decoder.write(*row) if self.is_foreign else read_write(self._decoder, key, row)

    @contextmanager
    def _naming_damage(self) -> Iterator[None]:
        """An error about a checkpoint also says which file, what is whole, and what to do."""
        try:
            yield
        except BrokenCheckpoint as broken:
            raise explain_damage(self.path, self._connection.stream, broken) from broken

    def _column(self, statement: str, *values: str | None) -> list[Any]:
        return [row[0] for row in self._rows(statement, values)]

    def _calls(self, record: str, where: str, parameters: Sequence[Any]) -> Iterator[CallRow]:
        rows = self._connection.stream(
            f"""SELECT l.thread_id, t.next_nodes = '[]', l.abandoned, json_array(json_array({_CALL_ID}, {record},
                CASE WHEN {_IS_OPEN} THEN {_ATTEMPTS.format(call="l")} ELSE '[]' END, {_ANSWERS.format(call="l")}))
            FROM call_log l JOIN threads t USING (thread_id)
            WHERE {where} ORDER BY t.updated_at DESC, l.thread_id, l.seq""",  # noqa: S608 - conditions are ours
            parameters,
        )
        for thread_id, is_idle, is_abandoned, calls in rows:
            for call in calls_of(thread_id, calls, self._blobs):
                yield call._replace(is_idle=bool(is_idle), is_abandoned=bool(is_abandoned))
