"""The slash commands of the chat. Those that only read show what the commands of the same name show."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from graph_agent.cli.commands_of_chat import COMMANDS, MODES
from graph_agent.cli.conversation import Conversation
from graph_agent.cli.render.lines import marked
from graph_agent.errors import AgentError

__all__ = ["Quit", "Slash", "is_command"]


class Quit(Exception):
    """The person wants to leave."""


def is_command(text: str) -> bool:
    """Whether a message is a command: one line that begins with a slash."""
    return text.startswith("/") and "\n" not in text


@dataclass(frozen=True, slots=True)
class Slash:
    """Runs the commands of one chat."""

    session: Conversation
    console: Console
    database: Path

    def run(self, text: str) -> bool:
        """Run one command; true where it asks for the turn to be gone on with.

        Raises:
            Quit: the command was to leave.
        """
        name, _, argument = text[1:].strip().partition(" ")
        if name == "quit":
            raise Quit
        if name == "retry":
            return True
        try:
            self._show(name, argument.strip())
        except AgentError as failure:
            self._say(str(failure), "yellow")
        return False

    def _show(self, name: str, argument: str) -> None:
        match name:
            case "help":
                self._help()
            case "mode":
                self._mode(argument)
            case "clear":
                self.console.clear()
            case "threads" | "calls" | "inspect":
                self._look(name, argument or None)
            case _:
                self._say(f"/{name} is no command here; /help lists them", "yellow")

    def _look(self, name: str, path: str | None) -> None:
        # Loaded at the first look: the prompt must not wait for what reads the database.
        from graph_agent.cli.views.calls import list_calls
        from graph_agent.cli.views.inspection import inspect_state
        from graph_agent.cli.views.threads import list_threads

        thread_id = self.session.thread_id
        match name:
            case "threads":
                list_threads(self.database, as_json=False)
            case "calls":
                list_calls(self.database, thread_id, status=None, tool=None, as_json=False)
            case _:
                inspect_state(self.database, thread_id, None, path=path, as_json=False, full=False)

    def _help(self) -> None:
        width = max(len(command.usage) for command in COMMANDS.values())
        for command in COMMANDS.values():
            self._say(f"  {command.usage:<{width}}  {command.does}")
        self._say("  Esc or Ctrl-C stops a turn; Alt-Enter breaks the line; Ctrl-D leaves, nothing is lost.", "dim")

    def _mode(self, name: str) -> None:
        if not name:
            self._say(f"mode: {self.session.mode}")
        elif name not in MODES and name != "bypassPermissions":
            self._say(f"there is no mode {name!r}; choose one of {', '.join(MODES)}", "yellow")
        else:
            self.session.mode = name
            self._say(f"mode: {self.session.mode}")

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(marked(text, style) if style else Text.assemble(marked(text)), soft_wrap=True)
