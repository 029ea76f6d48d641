"""The commands of the offline mode, and how the user is shown each of them."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

__all__ = ["SYNTAX", "Command", "CommandKind", "CommandSyntax"]

CommandKind = Literal["list", "read", "find", "search", "create", "append", "replace", "run", "remember", "todo"]


@dataclass(frozen=True, slots=True)
class Command:
    """One command. What its kind does not take is left empty."""

    kind: CommandKind
    path: str = ""
    """The file, or the folder to look into; "." is the workspace."""
    text: str = ""
    """The literal text to search for, write, replace or remember; the pattern of `find`, the line of `run`."""
    new: str = ""
    """What replaces every occurrence of the text."""
    first: int | None = None
    """The first line to read, 1-based; None: from the beginning."""
    last: int | None = None
    """Inclusive; None: to the end."""


class CommandSyntax(NamedTuple):
    """How a command is written, as shown in help and in the documentation."""

    kind: CommandKind
    english: str
    chinese: str
    description: str


SYNTAX = (
    CommandSyntax("list", "list [FOLDER]", "列出 [目录]", "lists a folder"),
    CommandSyntax("read", "read FILE [lines 2-5]", "读取 文件 [第2到5行]", "shows a file, or some of its lines"),
    CommandSyntax(
        "find", "find files PATTERN [in PATH]", "查找文件 模式", "finds files by name; `*` and `?` match any text"
    ),
    CommandSyntax(
        "search", "search TEXT [in PATH]", "搜索 文字 [在 路径]", "finds lines that contain exactly this text"
    ),
    CommandSyntax(
        "create",
        "create FILE with TEXT",
        "创建 文件 内容为 文字",
        "writes a whole file; an existing file is read first",
    ),
    CommandSyntax("append", "append TEXT to FILE", "追加 文字 到 文件", "adds lines at the end of a file"),
    CommandSyntax("replace", "replace A by B in FILE", "把 文件 中的 A 替换为 B", "replaces every occurrence"),
    CommandSyntax("run", "run COMMAND", "运行 命令", "runs a shell command"),
    CommandSyntax("remember", "remember FACT", "记住 事实", "saves a fact for all later conversations"),
    CommandSyntax("todo", "show todo", "显示待办", "shows the checklist of the thread"),
)
