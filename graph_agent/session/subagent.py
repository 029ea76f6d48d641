"""What sub-agents are made of: whose they are, who opens them, and what of each its parent may use. Shapes only."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from graph_agent.events import EventBus
from graph_agent.ports import Always, Answer, Proposal, Question
from graph_agent.ports.purse import Purse, Used
from graph_agent.session.api import OpenQuestion, Rest, RestStatus

__all__ = ["Answers", "Errand", "Failed", "Given", "Household", "Order", "Parent", "SubAgent", "Told"]


@dataclass(frozen=True, slots=True)
class Errand:
    """What a sub-agent is to do, and with what."""

    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    """None: all that its parent is offered."""
    max_steps: int | None = None


@dataclass(frozen=True, slots=True)
class Given:
    """The call that an errand comes from."""

    thread_id: str
    call_id: str
    tell: Callable[[int, str], None]
    """Number of the step, and what it does."""


@dataclass(frozen=True, slots=True)
class Told:
    """What came of an errand."""

    output: str
    error: str = ""
    was_stopped: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)


class Answers(Protocol):
    """Where the questions of a sub-agent are answered."""

    async def reconsider(self, question: Question, arguments: Mapping[str, Any]) -> OpenQuestion: ...

    async def propose(self, question: Question, arguments: Mapping[str, Any] | None) -> Proposal: ...

    async def decide(self, question: Question, answer: Answer, always: Always | None) -> Answer: ...

    async def end_processes(self, question: Question) -> tuple[int, ...]: ...


class SubAgent(Protocol):
    """A sub-agent's thread, held by this process."""

    @property
    def thread_id(self) -> str: ...

    async def answers_to(self, question: Question) -> Answers:
        """Where its question is answered, which may be with a sub-agent of its own."""
        ...

    async def standing(self) -> dict[str, Answer]:
        """The answers recorded so far to what it asks, by call id."""
        ...

    async def work_on(self, text: str, *, afresh: bool) -> Rest:
        """Begin with the text where nothing was begun, else go on with what there is, to the next rest.

        A rest at a limit that it shares with its parent is left where a person lets it go on, `afresh`.
        """
        ...

    async def proceed(self) -> Rest: ...

    async def waiting(self) -> Rest:
        """The rest with the questions that still have no answer."""
        ...

    async def used(self) -> Used:
        """Tokens and requests of the turn and of the whole thread."""
        ...

    async def stop(self) -> Rest: ...

    def drain(self) -> None:
        """Start nothing new."""
        ...

    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Order:
    """The sub-agent to open."""

    thread_id: str
    parent_thread: str
    call_id: str
    errand: Errand
    mode: str
    system: str
    """The parent's system prompt: what is the same for both comes first, so that a provider may keep it."""
    bus: EventBus
    purse: Purse | None = None
    """What its requests draw on; None where it makes none."""


class Household(Protocol):
    """What the sub-agents of a thread share with it."""

    async def undone(self, thread_id: str, call_id: str) -> int:
        """The newest attempt at a call that a rewind undid with the sub-agent that worked on it; else 0."""
        ...

    async def has(self, thread_id: str) -> bool:
        """Whether there is such a thread."""
        ...

    async def may_have_begun_elsewhere(self, thread_id: str, call_id: str) -> bool:
        """Whether the thread came out of another one, or out of a file, and the call may have begun there."""
        ...

    async def open(self, order: Order) -> SubAgent:
        """Hold the sub-agent's thread, which is there, durably, when this returns.

        Raises:
            ThreadHeld: another process has it.
        """
        ...


class Parent(Protocol):
    """What of the parent its sub-agents take over."""

    @property
    def mode(self) -> str: ...

    def offer(self) -> Sequence[str]:
        """Names of the tools its model is offered."""
        ...

    async def system(self) -> str:
        """The system prompt of its thread."""
        ...

    @property
    def is_afresh(self) -> bool:
        """Whether a person lets those go on that rest at a limit which they share with it."""
        ...

    async def purse(self) -> Purse:
        """What its turn and thread may use, and have used so far."""
        ...

    @property
    def bus(self) -> EventBus: ...


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a sub-agent cannot go on now, as the rest of its parent tells it."""

    status: RestStatus
    error: str
    budget: str = ""
    """Of a limit that it shares with its parent: the setting."""
