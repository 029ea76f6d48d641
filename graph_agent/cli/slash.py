"""The slash commands of the chat. Those that only read show what the commands of the same name show."""

import asyncio
import difflib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap

from rich.console import Console
from rich.text import Text

from graph_agent.cli.commands_of_chat import COMMANDS, MODES
from graph_agent.cli.conversation import Conversation
from graph_agent.cli.render.lines import marked
from graph_agent.cli.servers_seen import ServersSeen
from graph_agent.errors import AgentError

__all__ = ["Back", "Compact", "Elsewhere", "GoOn", "Quit", "Slash", "is_command"]

_LOOKS = frozenset(
    (
        *("threads", "calls", "history", "diff", "graph", "inspect", "todo", "memory", "policy", "tools"),
        *("mcp", "doctor", "export", "cost"),
    )
)
"""Commands that show what the command of the same name shows."""


class Quit(Exception):
    """The person wants to leave."""


@dataclass(frozen=True, slots=True)
class GoOn:
    """The turn is to be gone on with."""


@dataclass(frozen=True, slots=True)
class Compact:
    """The conversation is to be made shorter."""


_TURNS: dict[str, GoOn | Compact] = {"retry": GoOn(), "compact": Compact()}


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The chat is to go on in another thread."""

    thread: str | None
    """An id or a part of one; None: a new thread."""


@dataclass(frozen=True, slots=True)
class Back:
    """The thread is to be put back to a checkpoint, and gone on with."""

    wish: str
    """What was typed after the command."""


def is_command(text: str) -> bool:
    """Whether a message is a command: one line that begins with a slash."""
    return text.startswith("/") and "\n" not in text


@dataclass(frozen=True, slots=True)
class Slash:
    """Runs the commands of one chat."""

    session: Conversation
    console: Console
    database: Path
    servers: ServersSeen = field(default_factory=ServersSeen)

    async def run(self, text: str) -> GoOn | Compact | Elsewhere | Back | None:
        """Run one command; what it asks of the chat, if anything.

        Raises:
            Quit: the command was to leave.
        """
        name, _, rest = text[1:].strip().partition(" ")
        argument = rest.strip()
        match name:
            case "quit" | "exit":
                raise Quit
            case "retry" | "compact":
                return _TURNS[name]
            case "clear":
                return Elsewhere(None)
            case "resume" if argument:
                return Elsewhere(argument)
            case "rewind" if argument:
                return Back(argument)
        try:
            if name == "fork":
                return await self._fork(argument)
            await self._show(name, argument)
        except AgentError as failure:
            self._say(str(failure), "yellow")
        return None

    async def _show(self, name: str, argument: str) -> None:
        match name:
            case "help":
                self._help()
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
            case _ if name in _LOOKS:
                await asyncio.to_thread(self._view(name, argument))
            case _:
                self._unknown(name)

    async def _fork(self, checkpoint: str) -> Elsewhere:
        # Loaded with what writes the database, which a chat that never forks need not wait for.
        from graph_agent.app.forking import fork

        made = await fork(self.database, checkpoint or self.session.thread_id)
        self._say(f"forked at checkpoint {made.checkpoint_id}")
        return Elsewhere(made.thread_id)

    def _view(self, name: str, argument: str) -> Callable[[], None]:
        # Loaded at the first look: the prompt must not wait for what reads the database.
        from graph_agent.cli.looking import Look

        servers = dict(self.servers.now)
        return Look(self.database, self.session.thread_id, self.session.mode, servers).view(name, argument)

    def _help(self) -> None:
        from graph_agent.config.choice import OFFLINE_LABEL  # with the settings, which are loaded by then

        width = max(len(command.usage) for command in COMMANDS.values())
        for command in COMMANDS.values():
            first, *more = wrap(command.does, max(self.console.width - width - 5, 20))
            self._say(f"  {command.usage:<{width}}  {first}")
            for line in more:
                self._say(f"  {'':<{width}}  {line}")
        if self.session.model_label == OFFLINE_LABEL:
            self._say("  help, without the slash, lists what the offline command mode understands.")
        self._say("  Esc or Ctrl-C stops a turn; Alt-Enter breaks the line; Ctrl-D leaves, nothing is lost.", "dim")

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

    def _unknown(self, name: str) -> None:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean /{near[0]}?" if near else "/help lists them"
        self._say(f"/{name} is no command here; {hint}", "yellow")

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(marked(text, style) if style else Text.assemble(marked(text)), soft_wrap=True)
