"""Start the interactive chat in the current terminal.

The prompt of a new thread appears before anything heavy is loaded; the rest is imported in a thread behind it.
"""

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

_KEPT_FLAGS = ("db", "no_stream", "max_steps", "max_tokens", "max_cost", "add_dirs")
"""They hold for whatever thread the chat switches to."""


def open_chat(target: Target, message: str | None) -> int:
    """Chat until the person leaves; returns the exit code.

    Raises:
        UsageError: there is no terminal to chat in.
    """
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError('No terminal found. Run one prompt without a terminal: `graph-agent run "…"`.')
    sys.stdout.write(f"graph-agent · {escape(str(target.workspace))} · /help for commands\n")
    completer = ChatCompleter(target.workspace, database_path(os.environ, target.flags.get("db")))
    terminal = Terminal(_history_file(), ThreadedCompleter(completer))
    with terminal.held():
        return asyncio.run(_chat(terminal, completer, target, message))


async def _chat(terminal: Terminal, completer: ChatCompleter, target: Target, message: str | None) -> int:
    if has_project_files(target.workspace) and not await _ask_trust(terminal, target):
        return ExitCode.DONE
    is_new = message is None and not target.exists
    first = asyncio.create_task(terminal.message()) if is_new else None
    await asyncio.sleep(0)
    chat = await asyncio.to_thread(_build_chat, terminal, completer, target, message)
    return await chat.run(first)


async def _ask_trust(terminal: Terminal, target: Target) -> bool:
    """Ask whether the folder is trusted; False where the person leaves instead of answering."""
    dialogs = await asyncio.to_thread(importlib.import_module, "graph_agent.cli.prompts.dialogs")
    try:
        await dialogs.ask_trust(target.workspace, terminal, lambda line: sys.stdout.write(f"{line}\n"))
    except (InputInterrupted, InputClosed):
        return False
    return True


def _build_chat(terminal: Terminal, completer: ChatCompleter, target: Target, message: str | None) -> "Chat":
    chat = importlib.import_module("graph_agent.cli.chat.chat")
    console = importlib.import_module("graph_agent.cli.render.console")
    conversation = importlib.import_module("graph_agent.cli.chat.conversation")
    importlib.import_module("graph_agent.cli.log_file").log_to_file()
    servers = conversation.ServerStates()
    bell = conversation.Bell(lambda: _is_bell_wanted(target.workspace))

    def open_thread(target: Target) -> "ThreadOpening":
        chosen = replace(target, flags={**target.flags, "may_choose_model": True})
        opening: ThreadOpening = chat.ThreadOpening(
            lambda bus: open_target(chosen, bell.listen(servers.listen(completer.listen(bus)))),
            target.exists,
            target.last_run,
        )
        return opening

    options = chat.ChatOptions(
        database=database_path(os.environ, target.flags.get("db")),
        switch=lambda thread, left: open_thread(_switch_target(target, thread, left)),
        reopen=lambda left: open_thread(_reopen_target(target, left)),
        servers=servers,
        message=message,
        introduction=lambda: _introduction(target),
    )
    built: Chat = chat.Chat(open_thread(target), terminal, console.make_console(), options)
    return built


def _is_bell_wanted(workspace: Path) -> bool:
    """Asked at a question or a turn's end; the settings have been read without an error by then."""
    from graph_agent.app.project_trust import settings_at

    return not is_dumb_terminal() and settings_at(workspace).bell


def _switch_target(target: Target, thread: str | None, left: "Conversation") -> Target:
    """A new thread like the one left, or another one with a mode and folder of its own.

    Raises:
        UnknownId: there is no such thread.
        UsageError: it is the current thread.
    """
    flags = _kept_flags(target, left)
    if thread is None:
        return Target(left.workspace, flags={**flags, "mode": left.mode})
    found = resolve_target(flags, workspace=None, thread=None, resume=thread)
    if found.thread_id == left.thread_id:
        raise UsageError(f"You are in thread {left.thread_id} already.")
    return found


def _reopen_target(target: Target, left: "Conversation") -> Target:
    flags = {**_kept_flags(target, left), "mode": left.mode}
    return Target(left.workspace, left.thread_id, exists=True, flags=flags)


def _kept_flags(target: Target, left: "Conversation") -> dict[str, Any]:
    flags = {name: target.flags[name] for name in _KEPT_FLAGS if name in target.flags}
    model = {"thread": left.thread_id, "name": left.model_name}
    return {**flags, "model_left": model} if left.model_name else flags


def _introduction(target: Target) -> tuple[str, ...]:
    """Which model answers and why, and how to connect another."""
    from graph_agent.app.project_trust import settings_at  # settings are heavy
    from graph_agent.config.model_choice import choose_model

    choice = choose_model(settings_at(target.workspace, {"model.name": target.flags.get("model")}))
    hint = ("Type `help` for what works offline, e.g. `list`.",) if choice.kind == "offline" else ()
    return choice.reason, *hint, choice.connect


def _history_file() -> Path | None:
    """The private file of what was typed; None where it cannot be kept."""
    path = data_dir(os.environ) / "history"
    try:
        make_private_folder(path.parent)
    except OSError:
        return None
    return path
