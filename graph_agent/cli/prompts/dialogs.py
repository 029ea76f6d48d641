"""Questions about no call: whether a project folder is trusted, and which model to use."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from graph_agent.app.project_trust import project_at, record_trust
from graph_agent.cli.prompts.choices import Choice, choice_line, match_choice
from graph_agent.cli.prompts.terminal import Terminal
from graph_agent.cli.render.escape import escape
from graph_agent.cli.views.settings import format_trust
from graph_agent.errors import AgentError

if TYPE_CHECKING:
    from graph_agent.session.session import Session

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
        for line in list(format_trust(project)):  # nothing is shown where its settings are invalid
            say(line)
        terminal.drop_typed_ahead()
        key = None
        while key not in ("y", "n"):
            answer = await terminal.answer(f"Trust this folder? {choice_line(_ANSWERS)}")
            key = match_choice(answer or "", _ANSWERS)
            for file in project.files if key == "s" else ():
                say(escape(f"─── {file.name}"))
                for line in file.text.splitlines():
                    say(escape(f"  │ {line}"))
        record_trust(project, trusted=key == "y")
    except AgentError as failure:
        say(escape(str(failure)))


async def choose_model(session: "Session", terminal: Terminal, say: Callable[[str], None]) -> None:
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
    say("Choose a model of the endpoint (GRAPH_AGENT_MODEL sets it permanently):")
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
