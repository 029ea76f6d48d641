"""What the offline mode answers, in English and Chinese.

For a message that is not understood it suggests the nearest command, which is shown and never run.
"""

import difflib
import re
import shlex
from collections.abc import Iterator
from unicodedata import east_asian_width

from graph_agent.model.offline.parser import (
    SYNTAX,
    CommandKind,
    NotUnderstood,
    parse,
    parse_command,
    strip_politeness,
)
from graph_agent.model.offline.plan import Outcome

__all__ = ["format_help", "format_notice", "format_outcome", "format_skipped", "suggest"]

_MAX_SHOWN = 6_000
"""Longest result that is repeated to the user, in characters."""
_MAX_QUOTED = 80
_COLUMN = 34
"""Width of the first of the two columns of commands, in cells."""

# Pairs of an English and a Chinese text.
_HEAD = ('Commands, several of them joined by "then":', "可用命令（英文也可以），多个命令可用“然后”连接：")
_FOOT = (
    'Put names and texts with blanks or the word "then" in quotes.',
    "名称或文字中有空格或“然后”时，请加引号。",
)
_LISTS = ('Type "help" for the commands.', "“帮助”列出命令。")
_TOO_LONG = ("The message is too long for this mode. Nothing was done.", "消息太长。没有执行任何操作。")
_NOT_UNDERSTOOD = ("Not understood: {}. Nothing was done.", "未能理解：{}。没有执行任何操作。")
_SUGGESTION = ("\nDid you mean: {}\n", "\n您是否想说：{}\n")
_OUTCOMES = {
    "done": ("{subject}:\n{text}", "{subject}：\n{text}"),
    "failed": ("Not done: {subject}\n{text}", "未完成：{subject}\n{text}"),
    "missing": ("Not done: the tool {subject} is not available here.", "未完成：此处没有提供工具 {subject}。"),
    "planning": (
        "Not done: plan mode only reads, and no model is connected to plan. /mode default allows {subject}.",
        "未完成：计划模式只读，且没有连接可制定计划的模型。“/mode default”可使用 {subject}。",
    ),
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


def format_help(fault: NotUnderstood, connect: str, *, chinese: bool, is_known: bool = False) -> str:
    """The answer to a message that is no command: why, the commands there are, and how to connect a model.

    Where the user `is_known` to have seen an answer, what lists the commands is enough.
    """
    reason = ""
    if fault.is_too_long:
        reason = _TOO_LONG[chinese]
    elif not fault.asks_for_help:
        quoted = repr(fault.part if len(fault.part) <= _MAX_QUOTED else fault.part[:_MAX_QUOTED] + "…")
        near = suggest(fault.part, chinese=chinese)
        reason = _NOT_UNDERSTOOD[chinese].format(quoted) + (_SUGGESTION[chinese].format(near) if near else "")
    if is_known:
        return reason + ("" if reason.endswith("\n") else " ") + _LISTS[chinese]
    cells = [syntax.chinese if chinese else syntax.english for syntax in SYNTAX]
    rows = [f"  {_padded(left)}{right}" for left, right in zip(cells[::2], cells[1::2], strict=True)]
    commands = "\n".join([_HEAD[chinese], *rows, _FOOT[chinese]])
    return "\n\n".join(filter(None, (reason.rstrip(), commands, connect)))


def _padded(text: str) -> str:
    width = sum(2 if east_asian_width(char) in "WF" else 1 for char in text)
    return text + " " * (_COLUMN - width)


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


_VERBS_OF: tuple[tuple[CommandKind, str], ...] = (
    ("list", "list ls dir 列出"),
    ("read", "read show cat open print view display 读取 阅读 查看 显示 打开 读 看"),
    ("find", "find 查找 寻找 找"),
    ("search", "search grep look 搜索 搜 检索"),
    ("create", "create write make save put 创建 新建 建立 写入 写"),
    ("append", "append add 追加 添加 向 往"),
    ("replace", "replace change edit 替换 把 将 修改"),
    ("run", "run execute exec 运行 执行"),
    ("remember", "remember 记住 记下"),
)
_VERBS = {verb: kind for kind, verbs in _VERBS_OF for verb in verbs.split()}
_PROGRAMS = re.compile(
    r"(?:awk|cargo|cat|chmod|cp|curl|diff|docker|echo|find|git|go|grep|head|ls|make|mkdir|mv|mypy|node|npm|npx|pip|pwd"
    r"|pytest|python3?|rm|ruff|sed|sort|tail|test|touch|tree|uv|wc)"
)
"""Programs that people type without `run` before them."""
_AS_SHELL = (
    (r"(?:create|make|add)\s+(?:an?\s+|the\s+)?(?:new\s+)?(?:folder|directory)\s+(\S+)", "run mkdir {}"),
    (r"(?:delete|remove|erase)\s+(?:the\s+)?(?:file\s+)?(\S+)", "run rm {}"),
    (r"(?:move|rename)\s+(?:the\s+)?(?:file\s+)?(\S+)\s+to\s+(\S+)", "run mv {} {}"),
    (r"copy\s+(?:the\s+)?(?:file\s+)?(\S+)\s+to\s+(\S+)", "run cp {} {}"),
    (r"(?:删除|删掉)\s*(?:文件)?\s*(\S+)", "运行 rm {}"),
    (r"(?:把|将)\s*(\S+)\s*(?:重命名为|改名为|移动到)\s*(\S+)", "运行 mv {} {}"),
    (r"(?:重命名|移动)\s*(?:文件)?\s*(\S+)\s*(?:为|到)\s*(\S+)", "运行 mv {} {}"),
    (r"复制\s*(?:文件)?\s*(\S+)\s*(?:为|到)\s*(\S+)", "运行 cp {} {}"),
    (r"(?:创建|新建|建立)(?:一个)?(?:新)?的?(?:文件夹|目录)\s*(\S+)", "运行 mkdir {}"),
)
_FAREWELLS = frozenset(("exit", "quit", "bye", "goodbye", "退出", "再见"))
_QUESTION_WORDS = frozenset(("how", "what", "when", "where", "which", "who", "why"))
"""Words that look like a verb and are none."""
_SEPARATORS = {
    **dict.fromkeys((" and ", "; ", ", ", "\n"), ", then "),
    **dict.fromkeys(("，", "；", "。", "并且", "并"), "，然后"),
}
_MAX_LENGTH = 120
_MAX_WORDS = 12


def suggest(part: str, *, chinese: bool) -> str:
    """The nearest command, ready to be typed; else the syntax of the nearest kind; empty where nothing is near."""
    text = strip_politeness(part)
    if len(text) > _MAX_LENGTH:
        return ""
    if text.strip(" .!。！").lower() in _FAREWELLS:
        return "/exit"
    # Commands side by side are joined by "then" instead of what stands between them.
    for separator, then in _SEPARATORS.items():
        joined = then.join(piece.strip() for piece in text.split(separator) if piece.strip())
        if separator in text and isinstance(parse(joined), tuple):
            return joined
    if "\n" in text:
        return ""
    verb = _verb(text)
    for candidate in _candidates(text, verb):
        if parse_command(candidate) is not None:
            return candidate
    nearest = (syntax for syntax in SYNTAX if verb and syntax.kind == _VERBS[verb])
    return next((syntax.chinese if chinese else syntax.english for syntax in nearest), "")


def _candidates(text: str, verb: str) -> Iterator[str]:
    """Commands that the text may mean; the first one that can be parsed is suggested."""
    first, blank, arguments = text.partition(" ")
    if _PROGRAMS.fullmatch(first) and (first not in _VERBS or arguments.startswith("-")):
        yield f"run {text}"
    if verb and blank and not text.lower().startswith(verb):
        text = f"{verb} {arguments}"
        yield text
    # Names with blanks need quotes: each run of words that could be one, the longest first.
    words = text.split(" ")
    for end, word in enumerate(words) if len(words) <= _MAX_WORDS else ():
        if re.fullmatch(r"[\w-]+\.\w{1,8}", word):
            for begin in range(1, end):
                yield " ".join([*words[:begin], f'"{" ".join(words[begin : end + 1])}"', *words[end + 1 :]])
    for pattern, line in _AS_SHELL:
        if found := re.fullmatch(pattern, text, re.IGNORECASE):
            yield line.format(*(shlex.quote(name) for name in found.groups()))


def _verb(text: str) -> str:
    """The verb that the message begins with, exactly or nearly; empty for none."""
    first = next(iter(text.split()), "").lower()
    if first in _VERBS:
        return first
    chinese = [verb for verb in _VERBS if not verb.isascii() and text.startswith(verb)]
    if chinese:
        return max(chinese, key=len)
    is_near = len(first) > 2 and first not in _QUESTION_WORDS
    return next(iter(difflib.get_close_matches(first, _VERBS, n=1, cutoff=0.74)), "") if is_near else ""
