"""Suggests what the user may have meant by a message that is no command; the suggestion is shown, never run."""

import difflib
import re
import shlex
from collections.abc import Iterator

from graph_agent.model.offline.commands import (
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
    syntax_of,
)
from graph_agent.model.offline.parser import parse, parse_command, strip_politeness

__all__ = ["suggest"]

_VERBS: dict[str, type[Command]] = {
    verb: command
    for command, verbs in (
        (ListFiles, "list ls dir 列出"),
        (ReadFile, "read show cat open print view display 读取 阅读 查看 显示 打开 读 看"),
        (FindFiles, "find 查找 寻找 找"),
        (SearchText, "search grep look 搜索 搜 检索"),
        (CreateFile, "create write make save put 创建 新建 建立 写入 写"),
        (AppendText, "append add 追加 添加 向 往"),
        (ReplaceText, "replace change edit 替换 把 将 修改"),
        (RunShell, "run execute exec 运行 执行"),
        (Remember, "remember 记住 记下"),
    )
    for verb in verbs.split()
}
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
    if joined := next((line for line in _joined(text) if isinstance(parse(line), tuple)), ""):
        return joined
    if "\n" in text:
        return ""
    for candidate in _candidates(text):
        if parse_command(candidate) is not None:
            return candidate
    verb = _verb(text)
    return syntax_of(_VERBS[verb]).text(chinese=chinese) if verb else ""


def _joined(text: str) -> Iterator[str]:
    """Commands side by side, joined by "then" instead of what stands between them."""
    for separator, then in _SEPARATORS.items():
        if separator in text:
            yield then.join(piece.strip() for piece in text.split(separator) if piece.strip())


def _candidates(text: str) -> Iterator[str]:
    first, blank, rest = text.partition(" ")
    if _PROGRAMS.fullmatch(first) and (first not in _VERBS or rest.startswith("-")):
        yield f"run {text}"
    verb = _verb(text)
    if verb and blank and not text.lower().startswith(verb):
        text = f"{verb} {rest}"
        yield text
    yield from _with_a_name_quoted(text.split(" "))
    for pattern, line in _AS_SHELL:
        if found := re.fullmatch(pattern, text, re.IGNORECASE):
            yield line.format(*(shlex.quote(name) for name in found.groups()))


def _with_a_name_quoted(words: list[str]) -> Iterator[str]:
    """Names with blanks need quotes: each run of words that could be one, the longest first."""
    if len(words) > _MAX_WORDS:
        return
    for end in (end for end, word in enumerate(words) if re.fullmatch(r"[\w-]+\.\w{1,8}", word)):
        for begin in range(1, end):
            yield " ".join([*words[:begin], f'"{" ".join(words[begin : end + 1])}"', *words[end + 1 :]])


def _verb(text: str) -> str:
    """The verb that the message begins with, exactly or nearly; empty for none."""
    first = text.split(maxsplit=1)[0].lower() if text.split() else ""
    if first in _VERBS:
        return first
    chinese = [verb for verb in _VERBS if not verb.isascii() and text.startswith(verb)]
    if chinese:
        return max(chinese, key=len)
    is_near = len(first) > 2 and first not in _QUESTION_WORDS
    return next(iter(difflib.get_close_matches(first, _VERBS, n=1, cutoff=0.74)), "") if is_near else ""
