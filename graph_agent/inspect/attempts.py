"""The journal rows of a call, as whoever looks into a broken-off call needs them."""

from collections.abc import Sequence
from typing import Any

from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.inspect.ledger import load_json
from graph_agent.ports import Done, Intent, JournalRow

__all__ = ["read_attempts", "read_done"]

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
