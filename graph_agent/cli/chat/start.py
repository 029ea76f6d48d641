"""Puts a chat together for the terminal this process was started in."""

import asyncio
import importlib
import os
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.utils import is_dumb_terminal

from graph_agent.cli.chat.completion import ChatCompleter
from graph_agent.cli.exit_codes import ExitCode
from graph_agent.cli.prompts.terminal import InputClosed, InputInterrupted, Terminal
from graph_agent.cli.render.escape import escape
from graph_agent.cli.session_target import Target, open_target, resolve_target
from graph_agent.config.paths import data_dir, database_path, make_private_folder
from graph_agent.config.project import has_project_files
from graph_agent.errors import UsageError

if TYPE_CHECKING:
    from graph_agent.cli.chat.chat import Chat, ThreadOpening
    from graph_agent.cli.chat.conversation import Conversation


__all__ = ["open_chat"]


def open_chat(target: Target, message: str | None) -> int:
    """Chat until the person leaves; returns the exit code.

    Raises:
        UsageError: there is no terminal to chat in.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the chat needs a terminal for input and output; without one use `graph-agent run`")
    sys.stdout.write(f"graph-agent in {escape(str(target.workspace))}, /help lists the commands\n")
    offers = ChatCompleter(target.workspace, database_path(os.environ, target.flags.get("db")))
    terminal = Terminal(_history(), ThreadedCompleter(offers))
    with terminal.held():
        return asyncio.run(_chat(terminal, offers, target, message))


async def _chat(terminal: Terminal, offers: ChatCompleter, target: Target, message: str | None) -> int:
    """The prompt of a new thread is there before anything heavy is loaded, unless its folder is to be trusted."""
    if has_project_files(target.workspace) and not await _trust_settled(terminal, target):
        return ExitCode.DONE
    is_new = message is None and not target.exists
    first = asyncio.create_task(terminal.message()) if is_new else None
    await asyncio.sleep(0)
    chat = await asyncio.to_thread(_built, terminal, offers, target, message)
    return await chat.run(first)


async def _trust_settled(terminal: Terminal, target: Target) -> bool:
    """False where the person leaves instead of answering."""
    asking = await asyncio.to_thread(importlib.import_module, "graph_agent.cli.prompts.dialogs")
    try:
        await asking.ask_trust(target.workspace, terminal, lambda line: sys.stdout.write(f"{line}\n"))
    except (InputInterrupted, InputClosed):
        return False
    return True


def _built(terminal: Terminal, offers: ChatCompleter, target: Target, message: str | None) -> "Chat":
    chat = importlib.import_module("graph_agent.cli.chat.chat")
    setting = importlib.import_module("graph_agent.cli.chat.chat")
    screen = importlib.import_module("graph_agent.cli.render.console")
    importlib.import_module("graph_agent.cli.startup").log_to_file()
    seen = importlib.import_module("graph_agent.cli.chat.conversation").ServerStates()
    bell = importlib.import_module("graph_agent.cli.chat.bell").Bell(lambda: _wants_bell(target.workspace))

    def visit(target: Target) -> "ThreadOpening":
        match_choice = replace(target, flags={**target.flags, "may_choose_model": True})
        made: ThreadOpening = setting.ThreadOpening(
            lambda bus: open_target(match_choice, bell.on(seen.on(offers.on(bus)))), target.exists, target.last_life
        )
        return made

    begins = setting.ChatOptions(
        database=database_path(os.environ, target.flags.get("db")),
        elsewhere=lambda thread, left: visit(_seen_from(target, thread, left)),
        again=lambda left: visit(_anew(target, left)),
        servers=seen,
        message=message,
        introduction=lambda: _introduction(target),
    )
    built: Chat = chat.Chat(visit(target), terminal, screen.make_console(), begins)
    return built


def _wants_bell(workspace: Path) -> bool:
    """Asked at a question or a turn's end; by then the settings have been read without fault."""
    from graph_agent.app.project_trust import settings_at

    return not is_dumb_terminal() and settings_at(workspace).bell


def _seen_from(target: Target, thread: str | None, left: "Conversation") -> Target:
    """Where the chat goes on: in a new thread like the one left, or in another with a mode and folder of its own.

    Raises:
        UnknownId: there is no such thread.
        UsageError: it is the one that is left.
    """
    flags = _kept(target, left)
    if thread is None:
        return Target(left.workspace, flags={**flags, "mode": left.mode})
    found = resolve_target(flags, workspace=None, thread=None, resume=thread)
    if found.thread_id == left.thread_id:
        raise UsageError(f"thread {left.thread_id} is the one you are in")
    return found


def _anew(target: Target, left: "Conversation") -> Target:
    return Target(left.workspace, left.thread_id, exists=True, flags={**_kept(target, left), "mode": left.mode})


def _kept(target: Target, left: "Conversation") -> dict[str, Any]:
    """The flags that hold for whatever thread the chat goes to."""
    kept = ("db", "no_stream", "max_steps", "max_tokens", "max_cost", "add_dirs")
    flags = {name: target.flags[name] for name in kept if name in target.flags}
    along = {"thread": left.thread_id, "name": left.model_name}
    return {**flags, "model_left": along} if left.model_name else flags


def _introduction(target: Target) -> tuple[str, ...]:
    """Which model answers and why, and how to connect another. Settings are heavy: read once all is loaded."""
    from graph_agent.app.project_trust import settings_at
    from graph_agent.config.model_choice import choose_model

    choice = choose_model(settings_at(target.workspace, {"model.name": target.flags.get("model")}))
    first = ("help lists the commands it understands; list is one of them.",) if choice.kind == "offline" else ()
    return choice.reason, *first, choice.connect


def _history() -> Path | None:
    """The file of what was typed, private; None where it cannot be kept."""
    path = data_dir(os.environ) / "history"
    try:
        make_private_folder(path.parent)
    except OSError:
        return None
    return path
