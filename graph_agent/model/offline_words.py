"""What the offline mode says, in English and Chinese. Knows no tool and no history."""

from graph_agent.model.offline_grammar import NotUnderstood
from graph_agent.model.offline_plan import Report

__all__ = ["not_understood", "notice", "report", "stopped_before"]

_MAX_SHOWN = 6_000
"""Longest result that is repeated to the user, in characters."""

_ENGLISH_HELP = """\
This mode understands these commands, several of them joined by "then":
  list [FOLDER]                      read FILE [lines 2-5]
  find files PATTERN                 search TEXT [in PATH]
  create FILE with TEXT              append TEXT to FILE
  replace A by B in FILE             run COMMAND
  remember FACT                      show todo
Put names and texts that hold blanks or the word "then" between quotes."""

_CHINESE_HELP = """\
本模式能理解以下命令，多个命令可用“然后”连接：
  列出 [目录]                         读取 文件 [第2到5行]
  查找文件 模式                       搜索 文字 [在 路径]
  创建 文件 内容为 文字               追加 文字 到 文件
  把 文件 中的 A 替换为 B             运行 命令
  记住 事实                           显示待办
名称或文字中有空格或“然后”时，请加引号。"""

_REPORTS = {
    "done": ("{subject}:\n{text}", "{subject}：\n{text}"),
    "failed": ("Not done: {subject}\n{text}", "未完成：{subject}\n{text}"),
    "missing": (
        "Not done: the tool {subject} is not offered here.",
        "未完成：此处没有提供工具 {subject}。",
    ),
    "absent": (
        "Nothing changed: {subject} does not contain {text!r}.",
        "没有改动：{subject} 中没有 {text!r}。",
    ),
    "unreadable": (
        "Not done: {subject} cannot be shown whole here; rewriting it could damage it. Use `run COMMAND`.",
        "未完成：{subject} 无法完整显示，重写可能损坏它。请改用“运行 命令”。",
    ),
}


def notice(label: str, connect: str, *, chinese: bool) -> str:
    """What the first answer of a thread begins with."""
    if chinese:
        return f"（离线命令模式，没有模型。{label}。）\n{connect}"
    return f"({label}: this is a small command language, not a language model.)\n{connect}"


def not_understood(fault: NotUnderstood, connect: str, *, chinese: bool) -> str:
    """The answer to what is not in the command language; it ends with how to connect a model."""
    why = (
        "The message is too long for this mode." if fault.is_too_long else f"Not understood: {_quoted(fault.part)}."
    )
    if not chinese:
        return f"{why} Nothing was done.\n\n{_ENGLISH_HELP}\n\n{connect}"
    reason = "消息太长。" if fault.is_too_long else f"未能理解：{_quoted(fault.part)}。"
    return f"{reason} 没有执行任何操作。\n\n{_CHINESE_HELP}\n\n{_ENGLISH_HELP}\n\n{connect}"


def report(ended: Report, *, chinese: bool) -> str:
    """One command's end, in words."""
    text = ended.text if len(ended.text) <= _MAX_SHOWN else ended.text[:_MAX_SHOWN] + _rest(ended, chinese=chinese)
    return _REPORTS[ended.kind][chinese].format(subject=ended.subject, text=text)


def stopped_before(count: int, *, chinese: bool) -> str:
    """Told after a command that failed while others were to follow."""
    if chinese:
        return f"因此后面的 {count} 个命令没有执行。"
    return f"The {count} command{'s' if count > 1 else ''} after it did not run."


def _rest(ended: Report, *, chinese: bool) -> str:
    left = len(ended.text) - _MAX_SHOWN
    return f"\n… 还有 {left} 个字符。" if chinese else f"\n… {left} more characters."


def _quoted(part: str) -> str:
    return repr(part if len(part) <= 80 else part[:80] + "…")
