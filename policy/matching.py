"""Whether a rule covers a call. Matching only: what follows from it is the chain's business.

What a deny rule about reading hides from tools that look through many files.
"""

import re
import shlex
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import takewhile
from pathlib import PurePath
from posixpath import join, normpath

from policy.facts import CallFacts, PathFact, PolicySettings
from policy.rules import Rule, Rules, globs_overlap, matches_host
from policy.shell.commands import without_assignments, wrapped_commands
from policy.shell.programs import dangerous_options
from policy.shell.shell_text import ShellText, SimpleCommand

__all__ = [
    "covers_any_part",
    "exact_rule_paths",
    "filters_files",
    "find_allow_rule",
    "hidden_tools",
    "matches_tool",
    "may_read",
    "names_path",
    "rule_covers",
    "rule_folders",
]

_ABOUT_FILES = frozenset(("read_file", "write_file", "edit_file", "ls", "grep", "glob"))
_ALSO_READ = frozenset(("edit_file", "grep", "glob"))
"""Tools that show what is in a file: a deny of reading a path holds for them."""

_WILD = re.compile(r"[*?]")
_MAX_DEPTH = 8
_SHOWS_DOTS = re.compile("dotglob|GLOBIGNORE")
"""What lets a star of the shell stand for names that begin with a dot."""


def matches_tool(rule: Rule, tool: str) -> bool:
    """Whether the rule speaks about this tool at all."""
    return _text_pattern(rule.tool, is_literal=False).fullmatch(tool.casefold()) is not None


def _covers(rule: Rule, facts: CallFacts) -> bool:
    """Whether the rule speaks about the call's tool, by any of its names."""
    return matches_tool(rule, facts.tool) or (bool(facts.original_tool) and matches_tool(rule, facts.original_tool))


def hidden_tools(rules: Iterable[Rule], tools: Iterable[str]) -> frozenset[str]:
    """The tools that bare deny rules take away as a whole."""
    bare = [rule for rule in rules if rule.pattern is None]
    return frozenset(tool for tool in tools if any(matches_tool(rule, tool) for rule in bare))


def rule_covers(rule: Rule, facts: CallFacts, settings: PolicySettings, *, is_strict: bool) -> bool:
    """Whether the rule covers the call, in the reading of deny and ask rules, or of allow rules."""
    if is_strict:
        return covers_any_part(rule, facts, settings, facts.shell)
    return find_allow_rule([rule], facts, settings, facts.shell) is not None


def covers_any_part(rule: Rule, facts: CallFacts, settings: PolicySettings, text: ShellText | None) -> bool:
    """Whether any part of the call is covered: the reading of deny and ask rules."""
    if not _covers(rule, facts):
        is_reading = rule.pattern is not None and facts.tool in _ALSO_READ and matches_tool(rule, "read_file")
        return is_reading and any(_covers_path(rule, path, facts, settings, is_strict=True) for path in facts.paths)
    if rule.pattern is None:
        return True
    if text is not None:
        runs = (*text.runs, *text.commands, SimpleCommand((facts.command or "",)))
        return any(_covers_text(rule, command.text) for command in runs)
    if facts.paths:
        return any(_covers_path(rule, path, facts, settings, is_strict=True) for path in facts.paths)
    return _covers_signature(rule, facts, is_strict=True)


def find_allow_rule(
    rules: Iterable[Rule], facts: CallFacts, settings: PolicySettings, text: ShellText | None
) -> Rule | None:
    """The rule (one of them) by which every part of the call is covered: the reading of allow rules."""
    speaking = [rule for rule in rules if _covers(rule, facts)]
    if text is not None:
        return _allows_commands(speaking, facts, text)
    bare = next((rule for rule in speaking if rule.pattern is None), None)
    if bare is not None:
        return bare
    if not facts.paths:
        return next((rule for rule in speaking if _covers_signature(rule, facts, is_strict=False)), None)
    covering = [
        next((rule for rule in speaking if _covers_path(rule, path, facts, settings, is_strict=False)), None)
        for path in facts.paths
    ]
    return None if None in covering else covering[0]


def exact_rule_paths(rules: Iterable[Rule], workspace: PurePath, home: PurePath | None) -> tuple[PurePath, ...]:
    """The paths that rules name exactly, absolute."""
    places = _named_places(rules, workspace, home)
    return tuple(base / rest for base, rest in places if rest and not _WILD.search(rest))


def rule_folders(
    rules: Iterable[Rule], workspace: PurePath, home: PurePath | None
) -> tuple[tuple[PurePath, tuple[str, ...]], ...]:
    """The folders below which rules name paths, absolute: as deep as their names hold no wild sign; with the names
    behind, of which the first holds one unless it is the last."""
    found: dict[tuple[PurePath, tuple[str, ...]], None] = {}
    for base, rest in _named_places(rules, workspace, home):
        parts = PurePath(rest).parts
        plain = tuple(takewhile(lambda part: not _WILD.search(part), parts[:-1]))
        found[base.joinpath(*plain), parts[len(plain) :]] = None
    return tuple(found)


def _named_places(
    rules: Iterable[Rule], workspace: PurePath, home: PurePath | None
) -> Iterator[tuple[PurePath, str]]:
    speaking = (rule.pattern for rule in rules if rule.pattern and rule.tool in _ABOUT_FILES)
    return (_placed(pattern, workspace, home) for pattern in speaking)


def names_path(rule: Rule, facts: CallFacts, settings: PolicySettings, text: ShellText) -> bool:
    """Whether a command names a path that a rule about files covers: by a word, a pattern, a redirection."""
    pattern = _path_pattern(rule, facts, settings)
    written = any(_covers_path(rule, path, facts, settings, is_strict=True) for path in facts.redirects)
    if written and any(matches_tool(rule, tool) for tool in ("write_file", "edit_file", "read_file")):
        return True
    if not matches_tool(rule, "read_file"):
        return False
    if any(pattern.fullmatch(str(path)) for path in facts.mentions):
        return True
    spellings = {form for word in _words(text) for form in (word, word.rpartition("=")[2]) if form}
    return any(pattern.fullmatch(_absolute(form, facts, settings)) for form in spellings) or _may_name(
        rule, facts, settings, text
    )


def _words(text: ShellText) -> set[str]:
    return {word for command in (*text.runs, *text.commands) for word in command.words} | set(text.read)


def _may_name(rule: Rule, facts: CallFacts, settings: PolicySettings, text: ShellText) -> bool:
    """Whether the names of files that may take a pattern's place include one the rule covers."""
    words = {command.words[at] for command in text.commands for at in command.patterns}
    names = {*(_absolute(word, facts, settings) for word in words), *map(str, facts.patterns)}
    base, rest = _placed(rule.pattern or "", facts.workspace, settings.home)
    hides_dots = not _SHOWS_DOTS.search(facts.command or "")
    return any(globs_overlap(name, str(base / rest), hides_dots=hides_dots) for name in names)


def _allows_commands(rules: list[Rule], facts: CallFacts, text: ShellText) -> Rule | None:
    if text.unclear_reason or not text.commands or not all(path.inside for path in facts.redirects):
        return None
    covering = [_covers_command(rules, command) for command in text.commands]
    return None if None in covering else covering[0]


def _covers_command(rules: list[Rule], command: SimpleCommand, depth: int = 0) -> Rule | None:
    """The rule that covers a command; what a wrapper runs must be covered as well."""
    rule = next((rule for rule in rules if _allows_words(rule, command)), None)
    own = without_assignments(command.words)
    if rule is None or not own or _is_boundless(rule):
        return rule
    inner = wrapped_commands(own) if depth < _MAX_DEPTH else None
    if inner is None:
        return next(filter(_is_boundless, rules), None)
    return rule if all(_covers_command(rules, SimpleCommand(words), depth + 1) for words in inner) else None


def _allows_words(rule: Rule, command: SimpleCommand) -> bool:
    """Whether a rule means this command: its stars do not reach options that make a program write or run others."""
    if rule.is_literal and rule.pattern is not None:
        return _is_exactly(rule.pattern, command)
    if _is_boundless(rule):
        return True
    if not _covers_text(rule, command.text):
        return False
    own = without_assignments(command.words)
    said = (rule.pattern or "").replace("*", " ").split()
    return not own or all(_is_said(option, said) for option in dangerous_options(own[0], own[1:]))


def _is_exactly(pattern: str, command: SimpleCommand) -> bool:
    """An exact rule is compared word by word: `rm 'a b'` does not say `rm a b`, nor `rm '*'` what `rm *` says."""
    try:
        return not command.patterns and tuple(shlex.split(pattern)) == command.words
    except ValueError:
        return False


def _is_said(option: str, said: list[str]) -> bool:
    return option in said or (
        option.startswith("-") and option.partition("=")[0] in (word.rstrip("=") for word in said)
    )


def _is_boundless(rule: Rule) -> bool:
    return rule.pattern is None or (not rule.is_literal and rule.pattern.strip() == "*")


def _covers_text(rule: Rule, text: str) -> bool:
    pattern = (rule.pattern or "").strip()
    return _text_pattern(pattern, is_literal=rule.is_literal).fullmatch(text) is not None


def _covers_signature(rule: Rule, facts: CallFacts, *, is_strict: bool) -> bool:
    if facts.hosts:
        covered = [matches_host(rule.pattern or "", host, is_strict=is_strict) for host in facts.hosts]
        return any(covered) if is_strict else all(covered)
    return _covers_text(rule, facts.signature)


def _covers_path(
    rule: Rule, path: PathFact, facts: CallFacts, settings: PolicySettings, *, is_strict: bool
) -> bool:
    if not is_strict and ".." in PurePath(rule.pattern or "").parts:
        return False  # What is allowed is named plainly.
    pattern = _path_pattern(rule, facts, settings)
    if pattern.fullmatch(str(path.resolved)):
        return True
    # A rule that forbids also holds for the name under which the path was given, and for others of the same object.
    names = (_absolute(path.given, facts, settings), *map(str, path.others))
    return is_strict and any(pattern.fullmatch(name) for name in names)


def _absolute(given: str, facts: CallFacts, settings: PolicySettings) -> str:
    base = str(facts.cwd or facts.workspace)
    return normpath(join(base, _at_home(given, settings)))


def _at_home(text: str, settings: PolicySettings) -> str:
    return _below_home(text, settings.home)


def _below_home(text: str, home: PurePath | None) -> str:
    return f"{home}{text[1:]}" if home is not None and (text == "~" or text.startswith("~/")) else text


def _path_pattern(rule: Rule, facts: CallFacts, settings: PolicySettings) -> re.Pattern[str]:
    base, rest = _placed(rule.pattern or "", facts.workspace, settings.home)
    return _compiled_path(str(base).rstrip("/"), rest, is_literal=rule.is_literal)


@lru_cache(maxsize=512)
def _placed(pattern: str, workspace: PurePath, home: PurePath | None) -> tuple[PurePath, str]:
    """The folder a rule's path is seen from, and the rest of the path without dots: wild signs and all."""
    path = _below_home(pattern.strip(), home)
    base = PurePath("/") if path.startswith("/") else workspace
    rest = normpath(path.strip("/"))
    while rest.partition("/")[0] == "..":
        base, rest = base.parent, rest[3:] or "."
    return base, "/".join((*PurePath(rest).parts, *(("**",) if path.endswith("/") else ())))


@lru_cache(maxsize=512)
def _compiled_path(base: str, pattern: str, *, is_literal: bool) -> re.Pattern[str]:
    prefix = re.escape(f"{base}/")
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


def filters_files(rules: Rules) -> bool:
    """Whether any rule could hide a file; where none does, nobody need ask about each."""
    return any(rule.pattern is not None and matches_tool(rule, "read_file") for rule in rules.deny)


def may_read(path: PurePath, *, workspace: PurePath, rules: Rules, home: PurePath | None = None) -> bool:
    """Whether no `deny read_file(PATH)` covers a resolved path.

    A rule without a path takes the tool read_file away and says nothing about files.
    """
    facts = CallFacts(
        "read_file",
        "default",
        "low",
        "readonly",
        workspace,
        paths=(PathFact(str(path), path, "read", inside=True),),
    )
    settings = PolicySettings(rules=rules, home=home)
    return not any(rule.pattern is not None and covers_any_part(rule, facts, settings, None) for rule in rules.deny)
