"""What is entered while the chat loads or a turn runs: messages in the thread's inbox, commands in memory.

Commands are not stored: a later run must not begin with a `/clear` or a shell line that was entered long ago.
Queued lines are not in the history yet: one Up too many would send a message twice.
"""

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from graph_agent.cli.chat.command_table import COMMANDS, NOTHING_QUEUED, expand_command, is_command, parse_command
from graph_agent.errors import AgentError
from graph_agent.wording import format_count

if TYPE_CHECKING:
    from graph_agent.session.session import Session

__all__ = ["InputQueue", "OpeningThread", "QueuingThread"]

_BUILT_IN = frozenset((*COMMANDS, "exit"))
_STORE_S = 20.0
"""How long leaving waits for what was entered to be stored: longer than loading takes on a slow machine."""


class QueuingThread(Protocol):
    """A thread that messages can be queued for; its members are those of `Session`."""

    @property
    def workspace(self) -> Path: ...

    async def queue(self, text: str, *, is_urgent: bool = False) -> int: ...
    async def queued(self) -> list[tuple[int, str]]: ...
    async def remove_queued(self, number: int) -> bool: ...
    async def mark_queued_urgent(self) -> int: ...


class OpeningThread(QueuingThread, Protocol):
    """A thread that this process holds while its session is still being opened; see `HeldThread`."""

    thread_id: str
    was_kept: bool

    def skip_early_request(self) -> None: ...


class InputQueue:
    """The queue of one chat."""

    def __init__(self, say: Callable[[str], None], remember: Callable[[str], None]) -> None:
        self._say = say
        self._remember = remember
        self._entries: list[int | str] = []
        """Numbers of queued messages, and commands as they were typed; oldest first."""
        self._after_command: list[int] = []
        """Messages that were entered after the command that was due last."""
        self._typed_as: dict[int, str] = {}
        """What was typed for each of these messages: a custom command expands to other words."""
        self._lock = asyncio.Lock()
        """Lines are processed one by one, however long each takes."""
        self._early: list[str] = []
        """Lines that were entered before messages could be stored, or that are being stored."""
        self._has_stored = asyncio.Event()
        """Set while there are no such lines."""
        self._has_stored.set()
        self._opening: OpeningThread | None = None
        self._storing: asyncio.Task[None] | None = None
        self.waiting = 0
        """How many messages and commands waited when they were last counted."""
        self.changed: Callable[[], None] = lambda: None
        """Called when something that was entered while the chat loads has been stored."""

    @property
    def has_lines(self) -> bool:
        """See `EarlyLines`."""
        return bool(self._early or self._entries)

    def enter_early(self, line: str) -> None:
        """See `EarlyLines`; a message is stored as soon as this process holds the thread."""
        self._early.append(line)
        self._has_stored.clear()
        self._store_soon()

    async def take_back_early(self) -> str | None:
        """See `EarlyLines`."""
        async with self._lock:
            if self._early:
                line = self._early.pop()
                self._note_stored()
                return line
            return None if self._opening is None else await self._take_newest(self._opening)

    def describe_early(self) -> list[str]:
        """What was entered while the chat loads, and what has become of it."""
        stored = [
            entry if isinstance(entry, str) else f"queued: {self._typed_as[entry]}" for entry in self._entries
        ]
        return [*stored, *(line if is_command(line) else f"typed: {line}" for line in self._early)]

    def begin_storing(self, thread: OpeningThread) -> None:
        """Store the messages that wait, and from now on each one as soon as it is entered."""
        self._opening = thread
        self._store_soon()

    async def store_early(self, session: QueuingThread | None = None) -> None:
        """Queue what was entered early, in the held thread or, once it is open, in the session.

        Raises:
            StorageError: it cannot be stored; the lines that are left can be stored later.
        """
        async with self._lock:
            thread = session or self._opening
            while self._early and thread is not None:
                await self._enter(thread, self._early[0])
                del self._early[0]
                self.changed()
            self._note_stored()
            if session is not None:
                self._opening = None

    async def wait_until_stored(self, opening: asyncio.Future[Any]) -> None:
        """Wait until everything that was entered is stored, while the session is being opened, for some seconds."""
        stored = asyncio.ensure_future(self._has_stored.wait())
        await asyncio.wait({stored, opening}, timeout=_STORE_S, return_when=asyncio.FIRST_COMPLETED)
        stored.cancel()

    def kept_in(self, *, has_failed: bool) -> str:
        """The thread that keeps all messages entered while the chat loaded; empty if it does not keep them all."""
        thread = self._opening
        is_kept = thread is not None and self._has_stored.is_set() and (thread.was_kept or not has_failed)
        return thread.thread_id if thread is not None and is_kept else ""

    def announce(self, *, is_first_due: bool) -> None:
        """Say which messages are queued; the entry that is due now is shown when it is sent."""
        for entry in self._entries[is_first_due:]:
            if isinstance(entry, int):
                self._say(_queued(self._typed_as[entry]))

    def unsent(self) -> list[str]:
        """The messages that were entered while the chat loaded, as they were typed."""
        queued = [self._typed_as[entry] for entry in self._entries if isinstance(entry, int)]
        return [*queued, *(line for line in self._early if not is_command(line))]

    async def count(self, session: "Session") -> None:
        """Count what waits, including what earlier runs and other processes have queued."""
        with contextlib.suppress(AgentError):  # Whatever needs the storage reports it.
            self.waiting = len(await session.queued()) + sum(isinstance(entry, str) for entry in self._entries)

    async def enter(self, session: "Session", line: str, *, is_urgent: bool = False) -> None:
        """Take in a line; a message is durable before it is shown as queued. An urgent one is for the next step."""
        async with self._lock:
            if taken := await self._enter(session, line, is_urgent=is_urgent):
                self._say(taken)
            await self.count(session)

    async def take_back(self, session: "Session") -> str | None:
        """Remove the newest entry, to edit it; returns it as it was typed, None where nothing is queued."""
        async with self._lock:
            await self._forget_sent(session)
            text = await self._take_newest(session)
            if text is not None:
                self._remember(text)
                self._say(f"no longer queued: {_shown(text)}")
            await self.count(session)
            return text

    async def due_command(self, session: "Session", *, in_order: bool) -> str | None:
        """The command that is due; with `in_order` only if no message was entered before it."""
        async with self._lock:
            await self._forget_sent(session)
            due = self._entries[:1] if in_order else self._entries
            command = next((entry for entry in due if isinstance(entry, str)), None)
            self._after_command = []
            if command is not None:
                self._remember(command)
                position = self._entries.index(command)
                del self._entries[position]
                self._after_command = [entry for entry in self._entries[position:] if isinstance(entry, int)]
            return command

    async def follow(self, left: "Session", thread_id: str) -> None:
        """Move what was entered after a command that switches threads to the new thread."""
        async with self._lock:
            for number in self._after_command:
                if (moved := await left.move_queued(number, thread_id)) is not None:
                    self._entries[self._entries.index(number)] = moved
                    self._typed_as[moved] = self._typed_as.pop(number, "")
            self._after_command = []

    async def _take_newest(self, session: QueuingThread) -> str | None:
        if self._entries:
            newest = self._entries[-1]
            if isinstance(newest, int) and not await session.remove_queued(newest):
                return None  # It is being sent.
            del self._entries[-1]
            return newest if isinstance(newest, str) else self._typed_as.pop(newest, "")
        # What an earlier run queued.
        for number, text in reversed(await session.queued()):
            if await session.remove_queued(number):
                return text
        return None

    async def _forget_sent(self, session: "Session") -> None:
        if self._entries:
            queued = dict(await session.queued())
            for sent in [entry for entry in self._entries if isinstance(entry, int) and entry not in queued]:
                self._entries.remove(sent)
                self._remember(self._typed_as.pop(sent, ""))

    def _note_stored(self) -> None:
        if not self._early:
            self._has_stored.set()

    def _store_soon(self) -> None:
        if self._opening is not None:
            self._storing = asyncio.ensure_future(self._try_storing())

    async def _try_storing(self) -> None:
        with contextlib.suppress(AgentError):  # It is reported when the session is opened.
            await self.store_early()

    async def _enter(self, session: QueuingThread, line: str, *, is_urgent: bool = False) -> str:
        """Take in a line; returns what becomes of it, empty if it is refused, which is said here."""
        name, words = parse_command(line) or ("", "")
        if name == "now":
            if not words:
                count = await session.mark_queued_urgent()
                return f"{format_count(count, 'message')} for the next step" if count else NOTHING_QUEUED
            line, is_urgent = words, True
            name, _ = parse_command(line) or ("", "")
        message = line
        try:
            if is_command(line) and not line.startswith("!") and name not in _BUILT_IN:
                message = await asyncio.to_thread(partial(expand_command, line, session.workspace, in_chat=True))
        except AgentError as refusal:
            self._remember(line)
            self._say(str(refusal))
            return ""
        if is_command(line) and message == line:
            if self._opening is not None:
                self._opening.skip_early_request()
            self._entries.append(line)
            return f"after this turn: {line}"
        await self._queue(session, message, line, is_urgent=is_urgent)
        return _queued(line, is_urgent=is_urgent)

    async def _queue(self, session: QueuingThread, message: str, line: str, *, is_urgent: bool = False) -> None:
        number = await session.queue(message, is_urgent=is_urgent)
        self._entries.append(number)
        # The number of a message that was removed, or that a hook blocked, is used again.
        self._typed_as[number] = line


def _queued(line: str, *, is_urgent: bool = False) -> str:
    return f"{'for the next step' if is_urgent else 'queued'}: {_shown(line)}  (Up to edit)"


def _shown(line: str) -> str:
    first, *more = line.split("\n")
    return f"{first} … {len(more)} more lines" if len(more) > 1 else line
