"""The commands as the user is told of them: one shape in each language. Knows no wording and no tool."""

from dataclasses import dataclass

from graph_agent.model.offline_commands import (
    AppendText,
    Command,
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

__all__ = ["SHAPES", "Shape", "shape_of"]


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
