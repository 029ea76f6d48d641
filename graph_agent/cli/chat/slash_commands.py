"""The slash commands of the chat. Those that only read show what the commands of the same name show."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from graph_agent.cli.chat.command_table import COMMANDS, MODES, is_path, nearest, parse_command
from graph_agent.cli.chat.conversation import Conversation, ServerStates
from graph_agent.cli.chat.shell_escape import UserPrograms
from graph_agent.cli.render.console import safe_text
from graph_agent.config.model_choice import OFFLINE_LABEL
from graph_agent.errors import AgentError

if TYPE_CHECKING:
    from graph_agent.app.chat_input import UserCommands


__all__ = [
    "ChatAction",
    "CompactThread",
    "QuitChat",
    "RetryTurn",
    "RewindThread",
    "SendMessage",
    "SlashCommands",
    "SwitchThread",
    "is_command",
]

_KEYS = (
    "!COMMAND runs a line in your shell; @FILE puts a file into a message; Tab completes.",
    "Esc or Ctrl-C stops a turn; Alt-Enter, or \\ before Enter, breaks the line; Ctrl-X Ctrl-E opens an editor.",
    "Ctrl-R finds what was typed before; Ctrl-D leaves, nothing is lost.",
)


class QuitChat(Exception):
    """The person wants to leave."""


@dataclass(frozen=True, slots=True)
class RetryTurn:
    """The turn is to be gone on with."""


@dataclass(frozen=True, slots=True)
class CompactThread:
    """The conversation is to be made shorter."""


_TURNS: dict[str, RetryTurn | CompactThread] = {"retry": RetryTurn(), "compact": CompactThread()}


@dataclass(frozen=True, slots=True)
class SwitchThread:
    """The chat is to go on in another thread."""

    thread: str | None
    """An id or a part of one; None: a new thread."""


@dataclass(frozen=True, slots=True)
class RewindThread:
    """The thread is to be put back to a checkpoint, and gone on with."""

    wish: str
    """What was typed after the command."""


@dataclass(frozen=True, slots=True)
class SendMessage:
    """A message is to be sent: a command of the user's own stands for it."""

    text: str


ChatAction = RetryTurn | CompactThread | SwitchThread | RewindThread | SendMessage
"""What a command may ask of the chat."""


def _asked_at_once(name: str, argument: str) -> ChatAction | None:
    """What needs nothing but the chat itself."""
    match name:
        case "retry" | "compact":
            return _TURNS[name]
        case "clear":
            return SwitchThread(None)
        case "resume" if argument:
            return SwitchThread(argument)
        case "rewind" if argument:
            return RewindThread(argument)
    return None


def is_command(text: str) -> bool:
    """Whether a message is for the chat: a line that begins with a slash and a name, or a shell line."""
    return text.startswith("!") or parse_command(text) is not None


@dataclass(frozen=True, slots=True)
class SlashCommands:
    """Runs the commands of one chat."""

    session: Conversation
    console: Console
    database: Path
    programs: UserPrograms
    servers: ServerStates = field(default_factory=ServerStates)

    async def run(self, text: str) -> ChatAction | None:
        """Run one command; what it asks of the chat, if anything.

        Raises:
            Quit: the command was to leave.
        """
        if text.startswith("!"):
            await self.programs.run(text[1:].strip(), self.session.workspace)
            return None
        name, argument = parse_command(text) or ("", "")
        if name in ("quit", "exit"):
            raise QuitChat
        if (asked := _asked_at_once(name, argument)) is not None:
            return asked
        try:
            return await self._answered(name, argument)
        except AgentError as failure:
            self._say(str(failure), "yellow")
        return None

    async def _answered(self, name: str, argument: str) -> ChatAction | None:
        if name == "fork":
            return await self._fork(argument)
        if name == "edit":
            return await self._edit(argument)
        if name not in COMMANDS:
            return await self._own(name, argument)
        await self._show(name, argument)
        return None

    async def _show(self, name: str, argument: str) -> None:
        match name:
            case "help":
                self._help(await self._own_commands())
            case "share":
                self.programs.share()
            case "mode":
                self._mode(argument)
            case "model":
                await self._model(argument)
            case "resume":
                await asyncio.to_thread(self._view("threads", ""))
                self._say("/resume ID goes on with one of them", "dim")
            case "rewind":
                await asyncio.to_thread(self._view("history", ""))
                self._say("/rewind CHECKPOINT goes back to one of them, /rewind --undo takes that back", "dim")
            case _:
                await asyncio.to_thread(self._view(name, argument))

    async def _edit(self, beginning: str) -> SendMessage | None:
        message = (await self.programs.edited(beginning)).strip()
        if not message:
            self._say("the editor left nothing; nothing is sent", "yellow")
            return None
        self._say(message, "dim")
        return SendMessage(message)

    async def _own(self, name: str, argument: str) -> SendMessage | None:
        """A command of the user's own; what is none is answered with the nearest that is."""
        found = await self._own_commands()
        message = found.message(name, argument)
        if message is None and is_path(name):
            return SendMessage(f"/{name} {argument}".rstrip())
        if message is None:
            self._unknown(name, found.known)
            return None
        if not message:
            self._say(f"/{name} stands for an empty message; nothing is sent", "yellow")
            return None
        return SendMessage(message)

    async def _own_commands(self) -> "UserCommands":
        from graph_agent.app.chat_input import user_commands  # with all that reads a project's files

        return await asyncio.to_thread(user_commands, self.session.workspace)

    async def _fork(self, checkpoint: str) -> SwitchThread:
        # Loaded with what writes the database, which a chat that never forks need not wait for.
        from graph_agent.app.threads import fork

        made = await fork(self.database, checkpoint or self.session.thread_id)
        self._say(f"forked at checkpoint {made.checkpoint_id}")
        return SwitchThread(made.thread_id)

    def _view(self, name: str, argument: str) -> Callable[[], None]:
        # Loaded at the first look: the prompt must not wait for what reads the database.
        from graph_agent.cli.chat.read_commands import ReadCommands

        servers = dict(self.servers.now)
        return ReadCommands(self.database, self.session.thread_id, self.session.mode, servers).view(name, argument)

    def _help(self, own: "UserCommands") -> None:
        self._list([(command.usage, command.does) for command in COMMANDS.values()])
        if own.known:
            self._say("Your own:", "bold")
            self._list([(command.usage, command.does) for command in own.known.values()])
        if own.untrusted:
            named = ", ".join(f"/{name}" for name in own.untrusted)
            self._say(f"  not of use, as their folder is not trusted: {named}", "yellow")
        if self.session.model_label == OFFLINE_LABEL:
            self._say("  help, without the slash, lists what the offline command mode understands.")
        for line in _KEYS:
            for part in wrap(line, max(self.console.width - 3, 20)):
                self._say(f"  {part}", "dim")

    def _list(self, rows: Sequence[tuple[str, str]]) -> None:
        width = min(max(len(usage) for usage, _ in rows), max(self.console.width // 2, 10))
        for usage, does in rows:
            first, *more = wrap(does, max(self.console.width - width - 5, 20)) or [""]
            self._say(f"  {usage:<{width}}  {first}")
            for line in more:
                self._say(f"  {'':<{width}}  {line}")

    def _mode(self, name: str) -> None:
        if not name:
            self._say(f"mode: {self.session.mode}; there are {', '.join(MODES)}")
        elif name not in MODES and name != "bypassPermissions":
            self._say(f"there is no mode {name!r}; choose one of {', '.join(MODES)}", "yellow")
        else:
            self.session.mode = name
            self._say(f"mode: {self.session.mode}")

    async def _model(self, name: str) -> None:
        if name:
            await self.session.switch_model(name)
            self._say(f"model: {self.session.model_label}, from the next message on")
            return
        self._say(f"model: {self.session.model_label}")
        names = await self.session.model_names()
        for one in names:
            self._say(f"  {one}")
        if names:
            self._say("/model NAME takes another", "dim")

    def _unknown(self, name: str, own: Iterable[str]) -> None:
        near = nearest(name, (*COMMANDS, *own))
        hint = f"did you mean {near}?" if near else "/help lists them"
        self._say(f"/{name} is no command here; {hint}", "yellow")

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(safe_text(text, style) if style else Text.assemble(safe_text(text)), soft_wrap=True)
