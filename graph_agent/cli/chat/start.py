"""Start the interactive chat in the current terminal.

The prompt appears before anything heavy is loaded; the rest is imported in a thread behind it.
"""

import asyncio
import contextlib
import errno
import importlib
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.utils import is_dumb_terminal

from graph_agent.cli.chat.completion import ChatCompleter, TypedHistory
from graph_agent.cli.chat.input_queue import InputQueue
from graph_agent.cli.exit_codes import ExitCode
from graph_agent.cli.prompts.terminal import InputCancelled, InputClosed, InputInterrupted, Terminal
from graph_agent.cli.prompts.terminal_output import Notifier
from graph_agent.cli.session_target import Target, open_target
from graph_agent.cli.supervisor import catch_signals
from graph_agent.cli.views.table import is_plain_terminal, truncate, wrap_line
from graph_agent.config.paths import data_dir, database_path, make_private_folder, own_command
from graph_agent.config.project import has_project_files
from graph_agent.errors import UsageError
from graph_agent.wording import escape

if TYPE_CHECKING:
    from rich.console import Console

    from graph_agent.cli.chat.chat import Chat
    from graph_agent.cli.render.themes import ThemeName
    from graph_agent.events import EventBus
    from graph_agent.session.session import Session


__all__ = ["load_rest", "open_chat"]

_SWITCH_S = 0.001
"""How long a thread that loads modules may keep a key waiting; Python's default is 5 ms."""

_LOADED_LATE = (
    "anyio._backends._asyncio",
    *(f"langchain_core.tracers.{name}" for name in ("context", "run_collector", "stdout")),
)
"""Modules that the model library imports inside functions, when it sends its first request."""


def open_chat(
    target: Target | Callable[[], Target],
    message: str | None,
    *,
    db: str | None = None,
    clean_up: Callable[[], None] = lambda: None,
) -> int:
    """Chat until the person leaves; returns the exit code.

    Args:
        target: the first thread, or what looks it up while the prompt is shown.
        clean_up: called at the end, also after an error.

    Raises:
        UsageError: there is no terminal to chat in.
    """
    try:
        code, is_loading = _chat_on_terminal(target, message, db)
    finally:
        clean_up()
    if is_loading:
        with contextlib.suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)  # Everything is stored; threads that still load modules are not waited for.
    return code


def _chat_on_terminal(
    target: Target | Callable[[], Target], message: str | None, db: str | None
) -> tuple[int, bool]:
    """The exit code of a chat, and whether modules are still being loaded."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        if not isinstance(target, Target):
            target()  # Its error comes first.
        raise UsageError(f'No terminal found. Run one prompt without a terminal: `{own_command()} run "…"`.')
    sys.setswitchinterval(_SWITCH_S)
    completer = ChatCompleter(Path.cwd(), database_path(os.environ, db))
    history = data_dir(os.environ) / "history"
    try:
        make_private_folder(history.parent)
        kept: TypedHistory | None = TypedHistory(history)
    except OSError:
        kept = None  # The chat works without a history.
    terminal = Terminal(kept, ThreadedCompleter(completer))
    if isinstance(target, Target):
        _print_head(target)
    runner = asyncio.Runner()
    with terminal.held(asks_background=not os.environ.get("NO_COLOR")):
        code = runner.run(_chat(terminal, completer, target, message))
    if terminal.early is None:
        runner.close()
    return code, terminal.early is not None


def _print_head(target: Target) -> None:
    parts = ("graph-agent", escape(str(target.workspace)), "/help for commands")
    width = shutil.get_terminal_size().columns
    sys.stdout.writelines(f"{line}\n" for line in wrap_line(" · ".join(parts), width))


async def _chat(
    terminal: Terminal, completer: ChatCompleter, target: Target | Callable[[], Target], message: str | None
) -> int:
    terminal.say = lambda text: terminal.show(lambda: print(escape(text)))  # noqa: T201 - the screen is all there is
    # Looked up at each call, because the chat replaces it.
    terminal.early = queue = InputQueue(lambda text: terminal.say(text), terminal.remember)  # noqa: PLW0108 - as above
    if message is not None:
        queue.enter_early(message)
    terminal.status = lambda: _loading_status(queue)
    if is_plain_terminal():
        sys.stdout.write("loading …\n")  # There is no line below the prompt that says it.
    else:
        queue.changed = lambda: terminal.show(lambda: None)  # That line is drawn again.
    has_failed = True
    try:
        code = await _find_and_chat(terminal, queue, completer, target)
        has_failed = False
    finally:
        if terminal.early is not None:
            with contextlib.suppress(OSError):
                sys.stderr.writelines(f"{line}\n" for line in _describe_unsent(queue, has_failed=has_failed))
    return code


async def _find_and_chat(
    terminal: Terminal, queue: InputQueue, completer: ChatCompleter, target: Target | Callable[[], Target]
) -> int:
    """Chat once the thread is known; if the chat is to end before that, store what was entered first."""
    ended: asyncio.Future[ExitCode] = asyncio.get_running_loop().create_future()

    with catch_signals(partial(_end_with, ended), signal.SIGTERM, signal.SIGHUP):
        try:
            target = target if isinstance(target, Target) else await _find_target(target, terminal, ended)
            await _ask_trust_until(ended, target.workspace, terminal)
        except (InputInterrupted, InputCancelled, InputClosed):
            _end_with(ended, ExitCode.DONE)
        if not isinstance(target, Target) or (ended.done() and not queue.unsent()):
            return ended.result()
        first = loaded = None
        if not ended.done():
            loaded = asyncio.get_running_loop().create_future()
            first = asyncio.create_task(terminal.message(gone=loaded))
            await asyncio.sleep(0)
        chat = await asyncio.to_thread(_build_chat, terminal, queue, completer, target)
        return await chat.run(first, loaded, ended.result() if ended.done() else None)


async def _find_target(find: Callable[[], Target], terminal: Terminal, ended: asyncio.Future[ExitCode]) -> Target:
    """Look the thread up while lines can be entered already."""
    finding = asyncio.create_task(asyncio.to_thread(find))
    # Cancelled with the prompt; the search is not.
    futures: set[asyncio.Future[Any]] = {finding, ended}
    gone = asyncio.ensure_future(asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED))
    try:
        await terminal.message(gone=gone)
    except (InputInterrupted, InputClosed):
        _end_with(ended, ExitCode.DONE)
    except OSError as error:
        if error.errno != errno.EIO:  # the terminal is gone
            raise
        _end_with(ended, ExitCode.HANGUP)
    target = await finding
    if not ended.done():
        _print_head(target)
    return target


def _end_with(ended: asyncio.Future[ExitCode], code: ExitCode) -> None:
    if not ended.done():
        ended.set_result(code)


async def _ask_trust_until(ended: asyncio.Future[ExitCode], workspace: Path, terminal: Terminal) -> None:
    """Ask; a signal that ends the chat withdraws the question."""
    asking = asyncio.create_task(_ask_trust(workspace, terminal))
    futures: set[asyncio.Future[Any]] = {asking, ended}
    await asyncio.wait(futures, return_when=asyncio.FIRST_COMPLETED)
    if asking.done():
        asking.result()
    asking.cancel()
    await asyncio.gather(asking, return_exceptions=True)


def _describe_unsent(queue: InputQueue, *, has_failed: bool) -> Iterator[str]:
    """What has become of the messages that were entered before there was a session to send them."""
    messages = queue.unsent()
    if messages and (thread_id := queue.kept_in(has_failed=has_failed)):
        from graph_agent.cli.chat.chat import farewell  # it is loaded by now

        yield from farewell(thread_id, len(messages))
    else:
        yield from (escape(f"Not sent: {text}", multiline=True) for text in messages)


def _loading_status(queue: InputQueue) -> str:
    entered = (line.partition("\n")[0] for line in queue.describe_early())
    text = escape(" · ".join(("loading …", *entered)))
    return truncate(text, shutil.get_terminal_size().columns - 1)


async def _ask_trust(workspace: Path, terminal: Terminal) -> None:
    if has_project_files(workspace):
        dialogs = await asyncio.to_thread(importlib.import_module, "graph_agent.cli.prompts.dialogs")
        await dialogs.ask_trust(workspace, terminal, lambda line: sys.stdout.write(f"{line}\n"))


def _build_chat(terminal: Terminal, queue: InputQueue, completer: ChatCompleter, target: Target) -> "Chat":
    # These load what the prompt must not wait for.
    from graph_agent.app.project_trust import settings_at
    from graph_agent.cli.chat.chat import Chat, ChatOptions
    from graph_agent.cli.chat.turn_runner import Announcer
    from graph_agent.cli.log_file import log_to_file
    from graph_agent.cli.render.console import make_console

    log_to_file()
    # At a question or a turn's end the settings have been read without an error.
    notifier = Notifier(lambda: terminal.is_focused, lambda: settings_at(target.workspace).notify.terminal)
    terminal.focused = terminal.released = notifier.restore_title
    announcer = Announcer(notifier, lambda: not is_dumb_terminal() and settings_at(target.workspace).bell)

    console = make_console()
    colors = _Colors(terminal, console)
    is_asked = True  # Before the first prompt; later threads may be in another folder, or after `/init`.

    async def open_session(target: Target, bus: "EventBus") -> "Session":
        nonlocal is_asked
        if not is_asked:
            with contextlib.suppress(InputCancelled):
                await _ask_trust(target.workspace, terminal)
        is_asked = False
        bus.subscribe(completer)
        bus.subscribe(announcer)
        flags = {**target.flags, "may_choose_model": True, "deletes_empty": True}
        session = await open_target(replace(target, flags=flags), bus)
        # Now the settings are known to be right.
        settings = await asyncio.to_thread(settings_at, target.workspace)
        colors.configured = settings.theme
        colors.use()
        terminal.background_known = colors.use
        terminal.editing_mode = EditingMode(settings.editing_mode.upper())
        asyncio.get_running_loop().run_in_executor(None, load_rest)
        return session

    database = database_path(os.environ, target.flags.get("db"))
    options = ChatOptions(
        target,
        open_session,
        database,
        introduction=lambda: _introduction(target),
        status_items=lambda: settings_at(target.workspace).status_line,
        set_theme=colors.choose,
    )
    return Chat(terminal, console, options, queue)


def load_rest() -> None:
    """Load what the first request would otherwise wait for."""
    for name in _LOADED_LATE:
        with contextlib.suppress(ImportError):  # Another release of the library may not have it.
            importlib.import_module(name)


class _Colors:
    """The colours of a chat: of the theme that was chosen in it, else of the configured one."""

    def __init__(self, terminal: Terminal, console: "Console") -> None:
        self.configured: ThemeName = "auto"
        self._chosen: ThemeName | None = None
        self._terminal = terminal
        self._console = console

    def use(self) -> None:
        """Print in these colours, as far as the background is known."""
        from graph_agent.cli.render.themes import choose_theme, use_theme

        theme = choose_theme(self._chosen or self.configured, self._terminal.background, os.environ)
        use_theme(theme, self._console)

    def choose(self, name: "ThemeName | None") -> "ThemeName":
        """See `SlashCommands.set_theme`."""
        self._chosen = name or self._chosen
        self.use()
        return self._chosen or self.configured


def _introduction(target: Target) -> tuple[str, ...]:
    """Which model answers and why; without one, how to connect one."""
    from graph_agent.app.project_trust import settings_at  # settings are heavy
    from graph_agent.config.model_choice import choose_model

    return (choose_model(settings_at(target.workspace, {"model.name": target.flags.get("model")})).headline,)
