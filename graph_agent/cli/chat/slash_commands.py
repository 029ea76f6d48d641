"""Run the slash commands of the chat. Those that only read show what the commands of the same name show."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from graph_agent.cli.chat.command_table import COMMANDS, MODES, is_root_path, nearest_command, parse_command
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
    "!COMMAND runs a line in your shell; @FILE adds a file to a message; Tab completes.",
    "Esc or Ctrl-C stops a turn; Alt-Enter or \\ Enter starts a new line; Ctrl-X Ctrl-E opens your editor.",
    "Ctrl-R searches your history; Ctrl-D leaves, and you can resume the thread.",
)


class QuitChat(Exception):
    """The person wants to leave."""


@dataclass(frozen=True, slots=True)
class RetryTurn:
    """Continue the turn."""


@dataclass(frozen=True, slots=True)
class CompactThread:
    """Compact the model's context."""


@dataclass(frozen=True, slots=True)
class SwitchThread:
    """Continue in another thread."""

    thread: str | None
    """An id or a part of one; None for a new thread."""


@dataclass(frozen=True, slots=True)
class RewindThread:
    """Rewind this thread."""

    arguments: str
    """What was typed after the command."""


@dataclass(frozen=True, slots=True)
class SendMessage:
    """Send a message, which a custom command may stand for."""

    text: str


ChatAction = RetryTurn | CompactThread | SwitchThread | RewindThread | SendMessage
"""What a command asks the chat to do."""


_ACTIONS: dict[str, ChatAction] = {"retry": RetryTurn(), "compact": CompactThread(), "clear": SwitchThread(None)}
_TARGETED: dict[str, Callable[[str], ChatAction]] = {"resume": SwitchThread, "rewind": RewindThread}
"""Commands that show a list where nothing is named."""


def is_command(text: str) -> bool:
    """Whether a line is a slash command or a shell line."""
    return text.startswith("!") or parse_command(text) is not None


@dataclass(frozen=True, slots=True)
class SlashCommands:
    """The commands of one chat."""

    session: Conversation
    console: Console
    database: Path
    programs: UserPrograms
    servers: ServerStates = field(default_factory=ServerStates)

    async def run(self, text: str) -> ChatAction | None:
        """Run one command; returns what the chat has to do, if anything.

        Raises:
            Quit: the command was to leave.
        """
        if text.startswith("!"):
            await self.programs.run(text[1:].strip(), self.session.workspace)
            return None
        name, argument = parse_command(text) or ("", "")
        if name in ("quit", "exit"):
            raise QuitChat
        try:
            return await self._run(name, argument)
        except AgentError as failure:
            self._say(str(failure), "yellow")
        return None

    async def _run(self, name: str, argument: str) -> ChatAction | None:
        if action := _ACTIONS.get(name):
            return action
        if argument and name in _TARGETED:
            return _TARGETED[name](argument)
        if name == "fork":
            return await self._fork(argument)
        if name == "edit":
            return await self._edit(argument)
        if name not in COMMANDS:
            return await self._expand(name, argument)
        await self._show(name, argument)
        return None

    async def _show(self, name: str, argument: str) -> None:
        match name:
            case "help":
                self._help(await self._custom_commands())
            case "share":
                self.programs.share()
            case "mode":
                self._mode(argument)
            case "model":
                await self._model(argument)
            case "resume":
                await asyncio.to_thread(self._view("threads", ""))
                self._say("/resume ID switches to one of them", "dim")
            case "rewind":
                await asyncio.to_thread(self._view("history", ""))
                self._say("/rewind CHECKPOINT restores one of them; /rewind --undo reverts that", "dim")
            case _:
                await asyncio.to_thread(self._view(name, argument))

    async def _edit(self, text: str) -> SendMessage | None:
        message = (await self.programs.edit(text)).strip()
        if not message:
            self._say("The message is empty. Nothing was sent.", "yellow")
            return None
        self._say(message, "dim")
        return SendMessage(message)

    async def _expand(self, name: str, argument: str) -> SendMessage | None:
        """Expand a custom command, or say that there is none."""
        found = await self._custom_commands()
        message = found.message(name, argument)
        if message is None and is_root_path(name):
            return SendMessage(f"/{name} {argument}".rstrip())
        if message is None:
            self._unknown(name, found.known)
            return None
        if not message:
            self._say(f"/{name} expands to an empty message. Nothing was sent.", "yellow")
            return None
        return SendMessage(message)

    async def _custom_commands(self) -> "UserCommands":
        from graph_agent.app.chat_input import user_commands  # with all that reads a project's files

        return await asyncio.to_thread(user_commands, self.session.workspace)

    async def _fork(self, checkpoint: str) -> SwitchThread:
        # Loads what writes the database, which few chats need.
        from graph_agent.app.threads import fork

        made = await fork(self.database, checkpoint or self.session.thread_id)
        self._say(f"Forked at checkpoint {made.checkpoint_id}.")
        return SwitchThread(made.thread_id)

    def _view(self, name: str, argument: str) -> Callable[[], None]:
        # Loaded with the first command: the prompt must not wait for what reads the database.
        from graph_agent.cli.chat.read_commands import ReadCommands

        servers = dict(self.servers.by_name)
        return ReadCommands(self.database, self.session.thread_id, self.session.mode, servers).view(name, argument)

    def _help(self, custom: "UserCommands") -> None:
        self._list([(command.usage, command.does) for command in COMMANDS.values()])
        if custom.known:
            self._say("Custom commands:", "bold")
            self._list([(command.usage, command.does) for command in custom.known.values()])
        if custom.untrusted:
            named = ", ".join(f"/{name}" for name in custom.untrusted)
            self._say(f"  Not available, because their folder is not trusted: {named}", "yellow")
        if self.session.model_label == OFFLINE_LABEL:
            self._say("  Type `help` without the slash for what works offline.")
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
            self._say(f"mode: {self.session.mode} (available: {', '.join(MODES)})")
        elif name not in MODES and name != "bypassPermissions":
            self._say(f"Unknown mode {name!r}. Choose one of {', '.join(MODES)}.", "yellow")
        else:
            self.session.mode = name
            self._say(f"mode: {self.session.mode}")

    async def _model(self, name: str) -> None:
        if name:
            await self.session.switch_model(name)
            self._say(f"model: {self.session.model_label} (from your next message on)")
            return
        self._say(f"model: {self.session.model_label}")
        names = await self.session.model_names()
        for one in names:
            self._say(f"  {one}")
        if names:
            self._say("/model NAME switches to another", "dim")

    def _unknown(self, name: str, custom: Iterable[str]) -> None:
        near = nearest_command(name, (*COMMANDS, *custom))
        hint = f"Did you mean {near}?" if near else "/help lists the commands."
        self._say(f"Unknown command /{name}. {hint}", "yellow")

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(safe_text(text, style) if style else Text.assemble(safe_text(text)), soft_wrap=True)
