"""Questions about no call: whether a project folder is trusted, which model to use, which thread to resume."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graph_agent.app.project_trust import project_at, record_trust
from graph_agent.app.reader import read_database
from graph_agent.cli.prompts.choices import HELP, NOT_A_KEY, KeyLine, match_choice
from graph_agent.cli.prompts.menu import Menu, Row
from graph_agent.cli.prompts.terminal import InputCancelled, Terminal
from graph_agent.cli.views.settings import format_trust
from graph_agent.cli.views.table import line_width, wrap_line
from graph_agent.config.paths import own_command
from graph_agent.errors import AgentError, NothingYet, UsageError
from graph_agent.ports.stored_text import plain_text
from graph_agent.wording import Choice, escape, format_age, format_count

if TYPE_CHECKING:
    from graph_agent.inspect import ThreadSummary
    from graph_agent.session.session import Session

__all__ = [
    "ask_trust",
    "choose_model",
    "choose_thread",
    "find_model",
    "format_pending",
    "last_messages",
    "thread_menu",
]

_MAX_LISTED = 40
_PREVIEWED = 3
_USUAL_WIDTH = 80
_ANSWERS = (
    Choice("y", "trust", "use its settings, instructions, hooks and servers", ("yes",)),
    Choice("n", "ignore", "work without them", ("no",)),
    Choice("s", "show files", "print the files", ("show",), 3),
    HELP,
)


async def ask_trust(workspace: Path, terminal: Terminal, say: Callable[[str], None]) -> None:
    """Ask, unless there is nothing to trust or these contents were answered about before.

    Raises:
        InputCancelled, InputClosed: Esc or Ctrl-C, Ctrl-D; nothing is stored, so that the next chat asks again.
    """
    try:
        project = project_at(workspace)
        if project.trust not in ("untrusted", "changed"):
            return
        _say_folded(list(format_trust(project)), say)  # nothing is shown where its settings are invalid
        terminal.drop_typed_ahead()
        key, keys = None, KeyLine(_ANSWERS, text="Trust this folder?  ")
        while key not in ("y", "n"):
            key = match_choice(await terminal.answer(keys) or "", _ANSWERS)
            _say_folded(keys.explanations() if key == HELP.key else () if key else (NOT_A_KEY,), say)
            for file in project.files if key == "s" else ():
                say(escape(f"─── {file.name}"))
                for line in file.text.splitlines():
                    say(escape(f"  │ {line}"))
        record_trust(project, trusted=key == "y")
    except AgentError as failure:
        say(escape(str(failure)))


def _say_folded(lines: Sequence[str], say: Callable[[str], None]) -> None:
    width = line_width() or _USUAL_WIDTH
    for line in lines:
        for piece in wrap_line(line, width):
            say(piece)


async def choose_model(session: "Session", terminal: Terminal, say: Callable[[str], None]) -> None:
    """Let the person choose a model, unless there is only one; an empty answer, Esc and Ctrl-C choose none.

    Raises:
        InputClosed: Ctrl-D.
    """
    try:
        names = await session.model_names()
    except AgentError as failure:
        say(str(failure))
        return
    if not names:
        say("The endpoint lists no models. Choose one with /model NAME.")
        return
    name: str | None = names[0] if len(names) == 1 else await _ask_model(names, terminal, say)
    if name is None:
        say("No model is chosen. Choose one with /model NAME.")
        return
    await session.switch_model(name)
    say(f"Model: {session.model_label}")


async def _ask_model(names: Sequence[str], terminal: Terminal, say: Callable[[str], None]) -> str | None:
    say("Choose a model of the endpoint (GRAPH_AGENT_MODEL sets it permanently):")
    for number, name in enumerate(names[:_MAX_LISTED], 1):
        say(f"  {number:>2}  {name}")
    if len(names) > _MAX_LISTED:
        say(f"  … and {len(names) - _MAX_LISTED} more, which you can name")
    terminal.keep_typed()
    with contextlib.suppress(InputCancelled):
        while text := (await terminal.answer("Model, by number or name > ") or "").strip():
            if found := find_model(text, names):
                return found
            say(f"{text!r} matches no model, or several. An empty line chooses none.")
    return None


def find_model(text: str, names: Sequence[str]) -> str | None:
    """The name that a number, the name itself or a unique part of it stands for."""
    if text in names:
        return text
    if text.isdecimal() and 0 < int(text) <= min(len(names), _MAX_LISTED):
        return names[int(text) - 1]
    fitting = [name for name in names if text.casefold() in name.casefold()]
    return fitting[0] if len(fitting) == 1 else None


def thread_menu(database: Path, workspace: str | None = None, besides: str = "") -> Menu:
    """The threads to resume, newest first: those of a workspace or all, with a message, without sub-agents."""
    try:
        with read_database(database) as reader:
            threads = [
                one
                for one in reader.threads()
                if one.parent_call is None
                and (one.turns or one.queued_messages or one.status != "idle")
                and one.workspace == (workspace or one.workspace)
                and one.thread_id != besides
            ]
    except NothingYet:
        threads = []
    are_elsewhere = len({one.workspace for one in threads}) > 1
    rows = [
        Row(
            one.thread_id,
            (format_age(one.updated_at), one.status, *((Path(one.workspace).name,) if are_elsewhere else ())),
            one.title or one.thread_id,
            format_pending(one),
        )
        for one in threads
    ]
    return Menu("Resume", rows, preview=lambda thread_id: last_messages(database, thread_id))


def choose_thread(database: Path, workspace: Path) -> str:
    """The thread of this workspace that the person chooses; empty where there is no choice.

    Raises:
        UsageError: the person leaves the menu.
    """
    menu = thread_menu(database, str(workspace))
    if len(menu.rows) < 2:
        return ""
    terminal = Terminal()
    with terminal.held():
        picked = asyncio.run(terminal.choose(menu))
    if picked is None:
        raise UsageError(f"No thread was chosen. `{own_command()} -c` continues the newest one here.")
    return picked.key


def format_pending(thread: "ThreadSummary") -> str:
    """What a thread waits for; empty if for nothing."""
    counts = {"approval": thread.pending_approvals, "interrupted call": thread.interrupted_calls}
    return ", ".join(format_count(count, word) for word, count in counts.items() if count)


def last_messages(database: Path, thread_id: str) -> list[str]:
    """The beginning of each of the last messages."""
    try:
        with read_database(database) as reader:
            entries = reader.recent(thread_id, _PREVIEWED).entries
    except AgentError:
        return []
    texts = [(entry.role, " ".join(plain_text(entry.body.get("content")).split())) for entry in entries]
    return [f"{role}: {text}" for role, text in texts if text and role in ("user", "assistant")]
