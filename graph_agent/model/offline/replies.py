"""What the offline mode answers, in English and Chinese."""

from unicodedata import east_asian_width

from graph_agent.model.offline.commands import SYNTAX
from graph_agent.model.offline.parser import NotUnderstood
from graph_agent.model.offline.plan import Outcome
from graph_agent.model.offline.suggestions import suggest

__all__ = ["format_help", "format_notice", "format_outcome", "format_skipped"]

_MAX_SHOWN = 6_000
"""Longest result that is repeated to the user, in characters."""
_MAX_QUOTED = 80
_COLUMN = 34
"""Width of the first of the two columns of commands, in cells."""

_HEAD = ('Commands, several of them joined by "then":', "可用命令（英文也可以），多个命令可用“然后”连接：")
_FOOT = (
    'Put names and texts with blanks or the word "then" in quotes.',
    "名称或文字中有空格或“然后”时，请加引号。",
)
_TOO_LONG = ("The message is too long for this mode. Nothing was done.", "消息太长。没有执行任何操作。")
_NOT_UNDERSTOOD = ("Not understood: {}. Nothing was done.", "未能理解：{}。没有执行任何操作。")
_SUGGESTION = ("\nDid you mean: {}", "\n您是否想说：{}")

_OUTCOMES = {
    "done": ("{subject}:\n{text}", "{subject}：\n{text}"),
    "failed": ("Not done: {subject}\n{text}", "未完成：{subject}\n{text}"),
    "missing": ("Not done: the tool {subject} is not available here.", "未完成：此处没有提供工具 {subject}。"),
    "absent": ("Nothing changed: {subject} does not contain {text!r}.", "没有改动：{subject} 中没有 {text!r}。"),
    "unreadable": (
        "Not done: {subject} cannot be shown completely, and rewriting it could damage it. Use `run COMMAND`.",
        "未完成：{subject} 无法完整显示，重写可能损坏它。请改用“运行 命令”。",
    ),
}


def format_notice(label: str, *, chinese: bool) -> str:
    """What the first answer of a thread begins with."""
    if chinese:
        return f"（{label}：离线命令模式，无模型；“帮助”列出命令。）"
    return f'({label}: type "help" for the commands.)'


def format_help(fault: NotUnderstood, connect: str, *, chinese: bool) -> str:
    """The answer to a message that is no command: why, the commands there are, and how to connect a model."""
    cells = [syntax.text(chinese=chinese) for syntax in SYNTAX]
    rows = [
        f"  {left}{' ' * (_COLUMN - _width(left))}{right}" for left, right in zip(*[iter(cells)] * 2, strict=True)
    ]
    commands = "\n".join([_HEAD[chinese], *rows, _FOOT[chinese]])
    return "\n\n".join(filter(None, (_reason(fault, chinese=chinese), commands, connect)))


def format_outcome(outcome: Outcome, *, chinese: bool) -> str:
    """How one command ended."""
    text, more = outcome.text[:_MAX_SHOWN], len(outcome.text) - _MAX_SHOWN
    if more > 0:
        text += f"\n… 还有 {more} 个字符。" if chinese else f"\n… {more} more characters."
    return _OUTCOMES[outcome.kind][chinese].format(subject=outcome.subject, text=text)


def format_skipped(count: int, *, chinese: bool) -> str:
    """Follows a failed command when others were to come after it."""
    if chinese:
        return f"因此后面的 {count} 个命令没有执行。"
    return f"The {count} command{'s' if count > 1 else ''} after it did not run."


def _reason(fault: NotUnderstood, *, chinese: bool) -> str:
    if fault.asks_for_help:
        return ""
    if fault.is_too_long:
        return _TOO_LONG[chinese]
    quoted = repr(fault.part if len(fault.part) <= _MAX_QUOTED else fault.part[:_MAX_QUOTED] + "…")
    near = suggest(fault.part, chinese=chinese)
    return _NOT_UNDERSTOOD[chinese].format(quoted) + (_SUGGESTION[chinese].format(near) if near else "")


def _width(text: str) -> int:
    return sum(2 if east_asian_width(char) in "WF" else 1 for char in text)
