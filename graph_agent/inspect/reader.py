"""The one door to a database for those who only look: threads, calls, approvals, states, transcripts, ids.

Plain and synchronous, standard library and a msgpack decoder only. Shares only the file format with the graph.

The folders a thread may work in beside its workspace, as the database tells them.

What was allowed "always", as the database tells it.
"""

import json
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from graph_agent.errors import UnknownId, UsageError
from graph_agent.inspect.calls import (
    OPEN,
    CallView,
    RunningShell,
    StandingAnswer,
    ThreadStatus,
    approval_answer,
    evidence_of,
    read_attempts,
    read_calls,
    read_done,
    read_shells,
    shared_call_ids,
    stream_calls,
    thread_status,
    view_of,
)
from graph_agent.inspect.connection import ReadOnlyDatabase, read_leases
from graph_agent.inspect.consistency import checkpointed_threads, inconsistencies
from graph_agent.inspect.export import export_thread
from graph_agent.inspect.foreign import adopt
from graph_agent.inspect.history import HistoryEntry, Visits, read_history, read_visits
from graph_agent.inspect.ids import ALL_KINDS, Kind, SuggestedId, Target, read_suggested_checkpoints, resolve
from graph_agent.inspect.search import SearchHit, search_messages
from graph_agent.inspect.state import CheckpointState, read_state
from graph_agent.inspect.statistics import ToolStatistics, read_statistics
from graph_agent.inspect.threads import (
    FAMILY,
    RecentMessages,
    ThreadSummary,
    TranscriptEntry,
    entries_of,
    most_urgent,
    owner_of,
    read_recent,
    read_threads,
    stream_conversation,
    with_sub_agents,
)
from graph_agent.ports import Done, Grant, JournalRow

__all__ = ["Inspection", "Reader", "read_grants", "read_roots"]

_THERE_GRANTS = "SELECT count(*) FROM sqlite_schema WHERE name = 'grants'"
_STANDING = """
SELECT scope, rules, mode, thread_id, workspace, call_id, by, at, place, id FROM grants
WHERE revoked_at IS NULL ORDER BY id
"""


def read_grants(database: ReadOnlyDatabase) -> list[Grant]:
    """Every grant that stands, oldest first; none in a file from before there were any."""
    if database.rows(_THERE_GRANTS) == [(0,)]:
        return []
    return [
        Grant(scope, tuple(str(rule["text"]) for rule in json.loads(rules)), *rest)
        for scope, rules, *rest in database.rows(_STANDING)
    ]


_THERE = "SELECT count(*) FROM pragma_table_info('threads') WHERE name = 'add_dirs'"


def read_roots(database: ReadOnlyDatabase, thread_id: str) -> tuple[str, ...]:
    """As they were given, resolved; none in a file from before there were any."""
    if database.rows(_THERE) == [(0,)]:
        return ()
    rows = database.rows("SELECT add_dirs FROM threads WHERE thread_id = ?", (thread_id,))
    return tuple(str(path) for (text,) in rows for path in json.loads(text))


_WITHIN = "SELECT thread_id FROM threads WHERE parent_thread = ? AND parent_call IS NOT NULL ORDER BY thread_id"


@dataclass(frozen=True, slots=True)
class Inspection:
    """A checkpoint's state, with what ledger, journal and leases say about its calls."""

    state: CheckpointState
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
    """What of the thread runs in the background, as it is now."""


class Reader:
    """A database opened for looking at. A context manager; works while other processes write."""

    def __init__(self, database: ReadOnlyDatabase) -> None:
        self._database = database

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a database file: one of ours, or one that LangGraph's own SQLite saver wrote.

        Raises:
            NothingYet: there is none.
            NewerSchema: a newer version of the program wrote it.
            DamagedDatabase: it is neither, or torn.
            StorageError: it cannot be read.
        """
        return cls(ReadOnlyDatabase.open(path, adopt))

    @property
    def note(self) -> str:
        """What whoever reads ought to know of how the file was opened; mostly nothing."""
        return self._database.note

    @property
    def is_foreign(self) -> bool:
        """Whether the file is of LangGraph's own saver: it has threads and checkpoints, and no ledger."""
        return self._database.is_foreign

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the file back."""
        self._database.close()

    def resolve(self, text: str, workspace: str | None = None, kinds: tuple[Kind, ...] = ALL_KINDS) -> Target:
        """What an id means: exact, a unique part of 4 or more characters, THREAD:ID; empty is the newest thread.

        Raises:
            UnknownId: nothing fits, or several do.
        """
        return resolve(self._database, text, None if self.is_foreign else workspace, kinds)

    def threads(self) -> list[ThreadSummary]:
        """Every thread, newest first."""
        return with_sub_agents(read_threads(self._database, read_leases(self._database)))

    def workspaces(self) -> dict[str, str]:
        """The workspace of every thread."""
        return dict(self._database.rows("SELECT thread_id, workspace FROM threads"))

    def thread(self, thread_id: str) -> ThreadSummary:
        """One thread by its exact id.

        Raises:
            UnknownId: there is none.
        """
        family = self.family(thread_id)
        found = next((thread for thread in family if thread.thread_id == thread_id), None)
        if found is None:
            raise UnknownId(f"there is no thread {thread_id!r}; `graph-agent threads list` shows them all.")
        return found

    def family(self, thread_id: str) -> list[ThreadSummary]:
        """One thread by its exact id, and every sub-agent below it."""
        return with_sub_agents(read_threads(self._database, read_leases(self._database), FAMILY, (thread_id,)))

    def owner(self, thread_id: str) -> str:
        """The thread that goes on with this one: itself, or of a sub-agent the one it works for in the end."""
        return owner_of(self._database, thread_id)

    def roots(self, thread_id: str) -> tuple[str, ...]:
        """The folders a thread may work in beside its workspace."""
        return read_roots(self._database, thread_id)

    def shells(self, thread_id: str | None = None) -> tuple[RunningShell, ...]:
        """The background shells that run now, of one thread or of all."""
        return read_shells(self._database, thread_id)

    def calls(self, thread_id: str | None = None, *, brief: bool = False) -> list[CallView]:
        """All that `each_call` gives."""
        return list(self.iter_calls(thread_id, brief=brief))

    def iter_calls(self, thread_id: str | None = None, *, brief: bool = False) -> Iterator[CallView]:
        """The ledger, of one thread or of all: newest thread first, in each as the model asked.

        `brief` leaves out what fills memory and no list shows: results and previews.
        """
        where, parameters = ("1", ()) if thread_id is None else ("l.thread_id = ?", (thread_id,))
        return stream_calls(self._database, read_leases(self._database), where, parameters, brief=brief)

    def call(self, thread_id: str, call_id: str) -> CallView:
        """One call by its exact ids.

        Raises:
            UnknownId: there is none.
        """
        where = "l.thread_id = ? AND l.call_id = ?"
        if not (found := read_calls(self._database, read_leases(self._database), where, (thread_id, call_id))):
            raise UnknownId(f"thread {thread_id!r} has no call {call_id!r}; `graph-agent calls` shows them all.")
        return found[0]

    def shared_call_ids(self) -> frozenset[str]:
        """Call ids that occur in several threads: such a call is named THREAD:CALL."""
        return shared_call_ids(self._database)

    def search(self, text: str) -> Iterator[SearchHit]:
        """Messages of all threads that hold every word of the text, newest first; looked for as they are taken."""
        return search_messages(self._database, text)

    def export(
        self, thread_id: str, blob: Callable[[str], bytes], secrets: Sequence[str] = ()
    ) -> Generator[str, None, None]:
        """The lines of a file that holds the thread whole; see `export_thread`.

        Raises:
            UsageError: another program's thread lacks most of what such a file holds.
        """
        if self.is_foreign:
            raise UsageError(f"{self._database.path} is not of graph-agent: only its own threads can be exported.")
        return export_thread(self._database, thread_id, blob, secrets)

    def approvals(self) -> list[CallView]:
        """Every call of every thread that asks for an approval: answered ones too, see `CallView.is_waiting`."""
        return self._open_calls("awaiting_approval")

    def interrupted(self) -> list[CallView]:
        """Every call of every thread that asks for a recovery decision: decided ones too, see `is_interrupted`."""
        return [view for view in self._open_calls("interrupted") if not view.goes_on]

    def attempts(self, thread_id: str, call_id: str) -> list[JournalRow]:
        """What the journal holds of a call, oldest attempt first, without the outcomes."""
        return read_attempts(self._database, thread_id, call_id)

    def statistics(self) -> list[ToolStatistics]:
        """How each tool fared in all threads, by name."""
        return read_statistics(self._database)

    def done(self, thread_id: str) -> list[Done]:
        """What a thread's calls may have done, oldest first, without what a rewind undid."""
        return read_done(self._database, thread_id)

    def approval_answer(self, thread_id: str, call_id: str) -> StandingAnswer | None:
        """The newest answer to an approval of a call, whatever became of the call since."""
        return approval_answer(self._database, thread_id, call_id)

    def grants(self) -> list[Grant]:
        """What was allowed always and stands, oldest first."""
        return read_grants(self._database)

    def inspection(self, thread_id: str, checkpoint_id: str | None = None) -> Inspection:
        """A checkpoint of a thread; without an id its head.

        Raises:
            UnknownId: there is no such thread or checkpoint.
        """
        with self._database.snapshot():
            return self._inspection(self.thread(thread_id), checkpoint_id)

    def history(self, thread_id: str) -> list[HistoryEntry]:
        """The checkpoints of a thread that still stand, newest first.

        Raises:
            UnknownId: there is no such thread.
        """
        with self._database.snapshot():
            return read_history(self._database, thread_id, self.thread(thread_id).checkpoint_id or "")

    def suggest_checkpoints(self, typed: str, most: int) -> list[SuggestedId]:
        """The newest checkpoints of all threads whose ids begin or end with what was typed."""
        return read_suggested_checkpoints(self._database, typed, most)

    def visits(self, thread_id: str, checkpoint_id: str) -> Visits:
        """How often each node ran, and each edge was taken, on the way to a checkpoint."""
        return read_visits(self._database, thread_id, checkpoint_id)

    def transcript(self, thread_id: str, *, all_branches: bool = False) -> list[TranscriptEntry]:
        """All that `each_message` gives."""
        return list(self.iter_messages(thread_id, all_branches=all_branches))

    def iter_messages(self, thread_id: str, *, all_branches: bool = False) -> Iterator[TranscriptEntry]:
        """The conversation at the thread's head, in order; on request the messages of every other branch too."""
        if self.is_foreign:
            return iter(entries_of(self.inspection(thread_id).state))
        return stream_conversation(self._database, thread_id, all_branches=all_branches)

    def recent(self, thread_id: str, most: int, *, turns: int | None = None) -> RecentMessages:
        """The end of that conversation; see `read_recent`."""
        if self.is_foreign:
            entries = entries_of(self.inspection(thread_id).state)
            return RecentMessages(entries[-most:], max(len(entries) - most, 0))
        return read_recent(self._database, thread_id, most, turns=turns)

    def checkpointed_threads(self) -> list[str]:
        """Every thread that has a checkpoint, also one that the list has lost; the last at work first."""
        return checkpointed_threads(self._database)

    def inconsistencies(self, thread_id: str) -> list[str]:
        """Where list, transcript and ledger of a thread say otherwise than its checkpoints; empty: nowhere."""
        return inconsistencies(self._database, thread_id)

    def _open_calls(self, status: str) -> list[CallView]:
        open_calls = read_calls(self._database, read_leases(self._database), f"{OPEN} AND t.next_nodes <> '[]'")
        return [view for view in open_calls if view.record["status"] == status]

    def _inspection(self, thread: ThreadSummary, checkpoint_id: str | None) -> Inspection:
        thread_id = thread.thread_id
        wanted = checkpoint_id or thread.checkpoint_id
        if wanted is None:
            raise UnknownId(f"thread {thread_id!r} has no checkpoint yet; its first message was never taken in.")
        is_head = wanted == thread.checkpoint_id
        state = read_state(self._database, thread_id, wanted, is_head=is_head)
        is_held = is_head and thread.holder is not None
        calls = self._calls_of(state, is_held=is_held)
        own = thread_status(calls, is_idle=state.is_idle, is_held=is_held, asks=bool(state.interrupts))
        # At the head what the sub-agents wait for counts too, as in the list of threads.
        below = self.family(thread_id) if is_head and not state.is_idle and not self.is_foreign else []
        at_work = [one.status for one in below if one.status != "idle" and one.thread_id != thread_id]
        status = most_urgent((own, *at_work))
        names = tuple(name for (name,) in (self._database.rows(_WITHIN, (thread_id,)) if is_head else ()))
        roots, shells = self.roots(thread_id), self.shells(thread_id)
        return Inspection(state, status, tuple(calls), roots, names, self.is_foreign, shells)

    def _calls_of(self, state: CheckpointState, *, is_held: bool) -> Sequence[CallView]:
        records: Mapping[str, Any] = {} if self.is_foreign else state.values.get("calls") or {}
        evidence = evidence_of(self._database, state.thread_id, list(records)) if records else {}
        return [
            view_of(self._database, state.thread_id, record, evidence[call_id], is_held=is_held or state.is_idle)
            for call_id, record in records.items()
        ]
