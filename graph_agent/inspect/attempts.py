"""The journal rows of a call, as whoever looks into a broken-off call needs them."""

from collections.abc import Sequence
from typing import Any

from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.inspect.ledger import load_json
from graph_agent.ports import Intent, JournalRow

__all__ = ["read_attempts"]


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
