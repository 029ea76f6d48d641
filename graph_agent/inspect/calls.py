"""Reads calls out of the ledger together with what the journal and the decisions say about them.

One statement, however many threads and calls there are.

The journal rows of a call, as whoever looks into a broken-off call needs them.

What a journal row recorded as the outcome of a call; big ones stand in a compressed file beside the database.

What a reader shows that may not write: the status the next life would give a call, and what a thread waits for.

Pure: records, journal rows and liveness in, statuses out.

Background shells that run now, as database and process table tell it. Ends none of them.
"""

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from graph_agent.calls import FINAL
from graph_agent.config.paths import blob_dir
from graph_agent.errors import DamagedDatabase
from graph_agent.inspect.connection import Leases, ReadOnlyDatabase
from graph_agent.ports import Done, Intent, JournalRow
from graph_agent.ports.background import boot_id, process_started

__all__ = [
    "OPEN",
    "OPEN_BY_THREAD",
    "WORKS_FOR_NOBODY",
    "Attempt",
    "CallView",
    "RunningShell",
    "StandingAnswer",
    "ThreadStatus",
    "approval_answer",
    "effective_record",
    "evidence_of",
    "load_json",
    "read_attempts",
    "read_calls",
    "read_done",
    "read_outcome",
    "read_shells",
    "shared_call_ids",
    "stream_calls",
    "thread_status",
    "view_of",
    "views_of",
]

ThreadStatus = Literal["interrupted", "waiting", "running", "resumable", "idle"]
"""In order of precedence. resumable: no process works on the rest; the next run continues it without asking."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One journal row of a call."""

    number: int
    status: str
    ended_at: str | None
    outcome: Mapping[str, Any] | None
    """Set when finished: `{status, output, error, ...}`."""
    started_at: str = ""


@dataclass(frozen=True, slots=True)
class StandingAnswer:
    """The answer to a question that counts, applied by the graph or not yet."""

    kind: str
    reason: str
    by: str
    at: str
    applied_at: str | None


@dataclass(frozen=True, slots=True)
class CallView:
    """A call as it is shown."""

    thread_id: str
    record: Mapping[str, Any]
    """The `ToolCallInfo` with its effective status; `stored_status` where the stored one differs."""
    answer: StandingAnswer | None = None
    """Of the question that the call waits with, or waited with last."""

    @property
    def is_waiting(self) -> bool:
        """Whether an approval is asked for and nobody has answered."""
        return self.record["status"] == "awaiting_approval" and self.answer is None

    @property
    def is_interrupted(self) -> bool:
        """Whether a recovery decision is asked for and nobody has made it."""
        return self.record["status"] == "interrupted" and self.answer is None and not self.goes_on

    @property
    def goes_on(self) -> bool:
        """Whether the next life goes on with it unasked: a sub-agent does its work, and asks for itself."""
        return self.record["status"] == "interrupted" and bool(self.record.get("resumable"))

    @property
    def is_answered(self) -> bool:
        """Whether its question has an answer that its thread has not taken in yet."""
        return self.record["status"] in ("awaiting_approval", "interrupted") and self.answer is not None


def effective_record(record: Mapping[str, Any], attempts: Sequence[Attempt], *, is_held: bool) -> dict[str, Any]:
    """The record as the next life would find it; `attempts` without those undone by a rewind.

    A finished attempt decides, whatever the record says: the process died before it could note the result. Without
    a living holder, a call that was marked, or approved and not yet marked, is interrupted.
    """
    status = record["status"]
    if status in FINAL:
        return dict(record)
    finished = [attempt for attempt in attempts if attempt.status in ("success", "error")]
    if finished:
        return {**record, **_recorded(finished[-1]), "stored_status": status}
    is_let_through = status == "pending" and bool(record.get("approved_at"))
    if is_held or not (status == "executing" or is_let_through):
        return dict(record)
    begun = [attempt for attempt in attempts if attempt.status != "not_started"]
    may_have_started = bool(begun)
    return {
        **record,
        **(_started(begun[-1]) if begun else {}),
        "status": "interrupted",
        "reason": "outcome_unknown" if may_have_started else "never_started",
        "started": may_have_started or bool(record.get("started")),
        "stored_status": status,
    }


def thread_status(calls: Iterable[CallView], *, is_idle: bool, is_held: bool, asks: bool = False) -> ThreadStatus:
    """What a thread is doing or waits for, from its open calls; `asks` where the graph itself put a question."""
    if is_idle:
        return "idle"
    views = list(calls)
    if any(view.is_interrupted for view in views):
        return "interrupted"
    if any(view.is_waiting for view in views) or (asks and not views):
        return "waiting"
    if is_held:
        return "running"
    # Every question left has its answer: the thread waits for the next life to take it in.
    if any(view.record["status"] == "interrupted" and not view.goes_on for view in views):
        return "interrupted"
    return "waiting" if any(view.is_answered for view in views) else "resumable"


def _started(attempt: Attempt) -> dict[str, Any]:
    return {"started_at": attempt.started_at} if attempt.started_at else {}


def _recorded(attempt: Attempt) -> dict[str, Any]:
    outcome = attempt.outcome or {}
    return {
        **_started(attempt),
        "status": attempt.status,
        "result": outcome.get("output"),
        "error_msg": outcome.get("error"),
        "ended_at": attempt.ended_at,
        "started": True,
    }


_PREFIX = "blob:sha256:"


def read_outcome(text: str, database: Path) -> Mapping[str, Any]:
    """The outcome, `{status, output, error, ...}`; empty where its file is gone or torn."""
    try:
        outcome: Any = json.loads(text)
        if isinstance(outcome, dict) and "blob" in outcome:
            outcome = json.loads(_content(str(outcome["blob"]), blob_dir(database)))
    except (OSError, ValueError, zlib.error):
        return {}
    return outcome if isinstance(outcome, dict) else {}


def _content(reference: str, folder: Path) -> bytes:
    digest = reference.removeprefix(_PREFIX)
    if not digest.isalnum():
        raise ValueError(f"{reference!r} is no reference to a blob")
    content = zlib.decompress((folder / "objects" / digest[:2] / digest[2:]).read_bytes())
    if hashlib.sha256(content).hexdigest() != digest:
        raise ValueError(f"{reference!r} does not hold what its name says")
    return content


# A sub-agent whose call has ended, or lies on a branch that its parent came away from, works for nobody.
WORKS_FOR_NOBODY = """EXISTS (SELECT 1 FROM threads c JOIN ledger p
    ON p.thread_id = c.parent_thread AND p.call_id = c.parent_call WHERE c.thread_id = {of}.thread_id
    AND (p.left_behind OR p.status IN ('success', 'error', 'cancelled')))"""
OPEN = (
    "l.status NOT IN ('success', 'error', 'cancelled') AND NOT l.left_behind "
    f"AND NOT {WORKS_FOR_NOBODY.format(of='l')}"
)
"""Condition for `read_calls` that the partial index on open calls serves."""

# Of each call: the rows of the journal, oldest first, where they matter; and the answers nobody superseded.
# Appending nothing makes plain text of them: nested in another array, JSON would be taken apart.
_ATTEMPTS = """(
    SELECT json_group_array(json_array(attempt, status, ended_at, outcome, started_at)) FROM (
        SELECT * FROM journal j WHERE j.thread_id = {call}.thread_id AND j.call_id = {call}.call_id AND NOT j.undone
        ORDER BY j.attempt)) || ''"""
_ANSWERS = """(
    SELECT json_group_array(json_array(question, attempt, args_digest, kind, reason, by, at, applied_at))
    FROM decisions d WHERE d.thread_id = {call}.thread_id AND d.call_id = {call}.call_id
    AND d.superseded_at IS NULL) || ''"""
# A long result stands in the journal only, in that of any attempt that has it.
_RECORD = """CASE WHEN NOT json_valid(l.record) OR l.status NOT IN ('success', 'error') THEN l.record
    WHEN json_type(l.record, '$.result') IS NOT NULL THEN l.record
    ELSE json_set(l.record, '$.result', (SELECT json_extract(j.outcome, '$.output') FROM journal j
        WHERE j.thread_id = l.thread_id AND j.call_id = l.call_id AND j.outcome IS NOT NULL
        ORDER BY j.attempt DESC LIMIT 1)) || '' END"""
_BRIEF = """CASE WHEN NOT json_valid(l.record) THEN l.record
    ELSE json_remove(l.record, '$.result', '$.preview') || '' END"""
_UNKNOWN: dict[str, Any] = {"call_id": "", "tool_name": "", "arguments": {}, "result": None, "error_msg": None}
"""What every reader relies on, for a record that was never stored whole."""

OPEN_BY_THREAD = f"""
    SELECT l.thread_id, json_group_array(json_array(
        l.call_id, l.record, {_ATTEMPTS.format(call="l")}, {_ANSWERS.format(call="l")})) AS calls
    FROM ledger l INDEXED BY ledger_open WHERE {OPEN} GROUP BY l.thread_id"""  # noqa: S608 - nothing from outside
"""SELECT of the open calls of each thread, as the JSON text that `views_of` takes."""


def read_calls(
    database: ReadOnlyDatabase, leases: Leases, where: str = "1", parameters: Sequence[Any] = ()
) -> list[CallView]:
    """The calls that `stream_calls` gives."""
    return list(stream_calls(database, leases, where, parameters))


def stream_calls(
    database: ReadOnlyDatabase,
    leases: Leases,
    where: str = "1",
    parameters: Sequence[Any] = (),
    *,
    brief: bool = False,
) -> Iterator[CallView]:
    """The calls that fulfil a condition on `l` (ledger) and `t` (threads): newest thread first, then as asked.

    A call left open on a branch that its thread came away from has `left_behind` in its record. In brief a record
    has neither result nor preview.
    """
    record = _BRIEF if brief else _RECORD
    rows = database.stream(
        f"""SELECT l.thread_id, t.next_nodes = '[]', l.left_behind, json_array(json_array(l.call_id, {record},
            CASE WHEN {OPEN} THEN {_ATTEMPTS.format(call="l")} ELSE '[]' END, {_ANSWERS.format(call="l")}))
        FROM ledger l JOIN threads t USING (thread_id)
        WHERE {where} ORDER BY t.updated_at DESC, l.thread_id, l.seq""",  # noqa: S608 - conditions are ours
        parameters,
    )
    for thread_id, is_idle, is_left_behind, call in rows:
        is_settled = bool(is_idle or is_left_behind)
        is_held = thread_id in leases.held
        for view in views_of(database, thread_id, call, is_held=is_held, is_idle=is_settled):
            yield replace(view, record={**view.record, "abandoned": True}) if is_left_behind else view


def views_of(
    database: ReadOnlyDatabase, thread_id: str, calls: str, *, is_held: bool, is_idle: bool
) -> list[CallView]:
    """Calls with their evidence, as JSON text, turned into what is shown."""
    views = []
    for call_id, record, attempts, answers in load_json(calls):
        # A call left open on a branch that the thread has come away from is nobody's question any more.
        evidence = ("[]" if is_idle else attempts, answers)
        whole = {**_UNKNOWN, "call_id": call_id, **_record(record)}
        views.append(view_of(database, thread_id, whole, evidence, is_held=is_held or is_idle))
    return views


def evidence_of(database: ReadOnlyDatabase, thread_id: str, call_ids: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Journal rows and answers of some calls of a thread, as the JSON text that `view_of` takes."""
    rows = database.rows(
        f"""SELECT w.call_id, {_ATTEMPTS.format(call="w")}, {_ANSWERS.format(call="w")}
        FROM (SELECT ? AS thread_id, value AS call_id FROM json_each(?)) w""",  # noqa: S608 - nothing from outside
        (thread_id, json.dumps(list(call_ids))),
    )
    return {call_id: (attempts, answers) for call_id, attempts, answers in rows}


def approval_answer(database: ReadOnlyDatabase, thread_id: str, call_id: str) -> StandingAnswer | None:
    """The newest answer to an approval of a call, whatever became of the call since."""
    rows = database.rows(
        """SELECT kind, reason, by, at, applied_at FROM decisions
        WHERE thread_id = ? AND call_id = ? AND question = 'approval' AND superseded_at IS NULL
        ORDER BY attempt DESC LIMIT 1""",
        (thread_id, call_id),
    )
    return StandingAnswer(*rows[0]) if rows else None


def view_of(
    database: ReadOnlyDatabase, thread_id: str, record: dict[str, Any], evidence: tuple[str, str], *, is_held: bool
) -> CallView:
    """A record and what `evidence_of` found about it, turned into what is shown."""
    attempts, answers = evidence
    tried = [
        Attempt(number, status, ended_at, read_outcome(outcome, database.path) if outcome else None, started_at)
        for number, status, ended_at, outcome, started_at in load_json(attempts)
    ]
    shown = effective_record(record, tried, is_held=is_held)
    return CallView(thread_id, shown, _standing(shown, load_json(answers)))


def shared_call_ids(database: ReadOnlyDatabase) -> frozenset[str]:
    """Call ids that occur in several threads, so that alone they name no call."""
    rows = database.rows("SELECT call_id FROM ledger GROUP BY call_id HAVING count(*) > 1")
    return frozenset(call_id for (call_id,) in rows)


def load_json(text: str) -> Any:
    """The value of a JSON column.

    Raises:
        DamagedDatabase: it holds something else.
    """
    if text == "[]":  # what most calls have of one or the other
        return []
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        raise DamagedDatabase(
            f"a column that must hold JSON does not ({error}); the database was changed by another program."
        ) from error


def _record(text: str) -> dict[str, Any]:
    """The record in a row of the ledger; raises DamagedDatabase where there is none."""
    record = load_json(text)
    if not isinstance(record, dict) or not isinstance(record.get("status"), str):
        raise DamagedDatabase(
            f"{text!r:.80} stands for the record of a call; the database was changed by another program."
        )
    return record


def _standing(record: dict[str, Any], answers: list[list[Any]]) -> StandingAnswer | None:
    """The answer to the question the record has now; of a call without a question, the newest answer."""
    asked = {"awaiting_approval": "approval", "interrupted": "recovery"}.get(record["status"])
    shown = (record.get("attempt", 1), record.get("args_digest", ""))
    fitting = [
        StandingAnswer(kind, reason, by, at, applied_at)
        for question, attempt, digest, kind, reason, by, at, applied_at in answers
        if asked is None or (question == asked and (attempt, digest) == shown)
    ]
    return max(fitting, key=lambda answer: answer.at) if fitting else None


_DONE = """
SELECT j.call_id, j.attempt, j.status, j.started_at, j.intent, l.record FROM journal j
LEFT JOIN ledger l ON l.thread_id = j.thread_id AND l.call_id = j.call_id
WHERE j.thread_id = ? AND NOT j.undone AND j.status <> 'not_started' ORDER BY j.started_at, j.rowid
"""


def read_attempts(database: ReadOnlyDatabase, thread_id: str, call_id: str) -> list[JournalRow]:
    """Every attempt that was not undone, oldest first, without the outcomes.

    Raises:
        DamagedDatabase: a row does not hold what it must.
    """
    rows = database.rows(
        """SELECT call_id, attempt, owner, status, started_at, ended_at, intent, process_group, process_started,
        boot_id FROM journal WHERE thread_id = ? AND call_id = ? AND NOT undone ORDER BY attempt""",
        (thread_id, call_id),
    )
    return [_row(row) for row in rows]


def read_done(database: ReadOnlyDatabase, thread_id: str) -> list[Done]:
    """Every attempt of a thread that may have begun and does not count as undone, oldest first.

    Raises:
        DamagedDatabase: a row does not hold what it must.
    """
    return [
        Done.recorded(
            attempt, None if intent is None else Intent(**load_json(intent)), load_json(record) if record else {}
        )
        for *attempt, intent, record in database.rows(_DONE, (thread_id,))
    ]


def _row(row: Sequence[Any]) -> JournalRow:
    call_id, attempt, owner, status, started_at, ended_at, intent, group, group_started, boot = row
    return JournalRow(
        call_id=call_id,
        attempt=attempt,
        owner=owner,
        status=status,
        started_at=started_at,
        ended_at=ended_at,
        intent=None if intent is None else Intent(**load_json(intent)),
        process_group=group,
        process_started=group_started,
        extra={} if boot is None else {"boot_id": boot},
    )


_THERE = "SELECT count(*) FROM sqlite_schema WHERE name = 'shells'"
_OPEN = """
SELECT id, shells.thread_id, command, shells.started_at, process_group, process_started, boot_id
FROM shells JOIN journal USING (thread_id, call_id, attempt) WHERE shells.ended_at IS NULL ORDER BY id
"""


@dataclass(frozen=True, slots=True)
class RunningShell:
    """One of them."""

    shell_id: str
    thread_id: str
    command: str
    started_at: str
    pid: int
    """Of its first process, which leads its group."""


def read_shells(database: ReadOnlyDatabase, thread_id: str | None = None) -> tuple[RunningShell, ...]:
    """Those of a thread, or all; none in a file from before there were any."""
    if database.rows(_THERE) == [(0,)]:
        return ()
    return tuple(
        RunningShell(f"sh{number}", thread, command, started_at, group)
        for number, thread, command, started_at, group, group_started, boot in database.rows(_OPEN)
        if thread_id in (None, thread)
        and group is not None
        and boot == boot_id()
        and process_started(group) == group_started
    )
