"""Turns a message into offline commands, or says which part is not understood. Pure.

What somebody may have meant whose message is no command. Only a sentence comes of it, never a call.
"""

import difflib
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from graph_agent.model.offline.chinese import CHINESE, CHINESE_VERBS
from graph_agent.model.offline.commands import (
    QUOTED,
    AppendText,
    Command,
    CreateFile,
    FindFiles,
    Form,
    ListFiles,
    ReadFile,
    Remember,
    ReplaceText,
    RunShell,
    SearchText,
    shape_of,
)
from graph_agent.model.offline.english import ENGLISH, ENGLISH_VERBS

__all__ = ["MAX_LENGTH", "NotUnderstood", "bare", "guess", "is_chinese", "parse", "parse_one"]

MAX_LENGTH = 8_000
"""Longest message that is read as commands, in characters."""

_JOIN = re.compile(
    rf"{QUOTED}|(?:\b(?:and\s+)?(?:then|after\s+that|afterwards|finally)\b|然后|接着|随后|最后|[,，;；。]\s*再)"
    rf"[\s,，:：]*(?=(?P<verb>{ENGLISH_VERBS}|{CHINESE_VERBS}))?",
    re.IGNORECASE | re.DOTALL,
)
_POLITE = re.compile(
    r"(?:(?:please|kindly|ok|okay|now|first|also)\b[\s,，]*)*"
    r"(?:(?:(?:can|could|would|will)\s+you|i\s+want\s+you\s+to|i(?:'d|\s+would)\s+like\s+you\s+to)\b[\s,]*)?"
    r"(?:please\b[\s,]*)?(?:请你|请您|请|帮我|帮忙|麻烦你|麻烦您|麻烦|先|再|能不能|能否|给我)*\s*",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"(?:[\s,，]+(?:please|thanks|thank\s+you|for\s+me)|[\s,，。]*(?:谢谢您?你?|多谢|好吗|可以吗|吧))[\s.!?。！？]*\Z",
    re.IGNORECASE,
)
_HELP = re.compile(
    r"(?:help|commands|\?|？|what\s+can\s+(?:you|i)\s+do|how\s+does\s+this\s+work"
    r"|hi|hello|hey(?:\s+there)?|(?:how\s+(?:do|can)\s+i\s+)?connect\s+(?:to\s+)?(?:a|my|another|the)\s+model"
    r"|你好|您好|嗨|(?:如何|怎么|怎样)?连接(?:一个)?模型|帮助|命令|有哪些命令|你?能做什么|怎么用)[\s.!?。！？]*",
    re.IGNORECASE,
)
_CHINESE = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """The message is not in the command language; nothing of it is done."""

    part: str
    """What could not be read; empty when the message is empty."""
    is_too_long: bool = False
    asks_for_help: bool = False
    """Whether the message is a wish to be told what there is."""


def parse(text: str) -> tuple[Command, ...] | NotUnderstood:
    """All commands of a message, in order; one part that is not understood spoils the whole."""
    if len(text) > MAX_LENGTH:
        return NotUnderstood(text[:80], is_too_long=True)
    if _HELP.fullmatch(text.strip()):
        return NotUnderstood(text.strip(), asks_for_help=True)
    commands: list[Command] = []
    for part in _parts(text):
        command = parse_one(part)
        if command is None:
            return NotUnderstood(part)
        commands.append(command)
    return tuple(commands)


def parse_one(part: str) -> Command | None:
    """The single command that this text is; None where it is none."""
    return _reading(part, (*ENGLISH, *CHINESE))


def bare(part: str) -> str:
    """The text without the politeness before it."""
    polite = _POLITE.match(part)
    return part[polite.end() :] if polite else part


def is_chinese(text: str) -> bool:
    """Whether the answer should be Chinese: a Chinese file name in an English command does not make it so."""
    if not _CHINESE.search(text):
        return False
    return len(text) > MAX_LENGTH or _reading(_parts(text)[0], ENGLISH) is None


def _parts(text: str) -> list[str]:
    parts, begin = [], 0
    for found in _JOIN.finditer(text):
        if found["verb"] is not None:
            parts.append(text[begin : found.start()].rstrip(" \t\n,;，；").lstrip())
            begin = found.end()
    return [*parts, text[begin:].strip()]


def _reading(part: str, wordings: tuple[Form, ...]) -> Command | None:
    for text, wording in _candidates(bare(part), wordings):
        if found := wording.pattern.fullmatch(text):
            return wording.build({**dict.fromkeys(("path", "text", "first", "last")), **found.groupdict()})
    return None


def _candidates(wish: str, wordings: tuple[Form, ...]) -> Iterator[tuple[str, Form]]:
    """Thanks at the end belong to a bare text that takes the rest, and to no other command."""
    thankless = _THANKS.sub("", wish)
    for wording in wordings:
        keeps = wording.takes_the_rest and thankless != wish and not _ends_quoted(wording, thankless)
        yield wish if keeps else thankless, wording
    if thankless != wish:
        for wording in wordings:
            yield wish, wording


def _ends_quoted(wording: Form, text: str) -> bool:
    """Whether the text that takes the rest stands between quotes, so that it is clear where it ends."""
    found = wording.pattern.fullmatch(text)
    last = found[found.lastgroup] if found and found.lastgroup else ""
    return re.fullmatch(QUOTED, last.strip(), re.DOTALL) is not None


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
    for candidate in _candidates_offline_guess(wish):
        if parse_one(candidate) is not None:
            return candidate
    verb = _verb(wish)
    return shape_of(_VERBS[verb]).told(chinese=chinese) if verb else ""


def _joined(wish: str) -> Iterator[str]:
    """Commands that stand beside each other, joined by the word that joins them."""
    for joint, by in _JOINTS.items():
        if joint in wish:
            yield by.join(piece.strip() for piece in wish.split(joint) if piece.strip())


def _candidates_offline_guess(wish: str) -> Iterator[str]:
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
