"""Threads in short: one line each, with what they wait for. Two statements, however many threads there are."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.inspect.effective import CallView, ThreadStatus, thread_status
from graph_agent.inspect.holder import Lease, is_alive
from graph_agent.inspect.ledger import OPEN, read_calls

__all__ = ["ThreadSummary", "read_threads"]

_STORED = (
    "thread_id",
    "title",
    "workspace",
    "model",
    "mode",
    "created_at",
    "updated_at",
    "checkpoint_id",
    "turns",
    "outcome",
    "parent_thread",
)
_COLUMNS = f"""{", ".join(f"t.{name}" for name in _STORED)},
    (SELECT count(*) FROM inbox i WHERE i.thread_id = t.thread_id AND i.taken_at IS NULL),
    t.next_nodes = '[]', s.pid, s.process_started, s.boot_id, s.host, s.since, s.ended_at"""  # noqa: S608 - names of our own columns


@dataclass(frozen=True, slots=True)
class ThreadSummary:
    """One thread."""

    thread_id: str
    title: str
    workspace: str
    model: str
    mode: str
    created_at: str
    updated_at: str
    checkpoint_id: str | None
    """The head."""
    turns: int
    outcome: str
    """How the last turn ended: done, limit, stopped; empty while one is under way."""
    parent_thread: str | None
    queued_messages: int
    status: ThreadStatus
    pending_approvals: int
    """Calls that wait for an answer nobody has given yet."""
    interrupted_calls: int
    """Calls that wait for a recovery decision nobody has made yet."""
    holder: Lease | None
    """The living process that holds the thread."""
    last_lease: Lease | None
    """The last process that held the thread, dead or alive."""


def read_threads(
    database: ReadOnlyDatabase, where: str = "1", parameters: Sequence[Any] = ()
) -> list[ThreadSummary]:
    """The threads that fulfil a condition on `t`, newest first."""
    rows = database.rows(
        f"""SELECT {_COLUMNS} FROM threads t LEFT JOIN leases s USING (thread_id)
        WHERE {where} ORDER BY t.updated_at DESC, t.thread_id""",  # noqa: S608 - conditions are ours
        parameters,
    )
    open_calls: dict[str, list[CallView]] = defaultdict(list)
    for view in read_calls(database, f"{OPEN} AND t.next_nodes <> '[]' AND {where}", parameters):
        open_calls[view.thread_id].append(view)
    return [_summary(row, open_calls[row[0]]) for row in rows]


def _summary(row: tuple[Any, ...], calls: list[CallView]) -> ThreadSummary:
    stored = dict(zip(_STORED, row, strict=False))
    queued, is_at_rest, *leased = row[len(_STORED) :]
    lease = Lease(*leased) if leased[0] is not None else None
    holder = lease if lease is not None and is_alive(lease) else None
    return ThreadSummary(
        **stored,
        queued_messages=queued,
        status=thread_status(calls, is_at_rest=bool(is_at_rest), is_held=holder is not None),
        pending_approvals=sum(view.is_waiting for view in calls),
        interrupted_calls=sum(view.is_interrupted for view in calls),
        holder=holder,
        last_lease=lease,
    )
