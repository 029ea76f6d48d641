"""The read port of storage: threads, calls, checkpoints and messages as plain values, read beside writers.

Checkpoints come decoded to JSON values; whatever version of the program wrote them, names are today's.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

if TYPE_CHECKING:
    from graph_agent.ports.storage import Grant, JournalRow
    from graph_agent.ports.time_travel import ExecutedAttempt

__all__ = [
    "Attempt",
    "CallRow",
    "DeltaHistory",
    "IdKind",
    "Lease",
    "ReadStore",
    "RunningShell",
    "StandingAnswer",
    "StoredAnswer",
    "StoredCheckpoint",
    "StoredWrite",
    "ThreadHead",
    "ThreadRow",
    "TranscriptEntry",
]

IdKind = Literal["thread", "checkpoint", "call"]


@dataclass(frozen=True, slots=True)
class Lease:
    """The process that held a thread last."""

    pid: int
    process_started: str
    """Start time as the kernel reports it; with the boot id it makes the pid unique."""
    boot_id: str
    host: str
    since: str
    ended_at: str | None = None
    """None while held, and after a crash."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One journal row of a call."""

    number: int
    status: str
    ended_at: str | None
    outcome: Mapping[str, Any] | None
    """Set when finished: `{status, output, error, ...}`; empty where its file is gone or damaged."""
    started_at: str = ""


@dataclass(frozen=True, slots=True)
class StandingAnswer:
    """The valid answer to a question, applied by the graph or not yet."""

    kind: str
    reason: str
    by: str
    at: str
    applied_at: str | None


class StoredAnswer(NamedTuple):
    """An answer that is not superseded, and the question it was given to."""

    question: str
    attempt: int
    args_digest: str
    answer: StandingAnswer


class CallRow(NamedTuple):
    """A call of the call log with its evidence."""

    thread_id: str
    record: dict[str, Any]
    attempts: Sequence[Attempt]
    """Attempts that are not reverted, oldest first; only of an open call."""
    answers: Sequence[StoredAnswer]
    is_idle: bool = False
    """Whether nothing of its thread is left to run."""
    is_abandoned: bool = False
    """Whether it was left open on a branch that its thread left."""


class ThreadRow(NamedTuple):
    """A thread as the list stores it, with its open calls."""

    columns: Mapping[str, Any]
    queued_messages: int
    is_idle: bool
    is_asking: bool
    """Whether the graph itself asks, by an interrupt without a call."""
    open_calls: Sequence[CallRow]
    usage: dict[str, Any] | None


class ThreadHead(NamedTuple):
    """What the list says about a thread's newest checkpoint."""

    checkpoint_id: str | None
    next_nodes: Any
    outcome: str
    turns: int
    branch: int


class StoredCheckpoint(Protocol):
    """One checkpoint; decoded when it is asked for. Decoding raises DamagedDatabase."""

    @property
    def id(self) -> str: ...

    @property
    def parent_id(self) -> str | None: ...

    @property
    def checkpoint(self) -> dict[str, Any]:
        """The checkpoint as LangGraph writes it; a delta snapshot is an object with the attribute `value`."""

    @property
    def metadata(self) -> dict[str, Any]:
        """The step that made it and how; may be empty."""


@dataclass(frozen=True, slots=True)
class StoredWrite:
    """A write stored at a checkpoint: it takes effect with the next one."""

    task_id: str
    task_path: str
    channel: str
    value: Any


class DeltaHistory(NamedTuple):
    """What the value of a channel at a checkpoint is derived from."""

    seed: Any
    """The nearest stored value among the ancestors; None where there is none."""
    writes: list[Any]
    """What was written since, oldest first."""


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One message of a conversation."""

    seq: int
    """1, 2, 3 … per thread over all branches."""
    branch: int
    """0, and 1, 2, 3 … each time an older checkpoint was resumed."""
    message_id: str
    role: str
    """system, user, assistant, tool."""
    body: dict[str, Any]
    """content, and where they apply: tool_calls, tool_call_id, status, usage."""
    checkpoint_id: str
    """First checkpoint whose state holds the message."""
    at: str


@dataclass(frozen=True, slots=True)
class RunningShell:
    """A background shell and the process that leads its group."""

    shell_id: str
    thread_id: str
    command: str
    started_at: str
    pid: int
    process_started: str = field(default="", compare=False)
    boot_id: str = field(default="", compare=False)


class ReadStore(Protocol):
    """A database opened for reading. Methods raise DamagedDatabase or StorageError if it cannot be read."""

    path: Path
    note: str
    """A limit of what can be read, such as a log that cannot be opened; mostly empty."""
    is_foreign: bool
    """Whether another program wrote it: then it holds checkpoints and nothing else."""

    def close(self) -> None: ...

    def snapshot(self) -> AbstractContextManager[None]:
        """Everything read in the block is from one moment, even if other processes commit meanwhile."""

    # Threads

    def leases(self, families: Sequence[str] | None = None) -> dict[str, Lease]:
        """The last lease of every thread, or of these threads and all sub-agents below them."""

    def threads(self, families: Sequence[str] | None = None) -> list[ThreadRow]:
        """Every thread, or these threads and all sub-agents below them; newest first."""

    def workspaces(self) -> dict[str, str]:
        """The workspace of every thread, newest first."""

    def roots(self, thread_id: str) -> tuple[str, ...]:
        """The folders a thread may work in beside its workspace."""

    def sub_threads(self, thread_id: str) -> tuple[str, ...]:
        """The threads that run directly inside this one, by id."""

    def top_thread(self, thread_id: str) -> str:
        """The thread at the top of a sub-agent's line of parents; itself of any other."""

    def head(self, thread_id: str) -> ThreadHead | None: ...

    def newest_thread(self, workspace: str | None) -> str | None:
        """The newest thread, of a workspace if one is given; one without messages only if there is no other."""

    def grants(self) -> "list[Grant]":
        """Permissions that were not revoked, oldest first."""

    # Calls

    def calls(
        self, thread_id: str | None = None, call_id: str | None = None, *, is_brief: bool = False
    ) -> Iterator[CallRow]:
        """The call log of one thread or of all: newest thread first, in each as the model asked.

        Brief records have neither result nor preview.
        """

    def open_calls(self) -> list[CallRow]:
        """The calls of all threads that are still open."""

    def evidence(self, thread_id: str, records: Mapping[str, dict[str, Any]]) -> list[CallRow]:
        """These records of a thread, with what journal and decisions hold about them."""

    def approval_answer(self, thread_id: str, call_id: str) -> StandingAnswer | None:
        """The newest answer to an approval of a call."""

    def shared_call_ids(self) -> frozenset[str]:
        """Call ids that occur in several threads."""

    def reverted_calls(self) -> frozenset[tuple[str, str]]:
        """Thread and id of the calls of which a rewind reverted every attempt."""

    def attempts(self, thread_id: str, call_id: str, *, is_reverted: bool = False) -> "list[JournalRow]":
        """The attempts of a call that count, or those that a rewind reverted, oldest first, without outcomes."""

    def executed(self, thread_id: str) -> "list[ExecutedAttempt]":
        """The attempts of a thread that may have started and are not reverted, oldest first."""

    def tool_runs(self) -> list[tuple[str, str, float | None]]:
        """Tool, status and seconds of each attempt that started, by tool."""

    def unfinished_shells(self) -> list[RunningShell]:
        """Background shells without a recorded end, with their process."""

    def logged_calls(self, thread_id: str) -> dict[str, tuple[str, Any, bool]]:
        """Status, record and whether it is abandoned, of each call in the call log."""

    def calls_only_in_journal(self, thread_id: str) -> set[str]: ...

    # Checkpoints

    def damaged_checkpoints(self, thread_id: str) -> dict[str, str]:
        """By id, oldest first, what is wrong with checkpoints or with what they depend on."""

    def damaged_rows(self) -> list[str]:
        """The rows of every table with invalid values, a phrase each."""

    def lost_threads(self) -> int:
        """How many threads the database once knew that are gone, though nobody deleted them."""

    def unused_requests(self) -> list[int]:
        """The estimated tokens of each request that was sent to the model before its turn and was not used."""

    def missing_rows(self, thread_id: str) -> list[str]:
        """What is missing according to other rows of a thread, a phrase each."""

    def checkpointed_threads(self) -> list[str]:
        """Every thread that has a checkpoint, the last stored first; also one that the list lacks."""

    def newest_checkpoint(self, thread_id: str) -> str:
        """The id that sorts last; empty where there is none."""

    def checkpoint(self, thread_id: str, checkpoint_id: str) -> StoredCheckpoint | None: ...

    def checkpoints(self, thread_id: str, newest: int | None = None) -> list[StoredCheckpoint]:
        """The checkpoints of a thread, or the newest so many, in the order of their ids."""

    def count_checkpoints(self, thread_id: str) -> int: ...

    def ancestors(self, thread_id: str, checkpoint_id: str | None) -> Iterator[StoredCheckpoint]:
        """The checkpoint and its ancestors, nearest first, read as they are asked for; a loop ends."""

    def delta_history(
        self, thread_id: str, checkpoint_id: str, channels: Sequence[str]
    ) -> "dict[str, DeltaHistory]":
        """What these channels, which the checkpoint does not hold itself, are derived from."""

    def writes(self, thread_id: str, checkpoint_id: str) -> list[StoredWrite]:
        """The writes stored at a checkpoint, in the order in which they apply."""

    def written_channels(self, thread_id: str, checkpoint_id: str) -> list[tuple[str, str]]:
        """Task path and channel of each of these writes, without the values."""

    def call_writes(self, thread_id: str, checkpoint_ids: Sequence[str]) -> Iterator[tuple[str, Any]]:
        """Checkpoint id and value of every write to the channel `calls` at one of these checkpoints."""

    # Messages

    def messages(self, thread_id: str, *, all_branches: bool = False) -> Iterator[TranscriptEntry]:
        """The conversation at the thread's head, in order; or every message of every branch."""

    def newest_messages(
        self, thread_id: str, limit: int, *, with_system: bool
    ) -> tuple[list[TranscriptEntry], int]:
        """The newest messages of that conversation, newest first, and how many there are in all."""

    def last_seq(self, thread_id: str) -> int:
        """Number of the newest message of a thread on any branch."""

    def search_index(self, terms: str) -> list[tuple[str, int]]:
        """Thread and seq of messages that may hold the terms, newest first; empty without an index."""

    def search_text(self, words: Sequence[str]) -> list[tuple[str, int]]:
        """Thread and seq of messages whose stored text holds each of the words, found by scanning; newest first."""

    def message(self, thread_id: str, seq: int) -> tuple[str, str, str, str, str, str | None] | None:
        """Role, body as JSON text, message id, time, thread title, and the first checkpoint not older than it."""

    # Ids

    def matching_ids(
        self, kinds: Sequence[IdKind], text: str, *, exact: bool, thread_id: str | None = None
    ) -> list[tuple[IdKind, str, str]]:
        """Kind, thread and id of everything that has this id, or whose id begins or ends with the text.

        The last eight characters, which tables show of an id, count as its beginning, too.
        """

    def pruned_checkpoint(self, thread: str, text: str, shortest: int) -> tuple[str, str, str | None] | None:
        """Thread and id of a checkpoint that was pruned, and the next one that exists."""

    # Export

    def sub_agents(self, thread_id: str) -> list[str]:
        """Every sub-agent below a thread, parents first."""

    def has_unfinished_rewind(self, thread_id: str) -> bool: ...

    def export_rows(self, table: str, columns: Sequence[str], thread_id: str) -> Generator[tuple[Any, ...]]:
        """The rows of a table of a thread as they are exported: no permissive mode, no standing answer."""
