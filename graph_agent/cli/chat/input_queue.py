"""What is entered while a turn runs, in order: messages in the thread's inbox, slash commands in memory.

Commands are not stored: a later run must not begin with a `/clear` or a shell line that was entered long ago.
Queued lines are not in the history yet: one Up too many would send a message twice.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from graph_agent.cli.chat.command_table import COMMANDS, expand_command, parse_command
from graph_agent.cli.chat.slash_commands import NOTHING_QUEUED, is_command
from graph_agent.errors import AgentError
from graph_agent.wording import format_count

if TYPE_CHECKING:
    from graph_agent.session.session import Session

__all__ = ["InputQueue"]

_BUILT_IN = frozenset((*COMMANDS, "exit"))


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
        self.first: list[str] = []
        """Lines that this chat starts with, until they are queued or handled."""

    async def enter(self, session: "Session", line: str, *, is_urgent: bool = False) -> None:
        """Take in a line; a message is durable before it is shown as queued. An urgent one is for the next step."""
        async with self._lock:
            await self._keep_first(session)
            if taken := await self._enter(session, line, is_urgent=is_urgent):
                self._say(taken)

    async def keep_first(self, session: "Session") -> None:
        """Queue the first lines behind what is queued already."""
        async with self._lock:
            await self._keep_first(session)

    async def take_back(self, session: "Session") -> str | None:
        """Remove the newest entry, to edit it; returns it as it was typed, None where nothing is queued."""
        async with self._lock:
            await self._forget_sent(session)
            text = await self._take_newest(session)
            if text is not None:
                self._remember(text)
                self._say(f"no longer queued: {_shown(text)}")
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

    async def _take_newest(self, session: "Session") -> str | None:
        while self._entries:
            newest = self._entries.pop()
            if isinstance(newest, str):
                return newest
            line = self._typed_as.pop(newest, "")
            if await session.remove_queued(newest):
                return line
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

    async def _keep_first(self, session: "Session") -> None:
        while self.first:
            await self._enter(session, self.first.pop(0))

    async def _enter(self, session: "Session", line: str, *, is_urgent: bool = False) -> str:
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
                message = await asyncio.to_thread(expand_command, line, session.workspace)
        except AgentError as refusal:
            self._remember(line)
            self._say(str(refusal))
            return ""
        if is_command(line) and message == line:
            self._entries.append(line)
            return f"after this turn: {line}"
        await self._queue(session, message, line, is_urgent=is_urgent)
        return f"{'for the next step' if is_urgent else 'queued'}: {_shown(line)}  (Up to edit)"

    async def _queue(self, session: "Session", message: str, line: str, *, is_urgent: bool = False) -> None:
        number = await session.queue(message, is_urgent=is_urgent)
        self._entries.append(number)
        # The number of a message that was removed, or that a hook blocked, is used again.
        self._typed_as[number] = line


def _shown(line: str) -> str:
    first, *more = line.split("\n")
    return f"{first} … {len(more)} more lines" if len(more) > 1 else line
