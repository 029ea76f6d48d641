"""The commands of the offline mode, as values. Knows neither their wordings nor the tools that do them.

From the slots of a wording to the command it means; the same for every language.

How one wording of an offline command is written down and read. Knows no language and no particular wording.

The commands as the user is told of them: one shape in each language. Knows no wording and no tool.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

__all__ = [
    "NUMBER",
    "QUOTED",
    "SHAPES",
    "AppendText",
    "Command",
    "CreateFile",
    "FindFiles",
    "Form",
    "ListFiles",
    "ReadFile",
    "Remember",
    "ReplaceText",
    "RunShell",
    "SearchText",
    "Shape",
    "ShowTodo",
    "appending",
    "creating",
    "finding",
    "folder",
    "form",
    "line_number",
    "lines",
    "listing",
    "path",
    "plain",
    "reading",
    "reading_from",
    "reading_to",
    "remembering",
    "replacing",
    "running",
    "searching",
    "shape_of",
    "showing_todo",
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

QUOTED = (
    r"""(?:```.*?```|"(?:\\.|[^"\\])*"|`[^`]*`|“[^”]*”|「[^」]*」|『[^』]*』|《[^》]*》"""
    r"""|(?<!\w)‘[^’]*’(?!\w)|(?<!\w)'[^']*'(?!\w))"""
)
"""Text between quotes of one kind; an apostrophe within a word is no quote."""

NUMBER = r"(?:\d{1,9}|[一二两三四五六七八九十]{1,3})"
"""The number of a line, in digits of any width or in Chinese words up to ninety-nine."""

_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\"}
_SLOTS = {
    "F": rf"""@?{QUOTED}|(?:\\[ ]|[^\s"'`“”‘’「」『』《》,，;；])+?""",
    "T": rf"{QUOTED}|[^\n]*\S.*",
    "B": rf"{QUOTED}|\S.{{0,1000}}?",
}
_FENCE = re.compile(r"```(?:[\w+-]*\n)?(.*?)\n?```", re.DOTALL)
_HERE = re.compile(
    r"(?:(?:the|this|my|our)\s+)?(?:(?:current|working)\s+)?(?:here|folder|directory|workspace|project|repo(?:sitory)?)"
    r"|(?:当前)?(?:目录|文件夹)|这里",
    re.IGNORECASE,
)
_CHINESE_DIGITS = {digit: value for value, digit in enumerate("一二三四五六七八九", 1)} | {"两": 2}


class Form(NamedTuple):
    """One wording and what it means."""

    pattern: re.Pattern[str]
    build: Callable[[Mapping[str, str | None]], Command]
    examples: tuple[str, ...]
    """Messages in this wording, for the documentation and the tests."""

    @property
    def takes_the_rest(self) -> bool:
        """Whether it ends in a free text, to which everything up to the end of the message belongs."""
        return self.pattern.pattern.endswith((f"{_SLOTS['T']})", f"{_SLOTS['B']})"))


def form(pattern: str, build: Callable[[Mapping[str, str | None]], Command], *examples: str) -> Form:
    """A wording; in its pattern <F:name> stands for a file, <B:name> for a short text, <T:name> for the rest."""
    spelled = re.sub(r"<([FTB]):(\w+)>", lambda slot: f"(?P<{slot[2]}>{_SLOTS[slot[1]]})", pattern)
    return Form(re.compile(spelled, re.IGNORECASE | re.DOTALL), build, examples)


def plain(text: str | None) -> str:
    """The text without the quotes around it; between double quotes, backslash escapes are read."""
    text = (text or "").strip()
    if len(text) < 2 or not re.fullmatch(QUOTED, text, re.DOTALL):
        return text
    if fenced := _FENCE.fullmatch(text):
        return fenced[1]
    inner = text[1:-1]
    return re.sub(r'\\[nt"\\]', lambda found: _ESCAPES[found[0]], inner) if text[0] == '"' else inner


def path(text: str | None) -> str:
    """The name of a file, without the @ by which the chat completes it.

    Unquoted, it loses the full stop of the sentence and the backslashes before blanks.
    """
    text = (text or "").strip().removeprefix("@")
    name = plain(text)
    if name != text:
        return name
    name = name.rstrip("。！？!?").replace("\\ ", " ")
    return name.rstrip(".") or name


def folder(text: str | None) -> str:
    """The name of a folder; nothing, and words for the place where we are, are the workspace."""
    name = path(text)
    return "." if not name or _HERE.fullmatch(name) else name


def lines(text: str | None) -> str:
    """The text as whole lines: with a line feed at its end, unless it is empty. A first indentation stays."""
    whole = plain(text)
    if whole == (text or "").strip():
        whole = (text or "").rstrip()
    return whole if not whole or whole.endswith("\n") else whole + "\n"


def line_number(text: str | None) -> int | None:
    """The number of a line; None where none was given."""
    if not text:
        return None
    return int(text) if text.isdecimal() else _in_chinese(text)


def _in_chinese(text: str) -> int:
    tens, ten, ones = text.rpartition("十")
    whole = (_CHINESE_DIGITS.get(tens, 1) * 10) if ten else 0
    return whole + _CHINESE_DIGITS.get(ones, 0)


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


@dataclass(frozen=True, slots=True)
class Shape:
    """How a command is written, for somebody who is to write one."""

    command: type[Command]
    english: str
    chinese: str
    about: str
    """What it does."""

    def told(self, *, chinese: bool) -> str:
        """In the user's language."""
        return self.chinese if chinese else self.english


SHAPES: tuple[Shape, ...] = (
    Shape(ListFiles, "list [FOLDER]", "列出 [目录]", "lists a folder"),
    Shape(ReadFile, "read FILE [lines 2-5]", "读取 文件 [第2到5行]", "shows a file, or some of its lines"),
    Shape(
        FindFiles,
        "find files PATTERN [in PATH]",
        "查找文件 模式",
        "finds files by name; `*` and `?` stand for any text",
    ),
    Shape(
        SearchText, "search TEXT [in PATH]", "搜索 文字 [在 路径]", "finds the lines that hold exactly this text"
    ),
    Shape(
        CreateFile,
        "create FILE with TEXT",
        "创建 文件 内容为 文字",
        "writes a file whole; one that exists is read first",
    ),
    Shape(AppendText, "append TEXT to FILE", "追加 文字 到 文件", "adds lines at the end of a file"),
    Shape(ReplaceText, "replace A by B in FILE", "把 文件 中的 A 替换为 B", "replaces every occurrence"),
    Shape(RunShell, "run COMMAND", "运行 命令", "runs a shell command"),
    Shape(Remember, "remember FACT", "记住 事实", "keeps a fact for all later conversations"),
    Shape(ShowTodo, "show todo", "显示待办", "shows the checklist of the thread"),
)


def shape_of(command: type[Command]) -> Shape:
    """The shape of one kind of command."""
    return next(shape for shape in SHAPES if shape.command is command)
