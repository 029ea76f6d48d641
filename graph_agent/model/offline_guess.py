"""What somebody may have meant whose message is no command. Only a sentence comes of it, never a call."""

import difflib
import re
import shlex
from collections.abc import Iterator

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
)
from graph_agent.model.offline_grammar import bare, parse, parse_one
from graph_agent.model.offline_shapes import shape_of

__all__ = ["guess"]

_VERBS: dict[str, type[Command]] = {
    **dict.fromkeys(("list", "ls", "dir", "列出"), ListFiles),
    **dict.fromkeys(("read", "show", "cat", "open", "print", "view", "display"), ReadFile),
    **dict.fromkeys(("读取", "阅读", "查看", "显示", "打开", "读", "看"), ReadFile),
    **dict.fromkeys(("find", "查找", "寻找", "找"), FindFiles),
    **dict.fromkeys(("search", "grep", "look", "搜索", "搜", "检索"), SearchText),
    **dict.fromkeys(("create", "write", "make", "save", "put", "创建", "新建", "建立", "写入", "写"), CreateFile),
    **dict.fromkeys(("append", "add", "追加", "添加", "向", "往"), AppendText),
    **dict.fromkeys(("replace", "change", "edit", "替换", "把", "将", "修改"), ReplaceText),
    **dict.fromkeys(("run", "execute", "exec", "运行", "执行"), RunShell),
    **dict.fromkeys(("remember", "记住", "记下"), Remember),
}
_PROGRAMS = re.compile(
    r"(?:awk|cargo|cat|chmod|cp|curl|diff|docker|echo|find|git|go|grep|head|ls|make|mkdir|mv|mypy|node|npm|npx|pip|pwd"
    r"|pytest|python3?|rm|ruff|sed|sort|tail|test|touch|tree|uv|wc)"
)
"""Programs that people type without `run` before them."""
_AS_SHELL = (
    (
        re.compile(
            r"(?:create|make|add)\s+(?:an?\s+|the\s+)?(?:new\s+)?(?:folder|directory)\s+(\S+)", re.IGNORECASE
        ),
        "run mkdir {}",
    ),
    (re.compile(r"(?:delete|remove|erase)\s+(?:the\s+)?(?:file\s+)?(\S+)", re.IGNORECASE), "run rm {}"),
    (re.compile(r"(?:move|rename)\s+(?:the\s+)?(?:file\s+)?(\S+)\s+to\s+(\S+)", re.IGNORECASE), "run mv {} {}"),
    (re.compile(r"copy\s+(?:the\s+)?(?:file\s+)?(\S+)\s+to\s+(\S+)", re.IGNORECASE), "run cp {} {}"),
    (re.compile(r"(?:删除|删掉)\s*(?:文件)?\s*(\S+)"), "运行 rm {}"),
    (re.compile(r"(?:把|将)\s*(\S+)\s*(?:重命名为|改名为|移动到)\s*(\S+)"), "运行 mv {} {}"),
    (re.compile(r"(?:重命名|移动)\s*(?:文件)?\s*(\S+)\s*(?:为|到)\s*(\S+)"), "运行 mv {} {}"),
    (re.compile(r"复制\s*(?:文件)?\s*(\S+)\s*(?:为|到)\s*(\S+)"), "运行 cp {} {}"),
    (re.compile(r"(?:创建|新建|建立)(?:一个)?(?:新)?的?(?:文件夹|目录)\s*(\S+)"), "运行 mkdir {}"),
)
_LEAVING = frozenset(("exit", "quit", "bye", "goodbye", "退出", "再见"))
_ASKING = frozenset(("how", "what", "when", "where", "which", "who", "why"))
"""Words that look like a verb and are none."""
_JOINTS = {
    **dict.fromkeys((" and ", "; ", ", ", "\n"), ", then "),
    **dict.fromkeys(("，", "；", "。", "并且", "并"), "，然后"),
}
_SHOWN = 120
_MAX_WORDS = 12


def guess(part: str, *, chinese: bool) -> str:
    """The nearest command, ready to be typed; else the shape of the nearest kind; empty where nothing is near."""
    wish = bare(part)
    if len(wish) > _SHOWN:
        return ""
    if wish.strip(" .!。！").lower() in _LEAVING:
        return "/exit"
    if joined := next((line for line in _joined(wish) if isinstance(parse(line), tuple)), ""):
        return joined
    if "\n" in wish:
        return ""
    for candidate in _candidates(wish):
        if parse_one(candidate) is not None:
            return candidate
    verb = _verb(wish)
    return shape_of(_VERBS[verb]).told(chinese=chinese) if verb else ""


def _joined(wish: str) -> Iterator[str]:
    """Commands that stand beside each other, joined by the word that joins them."""
    for joint, by in _JOINTS.items():
        if joint in wish:
            yield by.join(piece.strip() for piece in wish.split(joint) if piece.strip())


def _candidates(wish: str) -> Iterator[str]:
    first, blank, rest = wish.partition(" ")
    if _PROGRAMS.fullmatch(first) and (first not in _VERBS or rest.startswith("-")):
        yield f"run {wish}"
    verb = _verb(wish)
    if verb and blank and not wish.lower().startswith(verb):
        yield f"{verb} {rest}"
        wish = f"{verb} {rest}"
    yield from _with_a_name_quoted(wish.split(" "))
    for wording, line in _AS_SHELL:
        if found := wording.fullmatch(wish):
            yield line.format(*(shlex.quote(name) for name in found.groups()))


def _with_a_name_quoted(words: list[str]) -> Iterator[str]:
    """Names with blanks need quotes: each run of words that could be one, the longest first."""
    if len(words) > _MAX_WORDS:
        return
    ends = [end for end, word in enumerate(words) if re.fullmatch(r"[\w-]+\.\w{1,8}", word)]
    for end in ends:
        for begin in range(1, end):
            yield " ".join([*words[:begin], f'"{" ".join(words[begin : end + 1])}"', *words[end + 1 :]])


def _verb(wish: str) -> str:
    """The verb the message begins with, or nearly so; empty for none."""
    first = wish.split(maxsplit=1)[0].lower() if wish.split() else ""
    if first in _VERBS:
        return first
    chinese = [verb for verb in _VERBS if not verb.isascii() and wish.startswith(verb)]
    if chinese:
        return max(chinese, key=len)
    is_near = len(first) > 2 and first not in _ASKING
    return next(iter(difflib.get_close_matches(first, _VERBS, n=1, cutoff=0.74)), "") if is_near else ""
