"""The user's rules as values: `tool` or `tool(pattern)`, in three lists; grants; and how patterns are compared."""

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from unicodedata import normalize

__all__ = [
    "ARGUMENT_ALIASES",
    "TOOL_ALIASES",
    "Grant",
    "InvalidRule",
    "Rule",
    "Rules",
    "canonical_tool_name",
    "denied_rules",
    "globs_overlap",
    "grant_applies",
    "granted_rules",
    "matches_host",
    "minimal_grants",
    "parse_rule",
    "parse_rules",
    "spellings",
]

TOOL_ALIASES = {"read": "read_file", "write": "write_file", "edit": "edit_file"}
ARGUMENT_ALIASES = {"path": "file_path", "old": "old_string", "new": "new_string"}

# Servers call themselves and their tools what they like, with blanks and dots in it.
_SHAPE = re.compile(r"\s*(?P<tool>[\w.*-]+|(?i:mcp__)[^()\n]*?)\s*(?:\((?P<pattern>.*)\))?\s*\Z", re.DOTALL)

_SERVER = re.compile(r"mcp__(?:(?!__)[^*])+")


class InvalidRule(ValueError):
    """A text is not a rule; the message quotes it and shows what a rule looks like."""


@dataclass(frozen=True)
class Rule:
    """One rule; without a pattern it covers the whole tool."""

    tool: str
    """Lower case, alias resolved; may contain `*`."""
    pattern: str | None
    text: str
    """As written."""
    is_literal: bool = False
    """The pattern is one exact text, `*` included: this is what "always" at the prompt stores."""
    folders: frozenset[str] | None = None
    """The folders in which a command that it allows has to work, all of them, relative to the workspace if they are
    inside; None for any folder of the workspace."""
    origin: str = ""
    """For a rule that an answer stored: its name in reasons, `grant 3 (this thread)`."""


@dataclass(frozen=True)
class Rules:
    """The three lists; the order within a list means nothing."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()


def canonical_tool_name(name: str) -> str:
    """A tool's name as rules know it: lower case, alias resolved."""
    lower = name.strip().casefold()
    return TOOL_ALIASES.get(lower, lower)


def parse_rule(text: str, *, is_literal: bool = False) -> Rule:
    """Read one rule.

    Raises:
        InvalidRule: it is not of the form `tool` or `tool(pattern)`.
    """
    match = _SHAPE.match(text)
    if match is None:
        raise InvalidRule(
            f"{text!r} is not a rule. Write a tool name, or a tool name and a pattern: bash(git status*)"
        )
    return Rule(canonical_tool_name(match["tool"]), match["pattern"], text.strip(), is_literal)


def spellings(text: str) -> tuple[str, ...]:
    """The text as it is and in the composed and the decomposed normal form of Unicode, each once."""
    if text.isascii():
        return (text,)
    return tuple(dict.fromkeys((text, normalize("NFC", text), normalize("NFD", text))))


def _in_all_spellings(rule: Rule) -> Iterable[Rule]:
    """A rule that forbids, for each spelling of a name that file systems and programs may take for the same."""
    return (rule,) if rule.pattern is None else (replace(rule, pattern=form) for form in spellings(rule.pattern))


def parse_rules(*, allow: Iterable[str] = (), ask: Iterable[str] = (), deny: Iterable[str] = ()) -> Rules:
    """Read the three lists.

    Raises:
        InvalidRule: one of the texts is not a rule.
    """
    strict: dict[str, list[Rule]] = {"ask": [], "deny": []}
    for name, texts in (("ask", ask), ("deny", deny)):
        for rule in (each for text in texts for each in _in_all_spellings(parse_rule(text))):
            strict[name].append(rule)
            if _SERVER.fullmatch(rule.tool):
                # A rule that names only an MCP server would cover nothing: another one covers the server's tools.
                strict[name].append(replace(rule, tool=f"{rule.tool}__*"))
    return Rules(tuple(map(parse_rule, allow)), tuple(strict["ask"]), tuple(strict["deny"]))


_APPLIES_IN: Mapping[str, frozenset[str]] = {
    "plan": frozenset(("plan", "default", "acceptEdits", "auto", "bypassPermissions")),
    "default": frozenset(("default", "acceptEdits", "auto", "bypassPermissions")),
    "acceptEdits": frozenset(("acceptEdits", "bypassPermissions")),
    "auto": frozenset(("auto", "bypassPermissions")),
    "bypassPermissions": frozenset(("bypassPermissions",)),
}
"""For each mode that a grant was given in, the modes it holds in. None holds in dontAsk."""


@dataclass(frozen=True)
class Grant:
    """What one answer "always" allows."""

    name: str
    """Its name in reasons: `grant 3 (this thread)`."""
    mode: str
    rules: tuple[Rule, ...]


def granted_rules(
    rules: Sequence[str], folders: Sequence[Sequence[str]], start: str, prefixes: Sequence[str] = ()
) -> tuple[Rule, ...]:
    """The rules of a grant as values.

    Args:
        rules: as they were shown.
        folders: for each rule all folders in which its command works; empty if that is where the call starts.
        start: the folder in which the call starts.
        prefixes: those of the rules that end with a star for any arguments; the others mean their words alone.

    Raises:
        InvalidRule: one of them is not a rule.
    """
    places = folders or [(start,)] * len(rules)
    return tuple(
        replace(parse_rule(text, is_literal=text not in prefixes), folders=frozenset(place))
        for text, place in zip(rules, places, strict=True)
    )


def denied_rules(rules: Sequence[str], prefixes: Sequence[str], origin: str) -> tuple[Rule, ...]:
    """The deny rules that an answer "always deny" stored; they hold in every mode and folder.

    Args:
        rules, prefixes: as in `granted_rules`.
        origin: the name of the grant in reasons.

    Raises:
        InvalidRule: one of them is not a rule.
    """
    parsed = (replace(parse_rule(text, is_literal=text not in prefixes), origin=origin) for text in rules)
    return tuple(each for rule in parsed for each in _in_all_spellings(rule))


def grant_applies(grant: Grant, mode: str) -> bool:
    """Whether the grant holds in this mode."""
    return mode in _APPLIES_IN.get(grant.mode, frozenset())


def minimal_grants(grants: Sequence[Grant], suffice: Callable[[Sequence[Grant]], bool]) -> Sequence[Grant]:
    """Of grants that suffice together, those that cannot be left out: the ones that a reason names."""
    kept = list(grants)
    for grant in grants:
        others = [one for one in kept if one is not grant]
        if suffice(others):
            kept = others
    return kept


def matches_host(pattern: str, target: str, *, is_strict: bool) -> bool:
    """Compare `HOST` or `HOST:PORT` with a target of the same form, whose port is omitted if it is the usual one.

    Without a port a rule that forbids (`is_strict`) holds for every port, and one that allows for the usual one.
    A rule that forbids holds for every spelling of an IP address. A first label `*` stands for one label or more.
    """
    wanted, wanted_port = _split_port(pattern)
    host, port = _split_port(target)
    if is_strict:
        wanted, host = map(_ip_in_standard_form, map(_host_in_standard_form, (wanted, host)))
    if wanted_port not in (port, "*") and (wanted_port or not is_strict):
        return False
    first, *following = wanted.removesuffix(".").split(".")
    labels = host.removesuffix(".").split(".")
    if first != "*":
        return [first, *following] == labels
    return not following or (len(labels) > len(following) and labels[-len(following) :] == following)


def _split_port(text: str) -> tuple[str, str]:
    text = text.strip().casefold()
    if text.startswith("["):
        host, _, after = text.partition("]")
        return host[1:], after.removeprefix(":")
    if text.count(":") > 1:
        return text, ""
    host, _, port = text.partition(":")
    return host, port


def _host_in_standard_form(host: str) -> str:
    """A name as programs look it up, also if its labels are written in ASCII: `xn--…`."""
    labels: list[str] = []
    for label in normalize("NFKC", host).casefold().replace("\u3002", ".").split("."):
        plain = label
        if label.startswith("xn--"):
            with suppress(UnicodeError):
                plain = normalize("NFKC", label[4:].encode("ascii").decode("punycode")).casefold()
        labels.append(plain)
    return ".".join(labels)


_IPV4_NUMBERS = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]+)){0,3}")


def _ip_in_standard_form(host: str) -> str:
    """An IPv4 address as four decimal numbers, also if it is written as one, in hex or in an IPv6 address."""
    with suppress(ValueError):
        if _IPV4_NUMBERS.fullmatch(host):
            # As inet_aton(3): a number is octal after a zero, and the last one fills what is left of the address.
            *first, last = (
                int(one, 0 if one.startswith("0x") else 8 if one[0] == "0" else 10) for one in host.split(".")
            )
            leading = sum(byte << 8 * (3 - at) for at, byte in enumerate(first))
            return str(ipaddress.IPv4Address(leading + last))
        ip = ipaddress.ip_address(host)
        return str((ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None) or ip)
    return host


_GLOB_TOKENS = re.compile(r"\*\*/?|\*|\?|\[[!^]?\]?(?:\[[:.=].*?[:.=]\]|[^\]/])*\]|.", re.DOTALL)
_ANY_CHAR = "any"
_STAR = "star"
_DEEP_STARS = ("**", "**/")
_STARS = (_STAR, *_DEEP_STARS)
_WILDCARD = re.compile(r"[*?[]")
_MAX_GLOB_CHARS = 600
"""Of both together; longer ones are taken to overlap."""


def globs_overlap(one: str, other: str, *, hides_dots: bool = False) -> bool:
    """Whether some path matches both; `**` crosses folders, a bracket stands for any one character.

    With `hides_dots` a wildcard that begins a name of `one` does not match a dot, as in a shell.
    """
    start, other_start = (_WILDCARD.split(pattern, maxsplit=1)[0] for pattern in (one, other))
    if not (start.startswith(other_start) or other_start.startswith(start)):
        return False
    if len(one) + len(other) > _MAX_GLOB_CHARS:
        return True
    left, right = _glob_tokens(one), _glob_tokens(other)

    @cache
    def overlap(i: int, j: int) -> bool:
        if i == len(left) or j == len(right):
            return all(token in _STARS for token in (*left[i:], *right[j:]))
        a, b = left[i], right[j]
        begins_names = i > 0 and j > 0 and left[i - 1] in ("/", "**/") and right[j - 1] in ("/", "**/")
        is_hidden = hides_dots and b == "." and begins_names
        if a in _STARS:
            return overlap(i + 1, j) or ((a != _STAR or b != "/") and not is_hidden and overlap(i, j + 1))
        if is_hidden and a == _ANY_CHAR:
            return False
        if b in _STARS:
            return overlap(i, j + 1) or ((b != _STAR or a != "/") and overlap(i + 1, j))
        is_same = "/" not in (a, b) if _ANY_CHAR in (a, b) else a == b
        return is_same and overlap(i + 1, j + 1)

    return overlap(0, 0)


def _glob_tokens(pattern: str) -> list[str]:
    tokens: list[str] = []
    for text in _GLOB_TOKENS.findall(pattern):
        if text == "*":
            tokens.append(_STAR)
        elif text == "?" or (len(text) > 1 and text not in _DEEP_STARS):
            tokens.append(_ANY_CHAR)
        else:
            tokens.append(text)
    return tokens
