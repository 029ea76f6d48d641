"""From the slots of a wording to the command it means; the same for every language."""

from collections.abc import Mapping

from graph_agent.model.offline_commands import (
    AppendText,
    CreateFile,
    FindFiles,
    ListFiles,
    ReadFile,
    Remember,
    ReplaceText,
    RunShell,
    SearchText,
    ShowTodo,
)
from graph_agent.model.offline_forms import folder, line_number, lines, path, plain

__all__ = [
    "appending",
    "creating",
    "finding",
    "listing",
    "reading",
    "reading_from",
    "reading_to",
    "remembering",
    "replacing",
    "running",
    "searching",
    "showing_todo",
]

Slots = Mapping[str, str | None]
"""What stood in each slot; None where the message left it out."""


def listing(found: Slots) -> ListFiles:
    """Of one folder."""
    return ListFiles(folder(found["path"]))


def reading(found: Slots) -> ReadFile:
    """A whole file, one line of it, or the lines between two, in whichever order they are named."""
    first, last = line_number(found["first"]), line_number(found["last"])
    if first is None or last is None:
        return ReadFile(path(found["path"]), first, first)
    return ReadFile(path(found["path"]), min(first, last), max(first, last))


def reading_from(found: Slots) -> ReadFile:
    """From one line to the end."""
    return ReadFile(path(found["path"]), line_number(found["first"]))


def reading_to(found: Slots) -> ReadFile:
    """From the beginning to one line; without a number the first line alone."""
    return ReadFile(path(found["path"]), 1, line_number(found["last"]) or 1)


def finding(found: Slots) -> FindFiles:
    """By name."""
    return FindFiles(path(found["pattern"]), folder(found["path"]))


def searching(found: Slots) -> SearchText:
    """For a text in files."""
    return SearchText(plain(found["text"]), folder(found["path"]))


def creating(found: Slots) -> CreateFile:
    """With a text, or empty."""
    return CreateFile(path(found["path"]), lines(found["text"]))


def appending(found: Slots) -> AppendText:
    """As lines of its own."""
    return AppendText(path(found["path"]), lines(found["text"]).removesuffix("\n"))


def replacing(found: Slots) -> ReplaceText:
    """The new text at the end of a Chinese sentence loses its full stop."""
    return ReplaceText(path(found["path"]), plain(found["old"]), _unended(found["new"]))


def running(found: Slots) -> RunShell:
    """A command line, which never ends in a Chinese full stop."""
    return RunShell(_unended(found["text"]))


def remembering(found: Slots) -> Remember:
    """A fact, in the words given."""
    return Remember(plain(found["text"]))


def showing_todo(_: Slots) -> ShowTodo:
    """The checklist."""
    return ShowTodo()


def _unended(text: str | None) -> str:
    return plain((text or "").strip().rstrip("。"))
