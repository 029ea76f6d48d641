"""The entry point for reading threads without running them: threads, calls, approvals, states, messages, ids."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Self

from graph_agent.errors import UnknownId
from graph_agent.inspect.calls import (
    CallView,
    ThreadStatus,
    ToolStatistics,
    read_leases,
    read_statistics,
    running_shells,
    thread_status,
    view_attempts,
    view_calls,
)
from graph_agent.inspect.ids import ALL_KINDS, Target, resolve
from graph_agent.inspect.threads import (
    RecentMessages,
    SearchHit,
    ThreadSummary,
    most_urgent,
    read_messages,
    read_recent,
    read_threads,
    search_messages,
    state_messages,
)
from graph_agent.ports.read_store import IdKind, ReadStore, RunningShell, StandingAnswer, TranscriptEntry

if TYPE_CHECKING:
    from graph_agent.inspect.history import HistoryEntry, Visits
    from graph_agent.inspect.state import CheckpointState
    from graph_agent.ports import ExecutedAttempt, Grant, JournalRow

__all__ = ["Inspection", "Reader"]


@dataclass(frozen=True, slots=True)
class Inspection:
    """A checkpoint's state, with what call log, journal and leases say about its calls."""

    state: "CheckpointState"
    status: ThreadStatus
    """Of the thread at its head; of an older checkpoint, what would be left to do from there."""
    calls: tuple[CallView, ...]
    roots: tuple[str, ...] = ()
    """Folders the thread may work in beside its workspace, as it is now."""
    threads_within: tuple[str, ...] = ()
    """Threads that run inside this one: of its subgraphs and sub-agents."""
    is_foreign: bool = False
    """Whether another program's graph wrote it, whose channels may mean anything."""
    shells: tuple[RunningShell, ...] = ()
    """The background shells of the thread that run now."""


class Reader:
    """Reads a database while other processes write. A context manager that closes it."""

    def __init__(self, store: ReadStore) -> None:
        self._store = store
        self.note = store.note
        """A limit of what can be read of the file, such as a log that cannot be opened; mostly empty."""
        self.is_foreign = store.is_foreign
        """Whether the file is of LangGraph's own saver: it has threads and checkpoints, and no call log."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._store.close()

    def resolve(self, text: str, workspace: str | None = None, kinds: tuple[IdKind, ...] = ALL_KINDS) -> Target:
        """The target of an id: exact, a unique part of 4 or more characters, THREAD:ID; empty is the newest thread.

        Raises:
            UnknownId: nothing matches, or several do.
        """
        return resolve(self._store, text, None if self.is_foreign else workspace, kinds)

    def threads(self, *, with_abandoned: bool = False) -> list[ThreadSummary]:
        """Every thread, newest first; usually without those that have no message and are not open."""
        return [one for one in read_threads(self._store) if with_abandoned or not one.is_abandoned]

    def workspaces(self) -> dict[str, str]:
        """The workspace of every thread, newest first."""
        return self._store.workspaces()

    def thread(self, thread_id: str) -> ThreadSummary:
        """One thread by its exact id.

        Raises:
            UnknownId: there is none.
        """
        for thread in self.family(thread_id):
            if thread.thread_id == thread_id:
                return thread
        raise UnknownId(f"There is no thread {thread_id!r}. `graph-agent threads list` shows them all.")

    def family(self, *thread_ids: str) -> list[ThreadSummary]:
        """Threads by their exact ids, and every sub-agent below them."""
        return read_threads(self._store, thread_ids)

    def top_thread(self, thread_id: str) -> str:
        """The thread that continues this one: itself, or the one at the top of a sub-agent's line of parents."""
        return self._store.top_thread(thread_id)

    def roots(self, thread_id: str) -> tuple[str, ...]:
        """The folders a thread may work in beside its workspace."""
        return self._store.roots(thread_id)

    def shells(self, thread_id: str | None = None) -> tuple[RunningShell, ...]:
        """The background shells that run now, of one thread or of all."""
        return running_shells(self._store, thread_id)

    def calls(self, thread_id: str | None = None, *, brief: bool = False) -> list[CallView]:
        """All that `iter_calls` gives."""
        return list(self.iter_calls(thread_id, brief=brief))

    def iter_calls(self, thread_id: str | None = None, *, brief: bool = False) -> Iterator[CallView]:
        """The call log, of one thread or of all: newest thread first, in each as the model asked.

        `brief` leaves out what fills memory and no list shows: results and previews.
        """
        held, reverted = read_leases(self._store).held, self._store.reverted_calls()
        for view in view_calls(self._store.calls(thread_id, is_brief=brief), held.__contains__):
            yield replace(view, is_reverted=(view.thread_id, view.record["call_id"]) in reverted)

    def call(self, thread_id: str, call_id: str) -> CallView:
        """One call by its exact ids.

        Raises:
            UnknownId: there is none.
        """
        held = read_leases(self._store).held
        for calls in (self._store.open_calls(), self._store.calls(thread_id, call_id)):
            for view in view_calls(calls, held.__contains__):
                if (view.thread_id, view.record["call_id"]) == (thread_id, call_id):
                    rows = self._store.attempts(thread_id, call_id)
                    reverted = self._store.attempts(thread_id, call_id, is_reverted=True)
                    counting = view_attempts(rows, view.answers, is_held=thread_id in held)
                    rewound = (replace(one, is_reverted=True) for one in view_attempts(reverted, (), is_held=False))
                    attempts = tuple(sorted((*rewound, *counting), key=attrgetter("attempt")))
                    return replace(view, attempts=attempts, is_reverted=bool(reverted) and not rows)
        raise UnknownId(f"Thread {thread_id!r} has no call {call_id!r}. `graph-agent calls` shows them all.")

    def shared_call_ids(self) -> frozenset[str]:
        """Call ids that occur in several threads: such a call is named THREAD:CALL."""
        return self._store.shared_call_ids()

    def search(self, text: str) -> Iterator[SearchHit]:
        """Messages of all threads that hold every word of the text, newest first; searched as they are taken."""
        return search_messages(self._store, text)

    def export(
        self, thread_id: str, blob: Callable[[str], bytes], secrets: Sequence[str] = ()
    ) -> Generator[str, None, None]:
        """The lines of a file that holds the complete thread; see `export_thread`."""
        from graph_agent.inspect.export import export_thread  # noqa: PLC0415 - lists do without

        return export_thread(self._store, thread_id, blob, secrets)

    def approvals(self) -> list[CallView]:
        """Every call of every thread that needs an approval: answered ones too, see `CallView.is_waiting`."""
        return self._open_calls("awaiting_approval")

    def interrupted(self, *, with_retries: bool = False) -> list[CallView]:
        """Every call of every thread that needs a recovery decision: decided ones too, see `is_interrupted`.

        On request those too that the next run repeats without asking: until then they can be decided.
        """
        views = self._open_calls("interrupted")
        return [view for view in views if not view.is_resumable or (with_retries and view.retries_itself)]

    def questions(self) -> list[CallView]:
        """Every call of every thread that waits for a person, answered or not: approvals and interrupted calls."""
        return [view for view in self._open_calls("awaiting_approval", "interrupted") if not view.is_resumable]

    def _open_calls(self, *statuses: str) -> list[CallView]:
        held = read_leases(self._store).held
        views = view_calls(self._store.open_calls(), held.__contains__)
        return [view for view in views if view.record["status"] in statuses]

    def attempts(self, thread_id: str, call_id: str) -> "list[JournalRow]":
        """The journal's attempts of a call, oldest first, without the outcomes."""
        return self._store.attempts(thread_id, call_id)

    def statistics(self) -> list[ToolStatistics]:
        """The statistics of each tool over all threads, by name."""
        return read_statistics(self._store)

    def done(self, thread_id: str) -> "list[ExecutedAttempt]":
        """What a thread's calls may have done, oldest first, without what a rewind reverted."""
        return self._store.executed(thread_id)

    def approval_answer(self, thread_id: str, call_id: str) -> StandingAnswer | None:
        """The newest answer to an approval of a call, whatever happened to the call since."""
        return self._store.approval_answer(thread_id, call_id)

    def grants(self) -> "list[Grant]":
        """Saved permissions that were not revoked, oldest first."""
        return self._store.grants()

    def inspection(self, thread_id: str, checkpoint_id: str | None = None) -> Inspection:
        """A checkpoint of a thread; without an id its head.

        Raises:
            UnknownId: there is no such thread or checkpoint.
        """
        from graph_agent.inspect.state import read_state  # noqa: PLC0415 - lists do without

        store = self._store
        with store.snapshot():
            thread = self.thread(thread_id)
            wanted = checkpoint_id or thread.checkpoint_id
            if wanted is None:
                has_calls = next(iter(store.calls(thread_id, is_brief=True)), None) is not None
                why = "its first message was never processed."
                if has_calls:
                    why = (
                        f"another graph keeps its state. List its tool calls with graph-agent calls {thread_id!r} "
                        "--db DATABASE."
                    )
                raise UnknownId(f"Thread {thread_id!r} has no checkpoint {'here' if has_calls else 'yet'}; {why}")
            is_head = wanted == thread.checkpoint_id
            is_held = is_head and thread.holder is not None
            state = read_state(store, thread_id, wanted, is_head=is_head)
            records = {} if self.is_foreign else state.values.get("calls") or {}
            rows = store.evidence(thread_id, records) if records else []
            calls = list(view_calls(rows, lambda _: is_held or state.is_idle))
            own = thread_status(calls, is_idle=state.is_idle, is_held=is_held, is_asking=bool(state.interrupts))
            # At the head what the sub-agents wait for counts too, as in the list of threads.
            below = self.family(thread_id) if is_head and not state.is_idle and not self.is_foreign else []
            at_work = [one.status for one in below if one.status != "idle" and one.thread_id != thread_id]
            return Inspection(
                state,
                most_urgent((own, *at_work)),
                tuple(calls),
                self.roots(thread_id),
                store.sub_threads(thread_id) if is_head else (),
                self.is_foreign,
                self.shells(thread_id),
            )

    def history(self, thread_id: str, newest: int | None = None) -> "list[HistoryEntry]":
        """The checkpoints of a thread that exist, or the newest so many, newest first.

        Raises:
            UnknownId: there is no such thread.
        """
        from graph_agent.inspect.history import read_history  # noqa: PLC0415 - lists do without

        with self._store.snapshot():
            return read_history(self._store, thread_id, self.thread(thread_id).checkpoint_id or "", newest)

    def count_checkpoints(self, thread_id: str) -> int:
        """How many checkpoints of a thread exist."""
        return self._store.count_checkpoints(thread_id)

    def visits(self, thread_id: str, checkpoint_id: str) -> "Visits":
        """How often each node ran, and each edge was taken, on the way to a checkpoint."""
        from graph_agent.inspect.history import read_visits  # noqa: PLC0415 - lists do without

        return read_visits(self._store, thread_id, checkpoint_id)

    def transcript(self, thread_id: str, *, all_branches: bool = False) -> list[TranscriptEntry]:
        """All that `iter_messages` gives."""
        return list(self.iter_messages(thread_id, all_branches=all_branches))

    def iter_messages(self, thread_id: str, *, all_branches: bool = False) -> Iterator[TranscriptEntry]:
        """The conversation at the thread's head, in order; on request the messages of every other branch too."""
        if self.is_foreign:
            return iter(state_messages(self.inspection(thread_id).state))
        return read_messages(self._store, thread_id, all_branches=all_branches)

    def recent(self, thread_id: str, most: int, *, turns: int | None = None) -> RecentMessages:
        """The end of that conversation; see `read_recent`."""
        if self.is_foreign:
            entries = state_messages(self.inspection(thread_id).state)
            return RecentMessages(entries[-most:], max(len(entries) - most, 0))
        return read_recent(self._store, thread_id, most, turns=turns)

    def checkpointed_threads(self) -> list[str]:
        """Every thread that has a checkpoint, the last stored first; also one of which only other rows are left."""
        return self._store.checkpointed_threads()

    def damaged_rows(self) -> list[str]:
        """The rows with invalid values, in every table but those of checkpoints."""
        return self._store.damaged_rows()

    def lost_threads(self) -> int:
        """How many threads the database once knew that are gone, though nobody deleted them."""
        return self._store.lost_threads()

    def unused_requests(self) -> list[int]:
        """The estimated tokens of each request that was sent to the model before its turn and was not used."""
        return self._store.unused_requests()

    def require_intact_head(self, thread_id: str) -> None:
        """Decode the newest checkpoint, for commands that show a thread without it.

        Raises:
            DamagedDatabase: it is damaged; the message names the newest intact one.
        """
        head = self._store.head(thread_id)
        stored = self._store.checkpoint(thread_id, head.checkpoint_id) if head and head.checkpoint_id else None
        if stored is not None:
            _ = stored.checkpoint

    def is_without_checkpoints(self, thread_id: str) -> bool:
        """Whether nothing is left of a thread to continue from."""
        return not self._store.newest_checkpoint(thread_id)

    def inconsistencies(self, thread_id: str) -> list[str]:
        """Where list, transcript and call log of a thread differ from its checkpoints; empty: nowhere."""
        from graph_agent.inspect.consistency import inconsistencies  # noqa: PLC0415 - lists do without

        return inconsistencies(self._store, thread_id)
