"""Run the slash commands of the chat. Those that only read show what the commands of the same name show."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Literal, NamedTuple

from rich.console import Console
from rich.text import Text

from graph_agent.cli.chat.command_table import (
    COMMANDS,
    MODES,
    NOTHING_QUEUED,
    QUIT_WORDS,
    expand_command,
    is_command,
    parse_command,
)
from graph_agent.cli.chat.shell_escape import UserPrograms
from graph_agent.cli.render.console import safe_text
from graph_agent.config.model_choice import OFFLINE_LABEL
from graph_agent.config.paths import runnable_hints
from graph_agent.errors import AgentError
from graph_agent.events import ServerChanged

if TYPE_CHECKING:
    from graph_agent.app.chat_input import UserCommands
    from graph_agent.cli.render.themes import ThemeName
    from graph_agent.session.session import Session


__all__ = ["ChatAction", "QuitChat", "SlashCommands"]

_KEYS = (
    "!COMMAND runs a line in your shell; @FILE adds a file to a message; Tab completes.",
    "During a turn Enter queues a message, and Ctrl-Enter or /now sends it at the model's next step.",
    "Esc or Ctrl-C stops a turn and goes back from a question, which stays open.",
    "Alt-Enter or \\ Enter starts a new line; Ctrl-X Ctrl-E opens your editor.",
    "Ctrl-R searches your history; Ctrl-D leaves, and you can resume the thread.",
)


class QuitChat(Exception):
    """The person wants to leave."""


class ChatAction(NamedTuple):
    """What a command asks the chat to do."""

    kind: Literal["send", "retry", "compact", "switch", "resume", "rewind", "tasks"]
    text: str = ""
    """The message, the arguments of a rewind, or the id of a thread or a part of it; empty for a new thread, and
    where the person is to choose."""


@dataclass(frozen=True, slots=True)
class SlashCommands:
    """The commands of one chat."""

    session: "Session"
    console: Console
    database: Path
    programs: UserPrograms
    servers: Mapping[str, ServerChanged] = field(default_factory=dict)
    """The MCP servers of the session, by name."""
    set_theme: "Callable[[ThemeName | None], ThemeName]" = lambda name: name or "auto"
    """Use the colours of a theme from now on, None: as before; returns the name of the theme in use."""

    async def run(self, text: str) -> ChatAction | None:
        """Run one command; returns what the chat has to do, if anything.

        Raises:
            QuitChat: the command was to leave.
        """
        if text.startswith("!"):
            await self.programs.run(text[1:].strip(), self.session.workspace)
            return None
        name, argument = parse_command(text) or (text.strip().lower(), "")
        if name in QUIT_WORDS:
            raise QuitChat
        if name == "now" and argument:  # No turn runs: it begins one.
            return await self.run(argument) if is_command(argument) else ChatAction("send", argument)
        try:
            return await self._run(name, argument)
        except AgentError as failure:
            self._say(str(failure), "yellow")
        return None

    async def _run(self, name: str, argument: str) -> ChatAction | None:
        action: ChatAction | None = None
        match name:
            case "retry" | "compact" | "tasks":
                action = ChatAction(name)
            case "clear":
                action = ChatAction("switch")
            case "resume":
                action = ChatAction("resume", argument)
            case "rewind":
                action = ChatAction("rewind", argument)
            case "fork":
                # Loads what writes the database, which few chats need.
                from graph_agent.app.threads import fork

                made = await fork(self.database, argument or self.session.thread_id)
                self._say(f"Forked at checkpoint {made.checkpoint_id}.")
                action = ChatAction("switch", made.thread_id)
            case "edit":
                message = (await self.programs.edit(argument)).strip()
                self._say(message or "The message is empty. Nothing was sent.", "dim" if message else "yellow")
                action = ChatAction("send", message) if message else None
            case "init":
                action = await asyncio.to_thread(self._init)
            case _ if name not in COMMANDS:
                line, folder = f"/{name} {argument}".rstrip(), self.session.workspace
                message = await asyncio.to_thread(expand_command, line, folder, in_chat=True)
                action = ChatAction("send", message)
            case _:
                await self._show(name, argument)
        return action

    async def _show(self, name: str, argument: str) -> None:
        match name:
            case "help":
                from graph_agent.app.chat_input import user_commands  # with all that reads a project's files

                self._help(await asyncio.to_thread(user_commands, self.session.workspace))
            case "share":
                self.programs.share()
            case "now":
                if not await self.session.queued():
                    self._say(NOTHING_QUEUED, "yellow")
            case "mode" | "model" | "theme":
                await self._show_or_set(name, argument)
            case "status":
                await self._status()
            case "context":
                from graph_agent.cli.views.format import format_context_use  # with all that reads a database

                for line in format_context_use(await self.session.context_use()):
                    self._say(line)
            case _:
                # Loaded with the first command: the prompt must not wait for what reads the database.
                from graph_agent.cli.chat.read_commands import ReadCommands

                commands = ReadCommands(self.database, self.session.thread_id, self.session.mode, self.servers)
                await asyncio.to_thread(commands.show, name, argument)

    async def _status(self) -> None:
        """One line each for what this chat works with."""
        from importlib.metadata import version

        from graph_agent.cli.views.format import read_list  # with all that reads a database
        from graph_agent.cli.views.table import format_fields, print_lines
        from graph_agent.ports.usage import format_usage, usage_report

        session = self.session
        use, sandbox = await session.context_use(), await asyncio.to_thread(lambda: session.sandbox)
        stored = await asyncio.to_thread(read_list, self.database, lambda reader: reader.threads())
        thread = next((one for one in stored if one.thread_id == session.thread_id), None)
        share = f"{'~' if use.is_estimated else ''}{100 * use.total / use.window.tokens:.0f}%"
        shown = {
            "version": f"graph-agent {version('graph-agent')}",
            "model": session.model_label,
            "mode": session.mode,
            "sandbox": f"{sandbox.name}: {sandbox.description}",
            "folder": str(session.workspace),
            "thread": f"{session.thread_id}{f' ({thread.title})' if thread and thread.title else ''}",
            "context": f"{share} of {use.window.tokens:,} tokens; /context shows what fills it",
            "usage": format_usage(usage_report(thread.usage if thread else None)),
            "database": str(self.database),
        }
        print_lines(format_fields(shown))

    def _help(self, custom: "UserCommands") -> None:
        self._list((command.usage, command.does) for command in COMMANDS.values())
        if custom.known:
            self._say("Custom commands:", "bold")
            self._list((command.usage, command.does) for command in custom.known.values())
        if custom.untrusted:
            named = ", ".join(f"/{name}" for name in custom.untrusted)
            self._say(f"  Not available, because their folder is not trusted: {named}", "yellow")
        if self.session.model_label == OFFLINE_LABEL:
            self._say("  Type `help` without the slash for what works offline.")
        for line in _KEYS:
            for part in wrap(line, max(self.console.width - 3, 20)):
                self._say(f"  {part}", "dim")

    def _list(self, commands: Iterable[tuple[str, str]]) -> None:
        rows = list(commands)
        width = min(max(len(usage) for usage, _ in rows), max(self.console.width // 2, 10))
        for usage, does in rows:
            lines = wrap(does, max(self.console.width - width - 5, 20)) or [""]
            for number, line in enumerate(lines):
                self._say(f"  {'' if number else usage:<{width}}  {line}")

    def _init(self) -> ChatAction | None:
        """Let the model write AGENTS.md; offline it is drafted from the files, if there is none."""
        from graph_agent.app.project_survey import draft_instructions, request_for_model, write_instructions

        folder = self.session.workspace
        if self.session.model_label != OFFLINE_LABEL:
            return ChatAction("send", request_for_model(folder))
        draft = draft_instructions(folder)
        self._say(draft.report(write_instructions(folder, draft.text)))
        return None

    async def _show_or_set(self, setting: str, value: str) -> None:
        if setting == "mode":
            await self._mode(value)
        elif setting == "model":
            await self._model(value)
        else:
            self._theme(value)

    async def _mode(self, name: str) -> None:
        if name and name not in (*MODES, "bypassPermissions"):
            self._say(f"Unknown mode {name!r}. Choose one of {', '.join(MODES)}.", "yellow")
            return
        if name:
            await self.session.change_mode(name)
        self._say(f"mode: {self.session.mode}")
        if not name:
            self._list(MODES.items())
            self._say("/mode NAME sets another, Shift-Tab the next of the first three.", "dim")

    def _theme(self, name: str) -> None:
        from graph_agent.cli.render.themes import THEME_NAMES

        chosen = next((one for one in THEME_NAMES if one == name), None)
        if name and chosen is None:
            self._say(f"Unknown theme {name!r}. Choose one of {', '.join(THEME_NAMES)}.", "yellow")
            return
        current = self.set_theme(chosen)
        available = f" (available: {', '.join(THEME_NAMES)})"
        more = " (for this chat; `theme` in config.toml is for all)" if name else available
        self._say(f"theme: {current}{more}")

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

    def _say(self, text: str, style: str = "") -> None:
        from graph_agent.cli.views.table import wrap_line  # with all that formats numbers and times

        for line in wrap_line(safe_text(runnable_hints(text)).plain, self.console.width):
            self.console.print(Text(line, style))
