"""What the offline mode says, in English and Chinese. Knows no tool and no history."""

from unicodedata import east_asian_width

from graph_agent.model.offline.commands import SHAPES
from graph_agent.model.offline.grammar import NotUnderstood, guess
from graph_agent.model.offline.plan import Report

__all__ = ["not_understood", "notice", "report", "stopped_before"]

_MAX_SHOWN = 6_000
"""Longest result that is repeated to the user, in characters."""

_HEAD = (
    'It understands these commands, several of them joined by "then":',
    "它能理解以下命令（英文也可以），多个命令可用“然后”连接：",
)
_FOOT = (
    'Put names and texts that hold blanks or the word "then" between quotes.',
    "名称或文字中有空格或“然后”时，请加引号。",
)
_COLUMN = 34
"""Width of the first of the two columns of commands, in cells."""

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


def notice(label: str, *, chinese: bool) -> str:
    """What the first answer of a thread begins with."""
    if chinese:
        return f"（{label}：离线命令模式，无模型；“帮助”列出命令。）"
    return f'({label}: "help" lists the commands it understands.)'


def not_understood(fault: NotUnderstood, connect: str, *, chinese: bool) -> str:
    """The answer to what is not in the command language; it ends with how to connect a model."""
    known = f"{_HEAD[chinese]}\n{_commands(chinese=chinese)}\n{_FOOT[chinese]}"
    return "\n\n".join(filter(None, (_why(fault, chinese=chinese), known, connect)))


def _why(fault: NotUnderstood, *, chinese: bool) -> str:
    if fault.asks_for_help:
        return ""
    if fault.is_too_long:
        return (
            "消息太长。没有执行任何操作。"
            if chinese
            else "The message is too long for this mode. Nothing was done."
        )
    near = guess(fault.part, chinese=chinese)
    if chinese:
        meant = f"\n您是否想说：{near}" if near else ""
        return f"未能理解：{_quoted(fault.part)}。没有执行任何操作。{meant}"
    meant = f"\nDid you mean: {near}" if near else ""
    return f"Not understood: {_quoted(fault.part)}. Nothing was done.{meant}"


def _commands(*, chinese: bool) -> str:
    shapes = [shape.told(chinese=chinese) for shape in SHAPES]
    rows = zip(shapes[::2], shapes[1::2], strict=True)
    return "\n".join(f"  {left}{' ' * (_COLUMN - _width(left))}{right}" for left, right in rows)


def _width(text: str) -> int:
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)


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
