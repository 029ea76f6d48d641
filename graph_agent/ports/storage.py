"""Storage protocols besides checkpoints: journal, decisions, grants, blobs, inbox, thread lock; times and ids."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from graph_agent.events import AnswerKind
    from graph_agent.ports.toolbox import GrantEffect, Intent, Outcome

__all__ = [
    "ANSWER_POLL_S",
    "AlwaysRules",
    "Answer",
    "Barrier",
    "Blobs",
    "Claim",
    "Clock",
    "Decisions",
    "FileStates",
    "Grant",
    "GrantScope",
    "Grants",
    "Holder",
    "Inbox",
    "Journal",
    "JournalRow",
    "Question",
    "QuestionKind",
    "RowStatus",
    "SystemClock",
    "TaskState",
    "ThreadLock",
    "moved_sub_agent_id",
    "normalize_time",
    "rules_with_folders",
    "sub_agent_id",
]


class Clock(Protocol):
    """Where nodes and stores get the time from."""

    def now(self) -> str:
        """ISO-8601 UTC with milliseconds, e.g. `2026-11-28T00:12:03.456Z`."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> str:
        """See `Clock.now`."""
        return _utc_text(datetime.now(UTC))


def normalize_time(moment: str) -> str:
    """An ISO-8601 time of any precision and zone in the form of `Clock.now`, so that the two compare as text.

    Raises:
        ValueError: it is no such time.
    """
    return _utc_text(datetime.fromisoformat(moment))


def _utc_text(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def sub_agent_id(parent_thread: str, call_id: str, reverted: int) -> str:
    """The id of a sub-agent's thread, the same in every run; a call that runs again after a rewind gets another.

    `reverted` is the newest attempt at the call that a rewind reverted; 0 where there is none.
    """
    text = "\0".join((parent_thread, call_id, str(reverted)))
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:32]


def moved_sub_agent_id(child: str, call_id: str, attempts: int, of: tuple[str, str]) -> str | None:
    """The id of a sub-agent's thread under another parent; None where it is none of this call.

    Args:
        attempts: how many attempts at the call there were, of which a rewind may have reverted some.
        of: the thread of its parent, and the other one.
    """
    parent, other = of
    for reverted in range(attempts + 1):
        if child == sub_agent_id(parent, call_id, reverted):
            return sub_agent_id(other, call_id, reverted)
    return None


GrantScope = Literal["thread", "project", "user"]
"""thread: this conversation in this workspace. project: this workspace. user: everywhere."""


@dataclass(frozen=True, slots=True)
class AlwaysRules:
    """The part of an answer that also covers later calls: of an approval, or of a rejection where it denies."""

    scope: GrantScope
    rules: tuple[str, ...]
    """Exactly as they were shown."""
    folder: str = "."
    """Where commands start, relative to the workspace; rules about commands hold only there."""
    folders: tuple[tuple[str, ...], ...] = ()
    """For each rule all folders in which its command works, as a `cd` may fail; empty: that is `folder`."""
    prefixes: tuple[str, ...] = ()
    """Those of the rules that end with ` *` for any arguments."""
    effect: "GrantEffect" = "allow"
    """Rules that deny hold in every folder and mode."""


@dataclass(frozen=True, slots=True)
class Grant:
    """Rules by which calls run without approval, or are denied, from now on."""

    scope: GrantScope
    rules: tuple[str, ...]
    """Exact rules, `*` included, but for the `prefixes`."""
    mode: str
    """The permission mode it was given in."""
    thread_id: str
    """Where it was given."""
    workspace: str
    call_id: str
    by: str
    at: str
    folder: str = "."
    """See `AlwaysRules.folder`."""
    effect: "GrantEffect" = "allow"
    id: int = 0
    """0 until it is stored."""
    folders: tuple[tuple[str, ...], ...] = ()
    """See `AlwaysRules.folders`."""
    prefixes: tuple[str, ...] = ()
    """See `AlwaysRules.prefixes`."""


class _PlacedRules(Protocol):
    @property
    def rules(self) -> tuple[str, ...]: ...
    @property
    def folders(self) -> tuple[tuple[str, ...], ...]: ...


def rules_with_folders(permission: _PlacedRules) -> list[str]:
    """The rules of a permission for people, with the folders of their commands if the call starts elsewhere."""
    if not permission.folders:
        return list(permission.rules)
    places = zip(permission.rules, permission.folders, strict=True)
    return [f"{rule}  in {' or '.join(folders)}" for rule, folders in places]


class Grants(Protocol):
    """The grants that were not revoked."""

    async def in_force(self, thread_id: str, workspace: str) -> list[Grant]:
        """Those that apply in this thread and workspace, oldest first."""

    async def revoke(self, grant_id: int, by: str, at: str) -> Grant | None:
        """Revoke a grant, for every process from its next call on; None where there is no such grant."""


QuestionKind = Literal["approval", "recovery"]


@dataclass(frozen=True, slots=True)
class Question:
    """A question about one call. An answer fits only while digest and attempt are the same."""

    kind: QuestionKind
    call_id: str
    attempt: int
    args_digest: str
    reason: str = ""
    """Approval: why policy asks. Recovery: never_started or outcome_unknown."""

    def accepts_answers_to(self, other: "Question") -> bool:
        """Whether an answer to the other question fits this one."""
        return replace(other, reason=self.reason) == self


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question."""

    kind: "AnswerKind"
    by: str
    """Who answered, e.g. `chat`, `cli:pid 4711`; shown to those who come later."""
    at: str
    arguments: Mapping[str, Any] | None = None
    """The edited arguments of an edit."""
    reason: str = ""
    """The user's words with an answer or a reject, or the result text with a done."""
    outside_sandbox: bool = False
    """With an approval or an edit: this very call runs outside the sandbox."""
    grant: Grant | None = None
    """What an approval, or an edit, allows always. Stored in one step with the answer, and only if that wins."""


ANSWER_POLL_S = 0.3
"""The pause between two looks for answers and messages from other processes. With the time for reading and showing
them, an answer arrives within a second."""


class Decisions(Protocol):
    """Answers to questions, durable before the method returns; the first answer to a question wins."""

    async def insert(self, thread_id: str, question: Question, answer: Answer) -> Answer:
        """Record an answer; returns the answer that counts, which is somebody else's if they were faster."""

    async def insert_if_asked(self, thread_id: str, question: Question, answer: Answer) -> Answer:
        """As `insert`, for a process that does not hold the thread: the one that does may ask anew at any moment.

        Raises:
            QuestionChanged: nobody has answered, and the call does not ask this question any more.
        """

    async def find_answers(self, thread_id: str, questions: Sequence[Question]) -> dict[str, Answer]:
        """The answers recorded so far for these very questions, by call id."""

    async def supersede(self, thread_id: str, call_ids: Sequence[str], at: str) -> None:
        """Invalidate all answers about these calls, so that they can be answered again."""

    async def latest_approval(self, thread_id: str, call_id: str, until: str) -> Answer | None:
        """The newest approval, edit or answer in words of a call that was given up to a time, superseded or not."""

    async def mark_applied(self, thread_id: str, questions: Sequence[Question], at: str) -> None:
        """Record that the graph has applied these answers."""


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a thread, according to the lease row."""

    pid: int
    host: str
    since: str
    owner_token: str
    is_alive: bool


class ThreadLock(Protocol):
    """The right to run one thread; it ends when the process dies."""

    async def acquire(self, thread_id: str, owner_token: str, on_lost: Callable[[], None] | None = None) -> None:
        """Take the lock and write the lease.

        Args:
            thread_id: the thread.
            owner_token: names the run that holds it.
            on_lost: called in this event loop if the right is lost while it is held, as on a server that cannot be
                reached. From then on nothing that this process writes counts: what it runs must end at once.

        Raises:
            ThreadHeld: another process has it; the message says who and since when.
        """

    async def release(self) -> None:
        """Release the lock and end the lease."""

    def mark_ending(self) -> None:
        """Note that this process will release the thread soon, so that another one may wait for it."""


class Blobs(Protocol):
    """Content-addressed bytes beside the database. References read `blob:sha256:HEX`. Methods block briefly."""

    def put(self, data: bytes) -> str:
        """Store and return the reference; storing the same bytes twice keeps one copy."""

    def get(self, reference: str) -> bytes:
        """The bytes behind a reference.

        Raises:
            StorageError: the reference is malformed, unknown, or its content no longer fits it.
        """

    def spool(self, thread_id: str, call_id: str, attempt: int) -> Path:
        """Path of the private file that takes a running call's output; the folder exists, the file may not."""


class FileStates(Protocol):
    """What a thread last read or wrote of each file: resolved path to SHA-256 of the whole content."""

    async def get(self, thread_id: str, path: str) -> str | None: ...

    async def set(self, thread_id: str, path: str, sha256: str) -> None: ...


class Barrier(Protocol):
    """Proof that a checkpoint, and everything it depends on, is on disk."""

    async def wait(self, thread_id: str, checkpoint_id: str, namespace: str = "") -> bool:
        """True as soon as the checkpoint can be read back; False when it does not appear within a few seconds."""

    def proves(self, saver: object) -> bool:
        """Whether it sees the checkpoints that this saver stores."""


class Inbox(Protocol):
    """Messages that wait for their turn, or for the next step of one; durable before they are shown as queued."""

    async def queue(self, thread_id: str, text: str, by: str, *, is_urgent: bool = False) -> int:
        """Keep a message, durably; returns its id. An urgent one is for the next step of the running turn."""

    async def mark_urgent(self, thread_id: str) -> int:
        """Make every waiting message urgent; returns how many wait."""

    async def waiting(self, thread_id: str, *, only_urgent: bool = False) -> list[tuple[int, str]]:
        """Id and text of each message not taken yet: those sent early, then urgent ones, then by age.

        One whose message `inbox-ID` is in the transcript counts as taken: the transcript grows in the very
        transaction that stores the checkpoint, so no instant to die at makes a message lost or sent twice.
        """

    async def remove(self, thread_id: str, message_id: int) -> bool:
        """Remove a waiting message, in one step; False if it is no longer waiting."""

    async def move_to_thread(self, thread_id: str, message_id: int, to: str) -> int | None:
        """Move a waiting message to another thread, in one step; its id there, None if it is no longer waiting."""

    async def take(self, thread_id: str, message_id: int) -> None:
        """Mark a message as taken; called once the checkpoint that holds it is on disk."""


TaskState = Literal["queued", "started", "done", "failed", "cancelled"]
"""queued: no worker has begun it. started: it runs, waits for an answer, or continues with the next worker."""

RowStatus = Literal["executing", "success", "error", "interrupted", "not_started"]
"""executing: claimed, no outcome (yet). interrupted: stopped while running. not_started: stopped after the claim,
before the tool was entered. success and error are the finished ones."""


@dataclass(frozen=True, slots=True)
class JournalRow:
    """One attempt of one call."""

    call_id: str
    attempt: int
    owner: str
    """Owner token of the run that claimed it."""
    status: RowStatus
    started_at: str
    ended_at: str | None = None
    outcome: "Outcome | None" = None
    """Set when finished."""
    intent: "Intent | None" = None
    process_group: int | None = None
    process_started: str | None = None
    """Start time of the group's leader as the kernel reports it; with the boot id it makes the pid unique."""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def is_finished(self) -> bool:
        """Whether the outcome is recorded: such a call is never run again."""
        return self.status in ("success", "error")

    @property
    def may_have_started(self) -> bool:
        """Whether the tool may have been entered."""
        return self.status != "not_started"


@dataclass(frozen=True, slots=True)
class Claim:
    """The result of a claim: won, already finished (with its row), or lost to another attempt."""

    won: bool
    finished: JournalRow | None = None


class Journal(Protocol):
    """Rows are keyed by thread, call and attempt, never deleted, and durable before the method returns."""

    async def rows(self, thread_id: str, call_id: str) -> list[JournalRow]:
        """All attempts of a call, oldest first; attempts that a rewind reverted are left out."""

    async def reverted(self, thread_id: str, call_ids: list[str]) -> list[JournalRow]:
        """The attempts at these calls that a rewind reverted, oldest first: their numbers are not used again."""

    async def known_ids(self, thread_id: str, call_ids: list[str]) -> set[str]:
        """Which of these ids any call of the thread already has, on any branch."""

    async def written_files(self, thread_id: str) -> list[str]:
        """The files that calls of the thread wrote or may have written, in the order of the first time."""

    async def claim(self, thread_id: str, call_id: str, attempt: int, owner: str, intent: "Intent | None") -> Claim:
        """Write "executing" for this attempt, in one transaction.

        Refused when a finished row of any attempt exists (it is returned) or a row of this or a higher attempt.
        """

    async def record_process(self, thread_id: str, call_id: str, attempt: int, group: int, started: str) -> None:
        """Add the process group, once, before the command starts."""

    async def finish(self, thread_id: str, call_id: str, attempt: int, owner: str, outcome: "Outcome") -> bool:
        """Write the outcome, once, only as the owner of the newest attempt; False when this run lost it."""

    async def record_interruption(
        self,
        thread_id: str,
        call_id: str,
        attempt: int,
        owner: str,
        status: Literal["interrupted", "not_started"],
    ) -> None:
        """Record that the owner stopped the call itself. No effect on a row that has an outcome."""
