"""Whether a rule covers a call. Matching only: what follows from it is the chain's business."""

import re
import shlex
from collections.abc import Iterable
from functools import lru_cache
from posixpath import join, normpath

from policy.commands import everything_run
from policy.facts import CallFacts, PathFact, PolicySettings
from policy.rules import Rule
from policy.shell import ShellText, SimpleCommand

__all__ = ["allows", "covers_path_word", "covers_tool", "hidden_tools", "touches"]

_ALSO_READ = frozenset(("edit_file", "grep", "glob"))
"""Tools that show what is in a file: a deny of reading a path holds for them."""


def covers_tool(rule: Rule, tool: str) -> bool:
    """Whether the rule speaks about this tool at all."""
    return _text_pattern(rule.tool, is_literal=False).fullmatch(tool.casefold()) is not None


def hidden_tools(rules: Iterable[Rule], tools: Iterable[str]) -> frozenset[str]:
    """The tools that bare deny rules take away as a whole."""
    bare = [rule for rule in rules if rule.pattern is None]
    return frozenset(tool for tool in tools if any(covers_tool(rule, tool) for rule in bare))


def touches(rule: Rule, facts: CallFacts, settings: PolicySettings, text: ShellText | None) -> bool:
    """Whether any part of the call is covered: the reading of deny and ask rules."""
    if not covers_tool(rule, facts.tool):
        is_reading = rule.pattern is not None and facts.tool in _ALSO_READ and covers_tool(rule, "read_file")
        return is_reading and any(_covers_path(rule, path, facts, settings, is_strict=True) for path in facts.paths)
    if rule.pattern is None:
        return True
    if text is not None:
        runs = (*everything_run(text.commands), *text.commands, SimpleCommand((facts.command or "",)))
        return any(_covers_text(rule, command.text) for command in runs)
    if facts.paths:
        return any(_covers_path(rule, path, facts, settings, is_strict=True) for path in facts.paths)
    return _covers_text(rule, facts.signature)


def allows(
    rules: Iterable[Rule], facts: CallFacts, settings: PolicySettings, text: ShellText | None
) -> Rule | None:
    """The rule (one of them) by which every part of the call is covered: the reading of allow rules."""
    speaking = [rule for rule in rules if covers_tool(rule, facts.tool)]
    if text is not None:
        return _allows_commands(speaking, text)
    bare = next((rule for rule in speaking if rule.pattern is None), None)
    if bare is not None:
        return bare
    if not facts.paths:
        return next((rule for rule in speaking if _covers_text(rule, facts.signature)), None)
    covering = [
        next((rule for rule in speaking if _covers_path(rule, path, facts, settings, is_strict=False)), None)
        for path in facts.paths
    ]
    return None if None in covering else covering[0]


def covers_path_word(rule: Rule, word: str, facts: CallFacts, settings: PolicySettings) -> bool:
    """Whether a word of a command, taken as a path, is covered by a rule about reading paths."""
    if rule.pattern is None or not covers_tool(rule, "read_file"):
        return False
    pattern = _path_pattern(rule, facts, settings)
    spellings = {word, word.rpartition("=")[2]}
    return any(
        pattern.fullmatch(_absolute(spelling, facts, settings)) is not None for spelling in spellings if spelling
    )


def _allows_commands(rules: list[Rule], text: ShellText) -> Rule | None:
    if text.not_plain or not text.commands:
        return None
    covering = [
        next((rule for rule in rules if rule.pattern is None or _covers_command(rule, command)), None)
        for command in text.commands
    ]
    return None if None in covering else covering[0]


def _covers_command(rule: Rule, command: SimpleCommand) -> bool:
    """An exact rule is compared word by word: `rm a b` is not what `rm 'a b'` says."""
    if not rule.is_literal:
        return _covers_text(rule, command.text)
    try:
        return tuple(shlex.split(rule.pattern or "")) == command.words
    except ValueError:
        return False


def _covers_text(rule: Rule, text: str) -> bool:
    pattern = (rule.pattern or "").strip()
    return _text_pattern(pattern, is_literal=rule.is_literal).fullmatch(text) is not None


def _covers_path(
    rule: Rule, path: PathFact, facts: CallFacts, settings: PolicySettings, *, is_strict: bool
) -> bool:
    pattern = _path_pattern(rule, facts, settings)
    if pattern.fullmatch(str(path.resolved)):
        return True
    # A rule that forbids also holds for the name under which the path was given, whatever it links to.
    return is_strict and pattern.fullmatch(_absolute(path.given, facts, settings)) is not None


def _absolute(given: str, facts: CallFacts, settings: PolicySettings) -> str:
    base = str(facts.cwd or facts.workspace)
    return normpath(join(base, _at_home(given, settings)))


def _at_home(text: str, settings: PolicySettings) -> str:
    is_home = settings.home is not None and (text == "~" or text.startswith("~/"))
    return f"{settings.home}{text[1:]}" if is_home else text


def _path_pattern(rule: Rule, facts: CallFacts, settings: PolicySettings) -> re.Pattern[str]:
    pattern = _at_home((rule.pattern or "").strip().removeprefix("./"), settings)
    if pattern.endswith("/"):
        pattern += "**"
    return _compiled_path(str(facts.workspace).rstrip("/"), pattern, is_literal=rule.is_literal)


@lru_cache(maxsize=512)
def _compiled_path(workspace: str, pattern: str, *, is_literal: bool) -> re.Pattern[str]:
    prefix = "" if pattern.startswith("/") else re.escape(f"{workspace}/")
    if is_literal:
        return re.compile(prefix + re.escape(pattern))
    pieces = re.split(r"(^\*\*/|/\*\*/|/\*\*$|\*\*|\*|\?)", pattern)
    regex = {"**/": "(?:.*/)?", "/**/": "/(?:.*/)?", "/**": "(?:/.*)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile(prefix + "".join(regex.get(piece, re.escape(piece)) for piece in pieces), re.DOTALL)


@lru_cache(maxsize=512)
def _text_pattern(pattern: str, *, is_literal: bool) -> re.Pattern[str]:
    if is_literal:
        return re.compile(re.escape(pattern))
    if pattern.endswith(" *"):
        # "git status *" also covers "git status" alone, but not "git statusx".
        return re.compile(_starred(pattern[:-2]) + r"(?: .*)?", re.DOTALL)
    return re.compile(_starred(pattern), re.DOTALL)


def _starred(pattern: str) -> str:
    return ".*".join(re.escape(piece) for piece in pattern.split("*"))
