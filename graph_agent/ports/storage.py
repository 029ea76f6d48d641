"""What the graph and the session need of durable storage besides checkpoints and the journal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from graph_agent.events import AnswerKind
from graph_agent.ports.grants import Grant

__all__ = [
    "Answer",
    "AnswerKind",
    "Barrier",
    "Blobs",
    "Decisions",
    "FileStates",
    "Holder",
    "Inbox",
    "Question",
    "QuestionKind",
    "ThreadLock",
]

QuestionKind = Literal["approval", "recovery"]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked about one call. An answer fits only while digest and attempt are the same."""

    kind: QuestionKind
    call_id: str
    attempt: int
    digest: str
    reason: str = ""
    """Approval: why policy asks. Recovery: never_started or outcome_unknown."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What someone answered."""

    kind: AnswerKind
    by: str
    """Who answered, e.g. `chat`, `cli:pid 4711`; shown to those who come later."""
    at: str
    arguments: Mapping[str, Any] | None = None
    """The edited arguments of an edit."""
    reason: str = ""
    """The user's words with an answer or a reject, or the result text with a done."""
    outside: bool = False
    """With an approval or an edit: this very call runs outside of the sandbox."""
    grant: Grant | None = None
    """What an approval, or an edit, allows always. Stored in one step with the answer, and only where it stands."""


class Decisions(Protocol):
    """Answers to questions, durable before the method returns; the first answer to a question wins."""

    async def insert(self, thread_id: str, question: Question, answer: Answer) -> Answer:
        """Record an answer; returns the one that stands, which is somebody else's when they were first."""
        ...

    async def standing(self, thread_id: str, questions: Sequence[Question]) -> dict[str, Answer]:
        """The answers recorded so far for these very questions, by call id."""
        ...

    async def supersede(self, thread_id: str, call_ids: Sequence[str], at: str) -> None:
        """Let the questions about these calls be answered anew: no answer so far stands any more."""
        ...

    async def let_through(self, thread_id: str, call_id: str, until: str) -> Answer | None:
        """The newest approval, edit or answer in words of a call that was given up to a time, superseded or not."""
        ...

    async def mark_applied(self, thread_id: str, questions: Sequence[Question], at: str) -> None:
        """Note that the graph has taken these answers in."""
        ...


@dataclass(frozen=True, slots=True)
class Holder:
    """Who holds a thread, as the lease row tells it."""

    pid: int
    host: str
    since: str
    life: str
    is_alive: bool


class ThreadLock(Protocol):
    """The right to run one thread; the kernel releases it when the process dies."""

    async def acquire(self, thread_id: str, life: str) -> None:
        """Take the lock and write the lease.

        Raises:
            ThreadHeld: another process has it; the message says who and since when.
        """
        ...

    async def release(self) -> None:
        """Give the lock back and end the lease."""
        ...


class Blobs(Protocol):
    """Content-addressed bytes beside the database. References read `blob:sha256:HEX`. Methods block briefly."""

    def put(self, data: bytes) -> str:
        """Store and return the reference; storing the same bytes twice keeps one copy."""
        ...

    def get(self, reference: str) -> bytes:
        """The bytes behind a reference.

        Raises:
            StorageError: the reference is malformed, unknown, or its content no longer fits it.
        """
        ...

    def spool(self, thread_id: str, call_id: str, attempt: int) -> Path:
        """Path of the private file that takes a running call's output; the folder exists, the file may not."""
        ...


class FileStates(Protocol):
    """What a thread last read or wrote of each file: resolved path to SHA-256 of the whole content."""

    async def get(self, thread_id: str, path: str) -> str | None: ...

    async def set(self, thread_id: str, path: str, sha256: str) -> None: ...


class Barrier(Protocol):
    """Proof that a checkpoint, and with it all that it rests on, is on disk."""

    async def wait(self, thread_id: str, checkpoint_id: str) -> bool:
        """True as soon as the checkpoint can be read back; False when it does not appear within a few seconds."""
        ...


class Inbox(Protocol):
    """Messages that wait for their turn; durable before they are shown as queued."""

    async def queue(self, thread_id: str, text: str, by: str) -> int:
        """Keep a message, durably; returns its id."""
        ...

    async def waiting(self, thread_id: str) -> list[tuple[int, str]]:
        """Id and text of each message not taken yet, oldest first.

        One whose message `inbox-ID` is in the transcript counts as taken: the transcript grows in the very
        transaction that stores the checkpoint, so no instant to die at makes a message lost or sent twice.
        """
        ...

    async def take_back(self, thread_id: str, message_id: int) -> bool:
        """Forget a message that waits, in one step; False, and nothing is done, where it waits no more."""
        ...

    async def hand_over(self, thread_id: str, message_id: int, to: str) -> int | None:
        """Let a message that waits wait in another thread, in one step; its id there, None if it waits no more."""
        ...

    async def take(self, thread_id: str, message_id: int) -> None:
        """Mark a message as taken; called once the checkpoint that holds it is on disk."""
        ...
