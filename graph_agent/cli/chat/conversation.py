"""The session as the terminal uses it, and the event subscribers that a chat keeps across its threads."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Protocol

from graph_agent.app.reader import read_database
from graph_agent.cli.views.format import format_count, format_message
from graph_agent.events import Event, EventBus, ServerChanged, TurnEnded, TurnStarted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from graph_agent.ports import AlwaysAllow, Answer, AnswerKind, Proposal, Question, SandboxInfo
    from graph_agent.session.turn_result import OpenQuestion, TurnResult


__all__ = ["Bell", "Conversation", "Opener", "ServerStates", "recent_lines"]

_LONG_TURN_S = 20.0
_RECENT_TURNS, _RECENT_MESSAGES = 2, 200


class Conversation(Protocol):
    """A thread opened by this process: what the terminal uses of the session, which documents it."""

    @property
    def thread_id(self) -> str: ...

    @property
    def workspace(self) -> Path: ...

    @property
    def mode(self) -> str: ...

    @mode.setter
    def mode(self, mode: str) -> None: ...

    @property
    def model_label(self) -> str: ...

    @property
    def model_name(self) -> str | None: ...

    async def model_names(self) -> tuple[str, ...]: ...

    async def switch_model(self, name: str) -> None: ...

    @property
    def sandbox(self) -> SandboxInfo: ...

    @property
    def by(self) -> str: ...

    async def start(self) -> TurnResult: ...

    async def send(self, text: str, attachment: str = "") -> TurnResult: ...

    async def queue(self, text: str) -> int: ...

    async def queued(self) -> list[tuple[int, str]]: ...

    async def remove_queued(self, number: int) -> bool: ...

    async def move_queued(self, number: int, thread_id: str) -> int | None: ...

    async def send_queued(self, attachment: str = "") -> TurnResult | None: ...

    async def decide(
        self,
        question: Question,
        kind: AnswerKind,
        *,
        arguments: Mapping[str, Any] | None = None,
        reason: str = "",
        always: AlwaysAllow | None = None,
        outside: bool = False,
    ) -> Answer: ...

    async def compact(self) -> TurnResult: ...

    async def preview_edit(self, question: Question, arguments: Mapping[str, Any]) -> OpenQuestion: ...

    async def propose_grant(self, question: Question, arguments: Mapping[str, Any] | None = None) -> Proposal: ...

    async def end_processes(self, question: Question) -> tuple[int, ...]: ...

    async def proceed(self) -> TurnResult: ...

    async def answers_from_others(self) -> dict[str, Answer]: ...

    async def stop(self) -> TurnResult: ...

    async def shut_down(self) -> None: ...

    async def continue_turn(self) -> TurnResult: ...

    async def close(self) -> None: ...


Opener = Callable[["EventBus"], Awaitable[Conversation]]
"""Opens the session of a command with a bus that gets all its events."""


def recent_lines(database: Path, thread_id: str) -> list[str]:
    """The last turns with their tool results, as lines safe to print."""
    with read_database(database) as reader:
        recent = reader.recent(thread_id, _RECENT_MESSAGES, turns=_RECENT_TURNS)
    lines = [line for entry in recent.entries for line in format_message(entry.role, entry.body, full=False)]
    if not recent.earlier:
        return lines
    return [f"… {format_count(recent.earlier, 'earlier message')}: /inspect or `graph-agent threads show`", *lines]


class _Subscriber(ABC):
    """Listens to the sessions of one chat, one after the other."""

    def listen(self, bus: EventBus) -> EventBus:
        """Listen to this bus from now on; returns it."""
        bus.subscribe(self)
        return bus

    @abstractmethod
    def __call__(self, number: int, event: Event) -> None:
        """Take in one event."""


class ServerStates(_Subscriber):
    """The newest state of each MCP server of the present session."""

    def __init__(self) -> None:
        self.by_name: dict[str, ServerChanged] = {}

    def listen(self, bus: EventBus) -> EventBus:
        """Listen to this bus from now on; the states of the last session are forgotten."""
        self.by_name = {}
        return super().listen(bus)

    def __call__(self, number: int, event: Event) -> None:  # noqa: ARG002 - the shape of a subscriber
        """Take in one event."""
        if isinstance(event, ServerChanged):
            self.by_name[event.name] = event


class Bell(_Subscriber):
    """Rings the terminal's bell when a question waits or a long turn has ended."""

    def __init__(self, is_wanted: Callable[[], bool]) -> None:
        self._is_wanted = is_wanted
        """Asked only when there is a reason to ring: it reads the settings."""
        self._since = time.monotonic()

    def __call__(self, number: int, event: Event) -> None:  # noqa: ARG002 - the shape of a subscriber
        """Take in one event."""
        if isinstance(event, TurnEnded):
            is_long = time.monotonic() - self._since >= _LONG_TURN_S
            if (is_long or event.status in ("awaiting_approval", "interrupted")) and self._is_wanted():
                sys.stdout.write("\a")
                sys.stdout.flush()
        if isinstance(event, TurnStarted | TurnEnded):
            self._since = time.monotonic()
