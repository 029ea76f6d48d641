"""The commands of the offline mode, and how the user is shown each of them."""

from dataclasses import dataclass

__all__ = [
    "SYNTAX",
    "AppendText",
    "Command",
    "CommandSyntax",
    "CreateFile",
    "FindFiles",
    "ListFiles",
    "ReadFile",
    "Remember",
    "ReplaceText",
    "RunShell",
    "SearchText",
    "ShowTodo",
    "syntax_of",
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
    """Ends with a newline unless it is empty."""


@dataclass(frozen=True, slots=True)
class AppendText:
    """`append TEXT to FILE`: as new lines at the end."""

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


@dataclass(frozen=True, slots=True)
class CommandSyntax:
    """How a command is written, as shown in help and in the documentation."""

    command: type[Command]
    english: str
    chinese: str
    description: str

    def text(self, *, chinese: bool) -> str:
        """The syntax in the user's language."""
        return self.chinese if chinese else self.english


SYNTAX: tuple[CommandSyntax, ...] = (
    CommandSyntax(ListFiles, "list [FOLDER]", "列出 [目录]", "lists a folder"),
    CommandSyntax(ReadFile, "read FILE [lines 2-5]", "读取 文件 [第2到5行]", "shows a file, or some of its lines"),
    CommandSyntax(
        FindFiles,
        "find files PATTERN [in PATH]",
        "查找文件 模式",
        "finds files by name; `*` and `?` match any text",
    ),
    CommandSyntax(
        SearchText, "search TEXT [in PATH]", "搜索 文字 [在 路径]", "finds lines that contain exactly this text"
    ),
    CommandSyntax(
        CreateFile,
        "create FILE with TEXT",
        "创建 文件 内容为 文字",
        "writes a whole file; an existing file is read first",
    ),
    CommandSyntax(AppendText, "append TEXT to FILE", "追加 文字 到 文件", "adds lines at the end of a file"),
    CommandSyntax(ReplaceText, "replace A by B in FILE", "把 文件 中的 A 替换为 B", "replaces every occurrence"),
    CommandSyntax(RunShell, "run COMMAND", "运行 命令", "runs a shell command"),
    CommandSyntax(Remember, "remember FACT", "记住 事实", "saves a fact for all later conversations"),
    CommandSyntax(ShowTodo, "show todo", "显示待办", "shows the checklist of the thread"),
)


def syntax_of(command: type[Command]) -> CommandSyntax:
    """The syntax of one kind of command."""
    return next(syntax for syntax in SYNTAX if syntax.command is command)
