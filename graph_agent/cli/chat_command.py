"""Puts a chat together for the terminal this process was started in."""

import asyncio
import os
import sys
from importlib.metadata import version
from pathlib import Path

from prompt_toolkit.completion import WordCompleter
from rich.text import Text

from graph_agent.cli.ask.terminal import Terminal
from graph_agent.cli.chat import Chat, Setting
from graph_agent.cli.logs import log_privately
from graph_agent.cli.opening import Target, open_target
from graph_agent.cli.render.lines import marked
from graph_agent.cli.render.screen import make_console
from graph_agent.cli.slash import COMMANDS
from graph_agent.config.paths import data_dir, database_path
from graph_agent.errors import UsageError

__all__ = ["open_chat"]


def open_chat(target: Target, message: str | None) -> int:
    """Chat until the person leaves; returns the exit code.

    Raises:
        UsageError: there is no terminal to chat in.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the chat needs a terminal for input and output; without one use `graph-agent run`")
    log_privately()
    console = make_console()
    heading = Text.assemble(("graph-agent", "bold"), f" {version('graph-agent')}  ", marked(str(target.workspace)))
    console.print(heading, ("/help lists the commands"), soft_wrap=True)
    setting = Setting(database_path(os.environ, target.flags.get("db")), message, resumes=target.exists)
    terminal = Terminal(_history(), WordCompleter([f"/{name}" for name in COMMANDS], sentence=True))
    chat = Chat(lambda bus: open_target(target, bus), terminal, console, setting)
    with terminal.held():
        return asyncio.run(chat.run())


def _history() -> Path | None:
    """The file of what was typed, private; None where it cannot be kept."""
    path = data_dir(os.environ) / "history"
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
    except OSError:
        return None
    return path
