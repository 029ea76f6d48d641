"""Asks once whether a project folder is trusted, before anything of it counts; the answer is for its contents."""

from collections.abc import Callable
from pathlib import Path

from graph_agent.app.project import answer_trust, project_at
from graph_agent.cli.ask.choices import Choice, choice_line, chosen
from graph_agent.cli.ask.terminal import Terminal
from graph_agent.cli.escape import escape
from graph_agent.cli.views.trust import trust_page
from graph_agent.config.project import Project
from graph_agent.errors import AgentError

__all__ = ["ask_trust"]

_ANSWERS = (
    Choice("y", "yes", "[y]es, trust it"),
    Choice("n", "no", "[n]o, ignore these files"),
    Choice("s", "show", "[s]how the files"),
)


async def ask_trust(workspace: Path, terminal: Terminal, say: Callable[[str], None]) -> None:
    """Ask, unless there is nothing to trust or these very contents were answered about; what is unreadable is told.

    Raises:
        Interrupted, Left: Ctrl-C, Ctrl-D; nothing is kept, so that the next chat asks again.
    """
    try:
        project = project_at(workspace)
        if project.trust not in ("untrusted", "changed"):
            return
        page = list(trust_page(project))
    except AgentError as failure:
        say(escape(str(failure)))
        return
    for line in page:
        say(line)
    try:
        answer_trust(project, trusted=await _answered(project, terminal, say))
    except AgentError as failure:
        say(escape(str(failure)))


async def _answered(project: Project, terminal: Terminal, say: Callable[[str], None]) -> bool:
    terminal.drop_typed_ahead()
    while True:
        key = chosen(await terminal.answer(f"Trust this folder? {choice_line(_ANSWERS)}") or "", _ANSWERS)
        if key in ("y", "n"):
            return key == "y"
        if key == "s":
            for line in _shown(project):
                say(line)


def _shown(project: Project) -> list[str]:
    lines: list[str] = []
    for file in project.files:
        lines += [escape(f"─── {file.name}"), *(escape(f"  │ {line}") for line in file.text.splitlines())]
    return lines
