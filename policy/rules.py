"""The user's rules as values: `tool` or `tool(pattern)`, in three lists. Reading them, not matching them."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

__all__ = [
    "ARGUMENT_ALIASES",
    "TOOL_ALIASES",
    "BadRule",
    "Rule",
    "Rules",
    "parse_rule",
    "parse_rules",
    "tool_named",
]

TOOL_ALIASES = {"read": "read_file", "write": "write_file", "edit": "edit_file"}
ARGUMENT_ALIASES = {"path": "file_path", "old": "old_string", "new": "new_string"}

# Servers call themselves and their tools what they like, with blanks and dots in it.
_SHAPE = re.compile(r"\s*(?P<tool>[\w.*-]+|(?i:mcp__)[^()\n]*?)\s*(?:\((?P<pattern>.*)\))?\s*\Z", re.DOTALL)

_SERVER = re.compile(r"mcp__(?:(?!__)[^*])+")


class BadRule(ValueError):
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


def tool_named(name: str) -> str:
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
        raise BadRule(f"{text!r} is no rule; write a tool name, or a tool name and a pattern: bash(git status*)")
    return Rule(tool_named(match["tool"]), match["pattern"], text.strip(), is_literal)


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
