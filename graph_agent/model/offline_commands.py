"""The commands of the offline mode, as values. Knows neither their wordings nor the tools that do them."""

from dataclasses import dataclass

__all__ = [
    "AppendText",
    "Command",
    "CreateFile",
    "FindFiles",
    "ListFiles",
    "ReadFile",
    "Remember",
    "ReplaceText",
    "RunShell",
    "SearchText",
    "ShowTodo",
]


@dataclass(frozen=True, slots=True)
class ListFiles:
    """`list [PATH]`."""

    path: str = "."


@dataclass(frozen=True, slots=True)
class ReadFile:
    """`read FILE [lines a-b]`."""

    path: str
    first: int | None = None
    """1-based; None: from the beginning."""
    last: int | None = None
    """Inclusive; None: to the end."""


@dataclass(frozen=True, slots=True)
class FindFiles:
    """`find files PATTERN [in PATH]`."""

    pattern: str
    path: str = "."


@dataclass(frozen=True, slots=True)
class SearchText:
    """`search TEXT [in PATH]`; the text is literal."""

    text: str
    path: str = "."


@dataclass(frozen=True, slots=True)
class CreateFile:
    """`create FILE with TEXT`."""

    path: str
    content: str
    """Ends with a line feed unless it is empty."""


@dataclass(frozen=True, slots=True)
class AppendText:
    """`append TEXT to FILE`: as lines of its own at the end."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class ReplaceText:
    """`replace A by B in FILE`: every occurrence, both literal."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class RunShell:
    """`run COMMAND`."""

    command: str


@dataclass(frozen=True, slots=True)
class Remember:
    """`remember FACT`."""

    fact: str


@dataclass(frozen=True, slots=True)
class ShowTodo:
    """`show todo`."""


Command = (
    ListFiles
    | ReadFile
    | FindFiles
    | SearchText
    | CreateFile
    | AppendText
    | ReplaceText
    | RunShell
    | Remember
    | ShowTodo
)
