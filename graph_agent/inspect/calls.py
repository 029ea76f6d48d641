"""Calls with the status that the next run would give them, the status of their thread, and statistics of tools."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import ceil
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from graph_agent.calls import FINAL, MAX_AUTOMATIC_RETRIES, OUTCOMES, STATUSES, STOPPED_BY_USER, outcome_of
from graph_agent.ports.read_store import (
    Attempt,
    CallRow,
    Lease,
    ReadStore,
    RunningShell,
    StandingAnswer,
    StoredAnswer,
)

if TYPE_CHECKING:
    from graph_agent.events import CallOutcome
    from graph_agent.ports import Answer, JournalRow

__all__ = [
    "CALL_WORDS",
    "AttemptView",
    "CallEnd",
    "CallView",
    "Leases",
    "ThreadStatus",
    "ToolStatistics",
    "answer_words",
    "author_words",
    "call_end",
    "call_name",
    "decision_words",
    "describe_end",
    "effective_record",
    "is_alive",
    "read_leases",
    "read_statistics",
    "running_shells",
    "thread_status",
    "view_attempts",
    "view_calls",
]

AttemptStatus = Literal["success", "error", "running", "outcome_unknown", "never_started"]
ThreadStatus = Literal["interrupted", "waiting", "running", "resumable", "idle"]
"""In order of precedence. resumable: no process works on the rest; the next run continues it without asking."""


@dataclass(frozen=True, slots=True)
class CallView:
    """A call as it is shown."""

    thread_id: str
    record: Mapping[str, Any]
    """The `ToolCallInfo` with its effective status; `stored_status` where the stored one differs."""
    answer: StandingAnswer | None = None
    """To the question that the call waits with, or waited with last."""
    retries_itself: bool = False
    """Whether it is interrupted and the next run repeats it without asking: it only reads, or never started."""
    answers: tuple[StoredAnswer, ...] = field(default=(), compare=False, repr=False)
    """All that it was given and that were not superseded."""
    attempts: tuple["AttemptView", ...] = field(default=(), compare=False)
    """Of a call that was asked for by its id."""
    is_reverted: bool = False
    """Whether a rewind reverted all that ran of it."""

    @property
    def is_waiting(self) -> bool:
        """Whether it needs an approval that nobody has answered."""
        return self.record["status"] == "awaiting_approval" and self.answer is None

    @property
    def is_interrupted(self) -> bool:
        """Whether it needs a recovery decision that nobody has made."""
        return self.record["status"] == "interrupted" and self.answer is None and not self.is_resumable

    @property
    def is_resumable(self) -> bool:
        """Whether the next run continues it without asking: a sub-agent does its work, and asks for itself."""
        is_resumable = bool(self.record.get("resumable")) or self.retries_itself
        return self.record["status"] == "interrupted" and is_resumable

    @property
    def is_answered(self) -> bool:
        """Whether its question has an answer that its thread has not applied yet."""
        return self.record["status"] in ("awaiting_approval", "interrupted") and self.answer is not None


@dataclass(frozen=True, slots=True)
class Leases:
    """The last lease of each thread, and the threads that a living process holds."""

    by_thread: Mapping[str, Lease]
    held: frozenset[str]


def read_leases(store: ReadStore, families: Sequence[str] | None = None) -> Leases:
    """Look at every lease, or those of some threads with the sub-agents below them.

    Not inside `ReadStore.snapshot`, and before anything that depends on it is read.
    What a process wrote before it was seen dead is read afterwards. Otherwise a call that was read as executing
    would be taken for interrupted when its process has merely finished it and exited.
    """
    leases = store.leases(families)
    return Leases(leases, frozenset(thread_id for thread_id, lease in leases.items() if is_alive(lease)))


def is_alive(lease: Lease) -> bool:
    """Whether the lease is held: neither ended, nor left by a process that died or a machine that restarted.

    A process on another host counts as alive: it cannot be checked.
    """
    if lease.ended_at is not None:
        return False
    if lease.host != os.uname().nodename:
        return True
    from graph_agent.ports.background import boot_id, process_started  # noqa: PLC0415 - few leases are open

    return lease.boot_id == boot_id() and process_started(lease.pid) == lease.process_started


def view_calls(calls: Iterable[CallRow], is_held: Callable[[str], bool]) -> Iterator[CallView]:
    """The views of calls, those of one thread one after another and as the model asked; `is_held` takes its id."""
    asking = ""
    for call in calls:
        yield _view(call, is_held=is_held(call.thread_id), is_unreached=call.thread_id == asking)
        if call.record.get("resumable") and call.record["status"] not in FINAL and not call.is_abandoned:
            asking = call.thread_id


def _view(call: CallRow, *, is_held: bool, is_unreached: bool) -> CallView:
    """The view of a call with its evidence; a call that its thread does not wait for keeps its stored status.

    A call behind one whose sub-agent has not ended is unreached: once approved, it runs when its turn comes.
    """
    is_settled = call.is_idle or call.is_abandoned
    is_kept = is_held or is_settled or (is_unreached and call.record["status"] == "pending")
    record = effective_record(call.record, () if is_settled else call.attempts, is_held=is_kept)
    answer = _standing_answer(record, call.answers)
    shown = {**record, "abandoned": True} if call.is_abandoned else record
    retries_itself = not is_settled and _retries_itself(record, call.attempts)
    return CallView(call.thread_id, shown, answer, retries_itself, tuple(call.answers))


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One attempt at a call."""

    attempt: int
    status: AttemptStatus
    started_at: str | None
    ended_at: str | None
    approval: StandingAnswer | None
    """None: it needed none, or is a retry, which is what the attempt before it was decided to lead to."""
    recovery: StandingAnswer | None
    """What was decided once it had been interrupted."""
    is_reverted: bool = False
    """Whether a rewind reverted it."""


def view_attempts(
    rows: "Sequence[JournalRow]", answers: Sequence[StoredAnswer], *, is_held: bool
) -> tuple[AttemptView, ...]:
    """The attempts of a call that were started or answered."""
    started = {row.attempt: row for row in rows}
    given = {(stored.question, stored.attempt): stored.answer for stored in answers}
    newest = max(started, default=0)
    views = []
    for number in sorted({*started, *(attempt for _, attempt in given)}):
        row = started.get(number)
        status: AttemptStatus = "never_started"
        if row is not None and row.status in ("success", "error"):
            status = "success" if row.status == "success" else "error"
        elif row is not None and row.status != "not_started":
            status = "running" if is_held and number == newest and row.ended_at is None else "outcome_unknown"
        started_at, ended_at = (None, None) if row is None else (row.started_at, row.ended_at)
        approval, recovery = (given.get((question, number)) for question in ("approval", "recovery"))
        views.append(AttemptView(number, status, started_at, ended_at, approval, recovery))
    return tuple(views)


def _retries_itself(record: Mapping[str, Any], attempts: Sequence[Attempt]) -> bool:
    """As the session decides it for an interrupted call of low risk."""
    started = sum(attempt.status != "not_started" for attempt in attempts)
    return (
        record["status"] == "interrupted"
        and record.get("risk") == "low"
        and not record.get("resumable")
        and (record.get("kind") == "readonly" or not (record.get("started") or started))
        and started < MAX_AUTOMATIC_RETRIES
    )


def effective_record(record: Mapping[str, Any], attempts: Sequence[Attempt], *, is_held: bool) -> dict[str, Any]:
    """The record as the next run would find it; `attempts` without those that were reverted.

    A finished attempt decides, whatever the record says: the process died before it could note the result. Without
    a living holder, a call that was marked, or approved and not yet marked, is interrupted.
    """
    status = record["status"]
    if status in FINAL:
        outcome = outcome_of(record)
        return {**record, "outcome": outcome} if outcome else dict(record)
    finished = [attempt for attempt in attempts if attempt.status in ("success", "error")]
    if finished:
        stored = finished[-1].outcome or {}
        return {
            **record,
            **_start_time(finished[-1]),
            "status": finished[-1].status,
            "result": stored.get("output"),
            "error_msg": stored.get("error"),
            "ended_at": finished[-1].ended_at,
            "started": True,
            "stored_status": status,
        }
    is_approved = status == "pending" and bool(record.get("approved_at"))
    if is_held or not (status == "executing" or is_approved):
        return dict(record)
    started = [attempt for attempt in attempts if attempt.status != "not_started"]
    interrupted = {
        **record,
        **(_start_time(started[-1]) if started else {}),
        "status": "interrupted",
        "reason": "outcome_unknown" if started else "never_started",
        "started": bool(started) or bool(record.get("started")),
        "stored_status": status,
    }
    if record.get("requires_input") and is_approved and _retries_itself(interrupted, attempts):
        return dict(record)  # The answer is stored, and the next run passes it on.
    return interrupted


def thread_status(
    calls: Iterable[CallView], *, is_idle: bool, is_held: bool, is_asking: bool = False
) -> ThreadStatus:
    """What a thread does or waits for, from its open calls; `is_asking` where the graph itself put a question."""
    if is_idle:
        return "idle"
    views = list(calls)
    if any(view.is_interrupted for view in views):
        return "interrupted"
    if any(view.is_waiting for view in views) or (is_asking and not views):
        return "waiting"
    if is_held:
        return "running"
    # Every question left has its answer: the thread waits for the next run to apply it.
    if any(view.record["status"] == "interrupted" and not view.is_resumable for view in views):
        return "interrupted"
    return "waiting" if any(view.is_answered for view in views) else "resumable"


def running_shells(store: ReadStore, thread_id: str | None = None) -> tuple[RunningShell, ...]:
    """The background shells that run now, of one thread or of all."""
    from graph_agent.ports.background import boot_id, process_started  # noqa: PLC0415 - few threads have shells

    return tuple(
        shell
        for shell in store.unfinished_shells()
        if thread_id in (None, shell.thread_id)
        and shell.boot_id == boot_id()
        and process_started(shell.pid) == shell.process_started
    )


def _start_time(attempt: Attempt) -> dict[str, Any]:
    return {"started_at": attempt.started_at} if attempt.started_at else {}


def _standing_answer(record: Mapping[str, Any], answers: Sequence[StoredAnswer]) -> StandingAnswer | None:
    """The answer to the question the record has now; of a call without a question, the newest answer."""
    asked = {"awaiting_approval": "approval", "interrupted": "recovery"}.get(record["status"])
    shown = (record.get("attempt", 1), record.get("args_digest", ""))
    fitting = [
        stored.answer
        for stored in answers
        if asked is None or (stored.question == asked and (stored.attempt, stored.args_digest) == shown)
    ]
    return max(fitting, key=lambda answer: answer.at) if fitting else None


@dataclass(frozen=True, slots=True)
class ToolStatistics:
    """One tool over every thread of a database, reverted attempts included."""

    tool: str
    executions: int
    """Attempts that started."""
    successes: int
    failures: int
    unfinished: int
    """Attempts that were interrupted, or still run."""
    total_s: float
    """Seconds that the attempts with a result took together."""
    average_s: float | None
    p95_s: float | None
    """95 of 100 attempts with a result took no longer."""


def read_statistics(store: ReadStore) -> list[ToolStatistics]:
    """The statistics of each tool that ever ran, by name: counted from the journal of every thread."""
    statistics = []
    for tool, group in groupby(store.tool_runs(), key=itemgetter(0)):
        runs = list(group)
        statuses = [status for _, status, _ in runs]
        successes, failures = statuses.count("success"), statuses.count("error")
        ended = [took for _, status, took in runs if status in ("success", "error") and took is not None]
        seconds = sorted(round(max(took, 0.0), 3) for took in ended)
        statistics.append(
            ToolStatistics(
                tool=tool,
                executions=len(runs),
                successes=successes,
                failures=failures,
                unfinished=len(runs) - successes - failures,
                total_s=round(sum(seconds), 3),
                average_s=round(sum(seconds) / len(seconds), 3) if seconds else None,
                p95_s=seconds[ceil(0.95 * len(seconds)) - 1] if seconds else None,
            )
        )
    return statistics


class CallEnd(NamedTuple):
    """How a call ended, in words."""

    word: str
    """Its outcome; its status if it has none."""
    by: str
    """Who or what decided that, if a decision ended it and that is known."""
    reason: str

    @property
    def cause(self) -> str:
        """Who decided, and why."""
        return ": ".join(filter(None, (f"by {self.by}" if self.by else "", self.reason)))

    @property
    def phrase(self) -> str:
        """The outcome, and who decided."""
        return f"{self.word} by {self.by}" if self.by else self.word


def call_end(record: Mapping[str, Any]) -> CallEnd:
    """How a call ended, from its record, a `ToolCallInfo`."""
    return describe_end(
        str(record["status"]),
        outcome_of(record),
        str(record.get("decided_by") or ""),
        str(record.get("reason") or ""),
    )


def describe_end(status: str, outcome: "CallOutcome | None", by: str, reason: str) -> CallEnd:
    """How a call ended, from the parts of its record."""
    if outcome is None:
        return CallEnd(status, "", reason.replace("_", " ") if status == "interrupted" else reason)
    if outcome != "stopped":
        return CallEnd(outcome, by, reason.replace("_", " ") if outcome == "cancelled" else reason)
    # A record of an older version names here whoever had approved the call before.
    if not reason.startswith(STOPPED_BY_USER):
        return CallEnd(outcome, "a limit", reason)
    return CallEnd(outcome, "user", reason.removeprefix(STOPPED_BY_USER).removeprefix(", "))


_ANSWER_WORDS = {
    **OUTCOMES,
    "approve": "approved",
    "edit": "approved as edited",
    "answer": "answered",
    "retry": "retried",
    "done": "marked as done",
}


_PLACES = {"": "another chat or run", "cli ": "another terminal", "web ": "the browser"}


def author_words(by: str) -> str:
    """Who gave an answer, in words for the person here, who does not know process ids."""
    from graph_agent.ports.background import process_started  # noqa: PLC0415 - few answers come from elsewhere

    where, found, pid = by.partition("pid ")
    if found and not where and pid.isdecimal() and (int(pid) == os.getpid() or not process_started(int(pid))):
        return "you"
    return f"you, in {_PLACES[where]}" if found and where in _PLACES else by


def answer_words(answer: "StandingAnswer | Answer") -> str:
    """What an answer decided, and who gave it."""
    return decision_words(answer.kind, answer.by)


def decision_words(kind: str, by: str) -> str:
    """What was decided and, where that is known, by whom."""
    words = _ANSWER_WORDS.get(kind, kind)
    return f"{words} by {by}" if by else words


CALL_WORDS = tuple(dict.fromkeys((*STATUSES, *OUTCOMES.values())))
"""What `--status` takes: every status, and every outcome of a cancelled call."""


def call_name(thread_id: str, call_id: str, shared: frozenset[str]) -> str:
    """The id that commands accept: the call id, or THREAD:CALL if several threads have a call with this id."""
    return f"{thread_id}:{call_id}" if call_id in shared else call_id
