"""The user's rules as values: `tool` or `tool(pattern)`, in three lists. Reading them, not matching them.

What a person allowed "always": rules that hold in the mode they were given in and in more permissive ones.

Whether a rule about hosts covers one: compared label by label, never as a piece of text.

Whether two patterns of file names can mean the same path. Looks at no file.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

__all__ = [
    "ARGUMENT_ALIASES",
    "TOOL_ALIASES",
    "Grant",
    "InvalidRule",
    "Rule",
    "Rules",
    "canonical_tool_name",
    "globs_overlap",
    "grant_applies",
    "matches_host",
    "minimal_grants",
    "parse_rule",
    "parse_rules",
]

TOOL_ALIASES = {"read": "read_file", "write": "write_file", "edit": "edit_file"}
ARGUMENT_ALIASES = {"path": "file_path", "old": "old_string", "new": "new_string"}

# Servers call themselves and their tools what they like, with blanks and dots in it.
_SHAPE = re.compile(r"\s*(?P<tool>[\w.*-]+|(?i:mcp__)[^()\n]*?)\s*(?:\((?P<pattern>.*)\))?\s*\Z", re.DOTALL)

_SERVER = re.compile(r"mcp__(?:(?!__)[^*])+")


class InvalidRule(ValueError):
    """A text is no rule; the message says which and what a rule looks like."""


@dataclass(frozen=True)
class Rule:
    """One rule; without a pattern it covers the whole tool."""

    tool: str
    """Lower case, alias resolved; may contain `*`."""
    pattern: str | None
    text: str
    """As written."""
    is_literal: bool = False
    """The pattern is one exact text, `*` included: what "always" at the prompt stores."""


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
        BadRule: it is not of the form `tool` or `tool(pattern)`.
    """
    match = _SHAPE.match(text)
    if match is None:
        raise InvalidRule(
            f"{text!r} is no rule; write a tool name, or a tool name and a pattern: bash(git status*)"
        )
    return Rule(canonical_tool_name(match["tool"]), match["pattern"], text.strip(), is_literal)


def parse_rules(*, allow: Iterable[str] = (), ask: Iterable[str] = (), deny: Iterable[str] = ()) -> Rules:
    """Read the three lists.

    Raises:
        BadRule: one of the texts is no rule.
    """
    strict = [
        tuple(rule for text in texts for rule in _with_all_of_a_server(parse_rule(text))) for texts in (ask, deny)
    ]
    return Rules(tuple(map(parse_rule, allow)), *strict)


def _with_all_of_a_server(rule: Rule) -> Iterator[Rule]:
    """The rule, and where it names a server alone another for its tools: it would hold nothing back otherwise."""
    yield rule
    if _SERVER.fullmatch(rule.tool):
        yield replace(rule, tool=f"{rule.tool}__*")


_HOLDS_IN: Mapping[str, frozenset[str]] = {
    "plan": frozenset(("plan", "default", "acceptEdits", "auto", "bypassPermissions")),
    "default": frozenset(("default", "acceptEdits", "auto", "bypassPermissions")),
    "acceptEdits": frozenset(("acceptEdits", "bypassPermissions")),
    "auto": frozenset(("auto", "bypassPermissions")),
    "bypassPermissions": frozenset(("bypassPermissions",)),
}
"""Mode a grant was given in: the modes it holds in. In dontAsk, which refuses what others ask, none does."""


@dataclass(frozen=True)
class Grant:
    """One answer "always"."""

    name: str
    """What a reason calls it, e.g. `grant 3 (this thread)`."""
    mode: str
    rules: tuple[Rule, ...]
    place: str = "."
    """Where its commands start, as `CallFacts.place` says it; they mean something else elsewhere."""


def grant_applies(grant: Grant, mode: str) -> bool:
    """Whether the grant speaks in this mode."""
    return mode in _HOLDS_IN.get(grant.mode, frozenset())


def minimal_grants(grants: Sequence[Grant], suffice: Callable[[Sequence[Grant]], bool]) -> Sequence[Grant]:
    """Those of the grants, which suffice together, that cannot be left out: the ones a reason names."""
    kept = list(grants)
    for grant in grants:
        others = [one for one in kept if one is not grant]
        if suffice(others):
            kept = others
    return kept


def matches_host(pattern: str, target: str, *, is_strict: bool) -> bool:
    """Compare `HOST` or `HOST:PORT` with a target of the same form, whose port is left out where it is usual.

    Without a port a rule that forbids (`is_strict`) holds for every port, one that allows for the usual one.
    A first label `*` stands for one label or more.
    """
    wanted, wanted_port = _split(pattern)
    host, port = _split(target)
    if wanted_port not in (port, "*") and (wanted_port or not is_strict):
        return False
    return _covers_labels(_labels(wanted), _labels(host))


def _split(text: str) -> tuple[str, str]:
    text = text.strip().casefold()
    if text.startswith("["):
        host, _, rest = text.partition("]")
        return host[1:], rest.removeprefix(":")
    if text.count(":") > 1:
        return text, ""
    host, _, port = text.partition(":")
    return host, port


def _labels(host: str) -> Sequence[str]:
    return host.removesuffix(".").split(".")


def _covers_labels(wanted: Sequence[str], labels: Sequence[str]) -> bool:
    if wanted[0] != "*":
        return wanted == labels
    rest = wanted[1:]
    return not rest or (len(labels) > len(rest) and labels[-len(rest) :] == rest)


_TOKENS = re.compile(r"\*\*/?|\*|\?|\[!?\]?[^\]/]*\]|.", re.DOTALL)
_ANY = "any"
_MANY = "many"
_CROSSING = ("**", "**/")
_STARS = (_MANY, *_CROSSING)
_MAX_CHARS = 600
"""Of both; what is longer is taken to meet."""


def globs_overlap(one: str, other: str, *, hides_dots: bool = False) -> bool:
    """Whether some path matches both; `**` crosses folders, a bracket stands for any one character.

    With `hides_dots` the wild signs that begin a name of `one` stand for no dot, as in a shell.
    """
    if len(one) + len(other) > _MAX_CHARS:
        return True
    left, right = _tokens(one), _tokens(other)

    @cache
    def meet(i: int, j: int) -> bool:
        if i == len(left) or j == len(right):
            return all(token in _STARS for token in (*left[i:], *right[j:]))
        a, b = left[i], right[j]
        is_hidden = hides_dots and b == "." and _begins_name(left, i) and _begins_name(right, j)
        if a in _STARS:
            return meet(i + 1, j) or (_passes(a, b) and not is_hidden and meet(i, j + 1))
        if is_hidden and a == _ANY:
            return False
        if b in _STARS:
            return meet(i, j + 1) or (_passes(b, a) and meet(i + 1, j))
        return _same(a, b) and meet(i + 1, j + 1)

    return meet(0, 0)


def _tokens(pattern: str) -> tuple[str, ...]:
    return tuple(_token(text) for text in _TOKENS.findall(pattern))


def _token(text: str) -> str:
    if text in _CROSSING:
        return text
    if text == "*":
        return _MANY
    return _ANY if text == "?" or len(text) > 1 else text


def _passes(star: str, other: str) -> bool:
    return star in _CROSSING or other != "/"


def _begins_name(tokens: tuple[str, ...], at: int) -> bool:
    return at > 0 and tokens[at - 1] in ("/", "**/")


def _same(a: str, b: str) -> bool:
    if _ANY in (a, b):
        return "/" not in (a, b)
    return a == b
