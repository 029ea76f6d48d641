"""What the terminal needs of a session, so that it can be tested with a scripted one.

Mirrors the public face of the session and knows nothing of how it keeps its promises.

The end of a conversation as it stands on disk, shown when a thread is taken up again. Reads only.

How the servers of tools are doing, as the events of the session told. Keeps the newest of each.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from graph_agent.app.reader import read_database
from graph_agent.cli.views.format import format_count, format_message
from graph_agent.events import Event, EventBus, ServerChanged

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from graph_agent.ports import AlwaysAllow, Answer, AnswerKind, Proposal, Question, SandboxInfo
    from graph_agent.session.turn_result import OpenQuestion, TurnResult


__all__ = ["Conversation", "Opener", "ServerStates", "recent_lines"]


class Conversation(Protocol):
    """A thread opened by this process."""

    @property
    def thread_id(self) -> str: ...

    @property
    def workspace(self) -> Path: ...

    @property
    def mode(self) -> str:
        """The permission mode of the calls to come; setting one it may not have raises UsageError."""
        ...

    @mode.setter
    def mode(self, mode: str) -> None: ...

    @property
    def model_label(self) -> str: ...

    @property
    def model_name(self) -> str | None:
        """The model's own name; None while one must still be chosen, empty where there is nothing to choose."""
        ...

    async def model_names(self) -> tuple[str, ...]:
        """The models there are to choose from; raises ModelError when they cannot be listed."""
        ...

    async def switch_model(self, name: str) -> None:
        """Ask this model from the next request on; raises UsageError where there is nothing to choose."""
        ...

    @property
    def sandbox(self) -> SandboxInfo:
        """The sandbox that commands run in; the first look may take some milliseconds."""
        ...

    @property
    def by(self) -> str:
        """The name under which this process answers questions."""
        ...

    async def start(self) -> TurnResult:
        """Settle what an earlier life left; asks the model only where a turn was under way."""
        ...

    async def send(self, text: str, attachment: str = "") -> TurnResult:
        """Run a turn on new text, and what it brings that is not the user's own words."""
        ...

    async def queue(self, text: str) -> int:
        """Keep a message, durably, until the thread is at rest; returns its number."""
        ...

    async def queued(self) -> list[tuple[int, str]]:
        """Number and text of each message that waits, oldest first."""
        ...

    async def remove_queued(self, number: int) -> bool:
        """Whether the message still waited; then it is gone, and never sent."""
        ...

    async def move_queued(self, number: int, thread_id: str) -> int | None:
        """Let a message that waits wait in another thread; its number there, None where it waited no more."""
        ...

    async def send_queued(self, attachment: str = "") -> TurnResult | None:
        """Run a turn on the oldest queued message; None when none waits."""
        ...

    async def decide(
        self,
        question: Question,
        kind: AnswerKind,
        *,
        arguments: Mapping[str, Any] | None = None,
        reason: str = "",
        always: AlwaysAllow | None = None,
        outside: bool = False,
    ) -> Answer:
        """Record an answer durably, with what it allows always and whether the call runs outside of the sandbox.

        Returns the one that stands.

        Raises:
            AnswerRefused: the answer does not fit the question, or policy denies it.
        """
        ...

    async def compact(self) -> TurnResult:
        """Make the conversation that the model is told shorter; raises UsageError while questions are open."""
        ...

    async def preview_edit(self, question: Question, arguments: Mapping[str, Any]) -> OpenQuestion:
        """The question as it would be asked with other arguments.

        Raises:
            AnswerRefused: the call may not run with them.
        """
        ...

    async def propose_grant(self, question: Question, arguments: Mapping[str, Any] | None = None) -> Proposal:
        """What "always" would allow from now on."""
        ...

    async def end_processes(self, question: Question) -> tuple[int, ...]:
        """End what an interrupted call left running; returns the pids of what lives all the same."""
        ...

    async def proceed(self) -> TurnResult:
        """Apply the answers and run on, once every open question has one."""
        ...

    async def answers_from_others(self) -> dict[str, Answer]:
        """Standing answers to open questions, by call id."""
        ...

    async def stop(self) -> TurnResult:
        """Stop the turn for good; what is open is cancelled."""
        ...

    async def shut_down(self) -> None:
        """Come to a halt that a later life can go on from."""
        ...

    async def continue_turn(self) -> TurnResult:
        """Go on with a turn that ended without an answer."""
        ...

    async def close(self) -> None:
        """Give the thread back."""
        ...


Opener = Callable[["EventBus"], Awaitable[Conversation]]
"""Opens the session a command is about; the bus is there from its first event on."""

_TURNS, _MESSAGES = 2, 200


def recent_lines(database: Path, thread_id: str) -> list[str]:
    """The last turns with their tool results, as lines safe to print."""
    with read_database(database) as reader:
        recent = reader.recent(thread_id, _MESSAGES, turns=_TURNS)
    lines = [line for entry in recent.entries for line in format_message(entry.role, entry.body, full=False)]
    if not recent.earlier:
        return lines
    return [f"… {format_count(recent.earlier, 'earlier message')}: /inspect or `graph-agent threads show`", *lines]


class ServerStates:
    """A subscriber, shared by the sessions of one chat; each begins with none."""

    def __init__(self) -> None:
        self.now: dict[str, ServerChanged] = {}

    def on(self, bus: EventBus) -> EventBus:
        """The bus of a new session, listened to from now on."""
        self.now = {}
        bus.subscribe(self)
        return bus

    def __call__(self, number: int, event: Event) -> None:  # noqa: ARG002 - the shape of a subscriber
        """Take in one event."""
        if isinstance(event, ServerChanged):
            self.now[event.name] = event
