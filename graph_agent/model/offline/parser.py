"""Turns a message into offline commands, or says which part is not understood.

The phrases of a language are a text of rows `COMMAND: pattern` with examples below, each after `  - `. The first
phrase that fits the whole message wins. A pattern is a regular expression in which a blank is any white space,
`(...)` captures nothing, `<NAME>` is the row of that name above, and `<F:path>` is a slot: F a file, B a short
text, T the rest, C the rest as a shell command, N a number. Rows with names in capitals are only parts of others.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from graph_agent.model.offline.phrases import CHINESE_PHRASES, CHINESE_VERBS, ENGLISH_PHRASES, ENGLISH_VERBS

__all__ = [
    "CHINESE",
    "ENGLISH",
    "MAX_LENGTH",
    "QUOTED",
    "SYNTAX",
    "Command",
    "CommandKind",
    "CommandSyntax",
    "NotUnderstood",
    "Phrase",
    "is_chinese",
    "parse",
    "parse_command",
    "phrase_table",
    "strip_politeness",
]

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


MAX_LENGTH = 8_000
"""Longest message that is read as commands, in characters."""
QUOTED = (
    r"""(?:```.*?```|"(?:\\.|[^"\\])*"|`[^`]*`|“[^”]*”|「[^」]*」|『[^』]*』|《[^》]*》"""
    r"""|(?<!\w)‘[^’]*’(?!\w)|(?<!\w)'[^']*'(?!\w))"""
)
"""Text between quotes of one kind; an apostrophe inside a word is no quote."""

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
_CHINESE_CHARACTER = re.compile(r"[\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """The message is not in the command language; none of it is run."""

    part: str
    """What could not be read; empty when the message is empty."""
    is_too_long: bool = False
    asks_for_help: bool = False


def parse(text: str) -> tuple[Command, ...] | NotUnderstood:
    """All commands of a message, in order; one part that is not understood rejects the whole message."""
    if len(text) > MAX_LENGTH:
        return NotUnderstood(text[:80], is_too_long=True)
    if _HELP.fullmatch(text.strip()):
        return NotUnderstood(text.strip(), asks_for_help=True)
    commands: list[Command] = []
    for part in _split(text):
        command = parse_command(part)
        if command is None:
            return NotUnderstood(part)
        commands.append(command)
    return tuple(commands)


def parse_command(part: str) -> Command | None:
    """The single command that this text means; None where it means none."""
    return _match(part, (*ENGLISH, *CHINESE))


def is_chinese(text: str) -> bool:
    """Whether to answer in Chinese; a Chinese file name in an English command is not enough."""
    if not _CHINESE_CHARACTER.search(text):
        return False
    return len(text) > MAX_LENGTH or _match(_split(text)[0], ENGLISH) is None


def strip_politeness(part: str) -> str:
    """The text without words such as "please" and "can you" before it."""
    return _POLITE.sub("", part, count=1)


def _split(text: str) -> list[str]:
    """The parts of a message between the words that join commands."""
    parts, begin = [], 0
    for found in _JOIN.finditer(text):
        if found["verb"] is not None:
            parts.append(text[begin : found.start()].rstrip(" \t\n,;，；").lstrip())
            begin = found.end()
    return [*parts, text[begin:].strip()]


def _match(part: str, phrases: "tuple[Phrase, ...]") -> Command | None:
    commands = (phrase.match(text) for text, phrase in _readings(strip_politeness(part), phrases))
    return next((command for command in commands if command is not None), None)


def _readings(text: str, phrases: "tuple[Phrase, ...]") -> "Iterator[tuple[str, Phrase]]":
    """Thanks at the end belong to an unquoted text that takes the rest of the message, and to nothing else."""
    without_thanks = _THANKS.sub("", text)
    if without_thanks != text:
        for phrase in phrases:
            if phrase.takes_everything_of(without_thanks):
                yield text, phrase
            yield without_thanks, phrase
    yield from ((text, phrase) for phrase in phrases)


_PROSE = (
    r"(?:(?<=\s)and\s|(?<=[^;\s]\s)then\b"
    r"|\b(?:tell|show|give|let)\s+(?:me|us)\b|\bexplain\s+(?:it|this|that|the|what|why|how|to)\b"
    r"|,\s+(?:and|but|so|then|please|thanks?)\b"
    r"|[,;]\s+(?:what|why|how|which|tell|show|explain|describe|summari[sz]e|report|count|check|give|fix)\b"
    r"|[a-z0-9][.!?]\s+[A-Z][a-z]"
    r"|\b(?:so\s+(?:that|i|we)|because|in\s+order\s+to)\b"
    r"|\bto\s+(?:get|see|find|check|know|count|learn|verify|make\s+sure)\b"
    r"|\b(?:if|until|while|when|once|unless)\s+(?:it|that|this|they|everything|done)\b"
    r"|\b(?:with|in|on|from|for|using)\s+(?:the|an?|my|this|that|these|those|your|our)\s"
    r"|\s(?:twice|again|\d+\s+times)\s*[.!?]?\Z"
    r"|告诉我|给我|解释|说明|总结|汇报|(?:\s|[，；。])\s*(?:并且?|然后|接着))"
)
"""Text outside quotes which shows that a sentence continues after the command."""
_SLOTS = {
    "F": rf"""@?{QUOTED}|(?:\\[ ]|[^\s"'`“”‘’「」『』《》,，;；])+?""",
    "T": rf"{QUOTED}|[^\n]*\S.*",
    "C": rf"{QUOTED}|(?=[^\n]*\S)(?>{QUOTED}|(?!{_PROSE}).)+",
    "B": rf"{QUOTED}|\S.{{0,1000}}?",
    # Digits of any width, or Chinese words up to ninety-nine.
    "N": r"\d{1,9}|[一二两三四五六七八九十]{1,3}",
}
Slots = Mapping[str, str]
"""The text of each slot; empty where the message left it out."""


class Phrase(NamedTuple):
    """One way to write a command."""

    pattern: re.Pattern[str]
    build: Callable[[Slots], Command]
    examples: tuple[str, ...]
    """Messages of this form, for the documentation and the tests."""

    def match(self, text: str) -> Command | None:
        """The command that the text means; None where it has another form."""
        found = self.pattern.fullmatch(text)
        return self.build(defaultdict(str, found.groupdict(""))) if found else None

    def takes_everything_of(self, text: str) -> bool:
        """Whether everything up to the end of the text belongs to the last slot, which has no quotes around it."""
        if not self.pattern.pattern.endswith(tuple(f"{_SLOTS[kind]})" for kind in "TBC")):
            return False
        found = self.pattern.fullmatch(text)
        last = found[found.lastgroup] if found and found.lastgroup else ""
        return re.fullmatch(QUOTED, last.strip(), re.DOTALL) is None


def phrase_table(rows: str) -> tuple[Phrase, ...]:
    """The phrases of a language, from the notation described above."""
    phrases: list[Phrase] = []
    parts: dict[str, str] = {}
    for row in re.split(r"\n(?=\S)", rows.strip()):
        head, *examples = row.split("\n  - ")
        name, _, notation = head.partition(": ")
        pattern = re.sub(r"(?<!\\)\((?!\?)", "(?:", re.sub(r"\n\s+", "", notation)).replace(" ", r"\s+")
        pattern = re.sub(r"<([FBTNC]):(\w+)>", lambda slot: f"(?P<{slot[2]}>{_SLOTS[slot[1]]})", pattern)
        pattern = re.sub(r"<([A-Z_]+)>", lambda part: parts[part[1]], pattern)
        if name.isupper():
            parts[name] = pattern
        else:
            compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)
            phrases.append(Phrase(compiled, _BUILDERS[name], tuple(one.replace("⏎", "\n") for one in examples)))
    return tuple(phrases)


def _build_read(slots: Slots) -> Command:
    """A whole file, one line of it, or the lines between two, in whichever order they are named."""
    first, last = _line_number(slots["first"]), _line_number(slots["last"])
    if first is None or last is None:
        return Command("read", _path(slots["path"]), first=first, last=first)
    return Command("read", _path(slots["path"]), first=min(first, last), last=max(first, last))


_BUILDERS: Mapping[str, Callable[[Slots], Command]] = {
    "todo": lambda _: Command("todo"),
    "list": lambda slots: Command("list", _folder(slots["path"])),
    "find": lambda slots: Command("find", _folder(slots["path"]), _path(slots["pattern"])),
    "search": lambda slots: Command("search", _folder(slots["path"]), _unquoted(slots["text"])),
    "create": lambda slots: Command("create", _path(slots["path"]), _lines(slots["text"])),
    "append": lambda slots: Command("append", _path(slots["path"]), _lines(slots["text"]).removesuffix("\n")),
    "replace": lambda slots: Command(
        "replace", _path(slots["path"]), _unquoted(slots["old"]), _without_full_stop(slots["new"])
    ),
    "run": lambda slots: Command("run", text=_without_full_stop(slots["text"])),
    "remember": lambda slots: Command("remember", text=_unquoted(slots["text"])),
    "read": _build_read,
    "read from": lambda slots: Command("read", _path(slots["path"]), first=_line_number(slots["first"])),
    "read first": lambda slots: Command(
        "read", _path(slots["path"]), first=1, last=_line_number(slots["last"]) or 1
    ),
}
_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\"}
_FENCE = re.compile(r"```(?:[\w+-]*\n)?(.*?)\n?```", re.DOTALL)
_HERE = re.compile(
    r"(?:(?:the|this|my|our)\s+)?(?:(?:current|working)\s+)?(?:here|folder|directory|workspace|project|repo(?:sitory)?)"
    r"|(?:当前)?(?:目录|文件夹)|这里",
    re.IGNORECASE,
)
_DIGITS = {digit: value for value, digit in enumerate("一二三四五六七八九", 1)} | {"两": 2}


def _unquoted(text: str) -> str:
    """The text without the quotes around it; between double quotes, backslash escapes are read."""
    text = text.strip()
    if len(text) < 2 or not re.fullmatch(QUOTED, text, re.DOTALL):
        return text
    if fenced := _FENCE.fullmatch(text):
        return fenced[1]
    inner = text[1:-1]
    return re.sub(r'\\[nt"\\]', lambda found: _ESCAPES[found[0]], inner) if text[0] == '"' else inner


def _without_full_stop(text: str) -> str:
    """The text without the full stop of a Chinese sentence, in which no command and no name ends."""
    return _unquoted(text.strip().rstrip("。"))


def _path(text: str) -> str:
    """A file name without the @ of the chat's completion.

    Unquoted, it loses the full stop of the sentence and the backslashes before blanks.
    """
    text = text.strip().removeprefix("@")
    name = _unquoted(text)
    if name != text:
        return name
    name = name.rstrip("。！？!?").replace("\\ ", " ")
    return name.rstrip(".") or name


def _folder(text: str) -> str:
    """A folder name; no text, and words for "here", mean the workspace."""
    name = _path(text)
    return "." if not name or _HERE.fullmatch(name) else name


def _lines(text: str) -> str:
    """The text as whole lines, with a newline at the end unless it is empty; the first indentation stays."""
    whole = _unquoted(text)
    if whole == text.strip():
        whole = text.rstrip()
    return whole if not whole or whole.endswith("\n") else whole + "\n"


def _line_number(text: str) -> int | None:
    if not text or text.isdecimal():
        return int(text) if text else None
    tens, ten, ones = text.rpartition("十")
    return (_DIGITS.get(tens, 1) * 10 if ten else 0) + _DIGITS.get(ones, 0)


ENGLISH, CHINESE = phrase_table(ENGLISH_PHRASES), phrase_table(CHINESE_PHRASES)
