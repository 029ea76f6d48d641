"""Questions about no call: whether a project folder is trusted, and which model to use."""

from collections.abc import Callable, Sequence
from pathlib import Path

from graph_agent.app.project_trust import project_at, record_trust
from graph_agent.cli.chat.conversation import Conversation
from graph_agent.cli.prompts.choices import Choice, choice_line, match_choice
from graph_agent.cli.prompts.terminal import Terminal
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.settings import format_trust
from graph_agent.config.project import Project
from graph_agent.errors import AgentError

__all__ = ["ask_trust", "choose_model", "find_model"]

_MAX_LISTED = 40
_ANSWERS = (
    Choice("y", "yes", "[y]es, trust it"),
    Choice("n", "no", "[n]o, ignore these files"),
    Choice("s", "show", "[s]how the files"),
)


async def ask_trust(workspace: Path, terminal: Terminal, say: Callable[[str], None]) -> None:
    """Ask, unless there is nothing to trust or these contents were answered about before.

    Raises:
        InputInterrupted, InputClosed: Ctrl-C, Ctrl-D; nothing is stored, so that the next chat asks again.
    """
    try:
        project = project_at(workspace)
        if project.trust not in ("untrusted", "changed"):
            return
        page = list(format_trust(project))
    except AgentError as failure:
        say(escape(str(failure)))
        return
    for line in page:
        say(line)
    try:
        record_trust(project, trusted=await _is_trusted(project, terminal, say))
    except AgentError as failure:
        say(escape(str(failure)))


async def _is_trusted(project: Project, terminal: Terminal, say: Callable[[str], None]) -> bool:
    terminal.drop_typed_ahead()
    while True:
        key = match_choice(await terminal.answer(f"Trust this folder? {choice_line(_ANSWERS)}") or "", _ANSWERS)
        if key in ("y", "n"):
            return key == "y"
        if key == "s":
            for line in _file_lines(project):
                say(line)


def _file_lines(project: Project) -> list[str]:
    lines: list[str] = []
    for file in project.files:
        lines += [escape(f"─── {file.name}"), *(escape(f"  │ {line}") for line in file.text.splitlines())]
    return lines


async def choose_model(session: Conversation, terminal: Terminal, say: Callable[[str], None]) -> None:
    """Let the person choose a model, unless there is only one; an empty answer chooses none.

    Raises:
        InputInterrupted, InputClosed: Ctrl-C, Ctrl-D.
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
    say("Choose a model of the endpoint (GRAPH_AGENT_MODEL sets it for good):")
    for number, name in enumerate(names[:_MAX_LISTED], 1):
        say(f"  {number:>2}  {name}")
    if len(names) > _MAX_LISTED:
        say(f"  … and {len(names) - _MAX_LISTED} more, which you can name")
    terminal.keep_typed()
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
