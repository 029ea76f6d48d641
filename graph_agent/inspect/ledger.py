"""Reads calls out of the ledger together with what the journal and the decisions say about them.

One statement, however many threads and calls there are.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from graph_agent.errors import DamagedDatabase
from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.inspect.effective import Attempt, CallView, StandingAnswer, effective_record
from graph_agent.inspect.lives import Lives
from graph_agent.inspect.outcomes import read_outcome

__all__ = [
    "OPEN",
    "OPEN_BY_THREAD",
    "WORKS_FOR_NOBODY",
    "approval_answer",
    "evidence_of",
    "load_json",
    "read_calls",
    "shared_call_ids",
    "stream_calls",
    "view_of",
    "views_of",
]

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
    database: ReadOnlyDatabase, lives: Lives, where: str = "1", parameters: Sequence[Any] = ()
) -> list[CallView]:
    """The calls that `stream_calls` gives."""
    return list(stream_calls(database, lives, where, parameters))


def stream_calls(
    database: ReadOnlyDatabase,
    lives: Lives,
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
    for thread_id, is_at_rest, is_left_behind, call in rows:
        is_settled = bool(is_at_rest or is_left_behind)
        is_held = thread_id in lives.held
        for view in views_of(database, thread_id, call, is_held=is_held, is_at_rest=is_settled):
            yield replace(view, record={**view.record, "left_behind": True}) if is_left_behind else view


def views_of(
    database: ReadOnlyDatabase, thread_id: str, calls: str, *, is_held: bool, is_at_rest: bool
) -> list[CallView]:
    """Calls with their evidence, as JSON text, turned into what is shown."""
    views = []
    for call_id, record, attempts, answers in load_json(calls):
        # A call left open on a branch that the thread has come away from is nobody's question any more.
        evidence = ("[]" if is_at_rest else attempts, answers)
        whole = {**_UNKNOWN, "call_id": call_id, **_record(record)}
        views.append(view_of(database, thread_id, whole, evidence, is_held=is_held or is_at_rest))
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
    shown = (record.get("attempt", 1), record.get("digest", ""))
    fitting = [
        StandingAnswer(kind, reason, by, at, applied_at)
        for question, attempt, digest, kind, reason, by, at, applied_at in answers
        if asked is None or (question == asked and (attempt, digest) == shown)
    ]
    return max(fitting, key=lambda answer: answer.at) if fitting else None
