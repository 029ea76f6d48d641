"""What is typed while a turn runs, in the order it was typed: messages in the thread's inbox, commands beside it.

A command of the user's own is a message, and waits as one. What waits is not in the history of what was typed yet:
an Up too many would send it twice. Commands of the chat wait in memory: a later life must not begin with a `/clear`
or a shell line that somebody entered long ago.
"""

import asyncio
from collections.abc import Callable

from graph_agent.cli.chat.command_table import COMMANDS, expand_command
from graph_agent.cli.chat.conversation import Conversation
from graph_agent.cli.chat.slash_commands import is_command
from graph_agent.errors import AgentError

__all__ = ["InputQueue"]


class InputQueue:
    """What waits in one chat."""

    def __init__(self, say: Callable[[str], None], remember: Callable[[str], None]) -> None:
        self._say = say
        self._remember = remember
        self._entered: list[int | str] = []
        """Numbers of queued messages, and commands as they were typed; oldest first."""
        self._behind: list[int] = []
        """Those of them that were typed behind the command that was due last."""
        self._typed_as: dict[int, str] = {}
        """What was typed for each of these messages: the words of a command's are others."""
        self._turn = asyncio.Lock()
        """Lines are taken in one by one, however long each takes."""
        self.first = ""
        """The message that this chat begins with, as long as nothing else holds it."""

    async def enter(self, session: Conversation, line: str) -> None:
        """Take in a line; it is durable before it is shown as queued."""
        async with self._turn:
            await self._keep_first(session)
            try:
                message = await self._meant(session, line)
            except AgentError as refusal:
                self._remember(line)
                self._say(str(refusal))
                return
            if message is None:
                self._entered.append(line)
                self._say(f"after this turn: {line}")
            else:
                await self._queue(session, message, line)
                self._say(f"queued: {line}  (Up takes it back)")

    async def keep_first(self, session: Conversation) -> None:
        """The first message waits with the others from now on."""
        async with self._turn:
            await self._keep_first(session)

    async def take_back(self, session: Conversation) -> str | None:
        """The newest of what waits, as it was typed; it is forgotten here. None where nothing waits."""
        async with self._turn:
            await self._drop_sent(session)
            while self._entered:
                newest = self._entered.pop()
                if isinstance(newest, str):
                    return self._taken_back(newest)
                line = self._typed_as.pop(newest, "")
                if await session.remove_queued(newest):
                    return self._taken_back(line)
            # What an earlier life queued.
            for number, text in reversed(await session.queued()):
                if await session.remove_queued(number):
                    return self._taken_back(text)
            return None

    async def due_command(self, session: Conversation, *, in_order: bool) -> str | None:
        """The command whose turn it is; not `in_order` those that were typed before it may wait on."""
        async with self._turn:
            await self._drop_sent(session)
            due = self._entered[:1] if in_order else self._entered
            command = next((one for one in due if isinstance(one, str)), None)
            self._behind = []
            if command is not None:
                self._remember(command)
                place = self._entered.index(command)
                del self._entered[place]
                self._behind = [one for one in self._entered[place:] if isinstance(one, int)]
            return command

    async def follow(self, left: Conversation, thread_id: str) -> None:
        """What was typed behind a command that leaves a thread is for the thread it goes to."""
        async with self._turn:
            for number in self._behind:
                if (there := await left.move_queued(number, thread_id)) is not None:
                    self._entered[self._entered.index(number)] = there
                    self._typed_as[there] = self._typed_as.pop(number, "")
            self._behind = []

    async def _drop_sent(self, session: Conversation) -> None:
        if self._entered:
            waiting = dict(await session.queued())
            for sent in [one for one in self._entered if isinstance(one, int) and one not in waiting]:
                self._entered.remove(sent)
                self._remember(self._typed_as.pop(sent, ""))

    async def _keep_first(self, session: Conversation) -> None:
        first, self.first = self.first, ""
        if first:
            await self._queue(session, first, first)

    async def _queue(self, session: Conversation, message: str, line: str) -> None:
        number = await session.queue(message)
        self._entered.append(number)
        # The number of one that was taken back, or that a hook kept back, is given again.
        self._typed_as[number] = line

    async def _meant(self, session: Conversation, line: str) -> str | None:
        """The message that a line stands for; None where it is a command of the chat."""
        if not is_command(line):
            return line
        name = line[1:].strip().partition(" ")[0]
        if line.startswith("!") or name in (*COMMANDS, "exit"):
            return None
        message = await asyncio.to_thread(expand_command, line, session.workspace, trusted_once=False)
        return None if message == line else message

    def _taken_back(self, text: str) -> str:
        self._remember(text)
        self._say(f"taken back: {text}")
        return text
