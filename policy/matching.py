"""Whether a rule covers a call, or a part of it. `policy.chain` decides what follows from that."""

import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile
from pathlib import PurePath
from posixpath import join, normpath
from typing import Literal, NamedTuple

from policy.facts import CallFacts, PathFact, PolicySettings
from policy.rules import Rule, matches_host, spellings
from policy.shell.arguments import (
    file_operands,
    only_reads,
    read_command,
    takes_code_from_input,
    uncovered_arguments,
)
from policy.shell.commands import without_assignments, wrapped_commands
from policy.shell.shell_text import ShellText, SimpleCommand

__all__ = [
    "ACCESS_RULES",
    "ClosedPath",
    "absolute_path",
    "closed_paths",
    "command_folders",
    "covers_any_name",
    "covers_any_part",
    "covers_any_path",
    "exact_rule_paths",
    "find_allow_rule",
    "hidden_tools",
    "is_about_access",
    "matches_tool",
    "rule_covers",
    "rule_folders",
    "split_pattern",
    "unclear_reason",
]

_FILE_TOOLS = frozenset(("read_file", "write_file", "edit_file", "ls", "grep", "glob"))
_READ_RULES = ("read_file",)
_WRITE_RULES = ("write_file", "edit_file")
ACCESS_RULES = (*_READ_RULES, *_WRITE_RULES, "web_fetch", "bash")
"""Names of tools whose deny and ask rules apply to an access, whichever tool makes it: reading a path, writing
one, contacting a host, running a command."""
_WILDCARD = re.compile(r"[*?]")
_MAX_DEPTH = 8


def matches_tool(rule: Rule, tool: str) -> bool:
    """Whether the rule is about this tool at all."""
    return _text_pattern(rule.tool, is_literal=False).fullmatch(tool.casefold()) is not None


def hidden_tools(rules: Iterable[Rule], tools: Iterable[str]) -> frozenset[str]:
    """The tools that deny rules without a pattern disable entirely."""
    bare = [rule for rule in rules if rule.pattern is None]
    return frozenset(tool for tool in tools if any(matches_tool(rule, tool) for rule in bare))


def rule_covers(rule: Rule, facts: CallFacts, settings: PolicySettings, *, is_strict: bool) -> bool:
    """Whether the rule covers the call, as a deny or ask rule (`is_strict`) or as an allow rule."""
    if is_strict:
        return covers_any_part(rule, facts, settings, facts.shell)
    return find_allow_rule([rule], facts, settings, facts.shell) is not None


def covers_any_part(rule: Rule, facts: CallFacts, settings: PolicySettings, text: ShellText | None) -> bool:
    """Whether the rule covers any part of the call, which is enough for deny and ask rules."""
    is_about = _is_about(rule, facts)
    if is_about and rule.pattern is None:
        return True
    if text is not None and (is_about or matches_tool(rule, "bash")):
        runs = (*text.runs, *text.commands, SimpleCommand((facts.command or "",)))
        if rule.pattern is None or any(
            _covers_text(rule, form) for command in runs for form in spellings(command.text)
        ):
            return True
    hosts = facts.hosts if is_about or matches_tool(rule, "web_fetch") else ()
    if any(rule.pattern is None or matches_host(rule.pattern, host, is_strict=True) for host in hosts):
        return True
    paths = [path for path in facts.paths if is_about or is_about_access(rule, path.access)]
    if paths and (rule.pattern is None or covers_any_path(rule, paths, facts, settings)):
        return True
    declares_nothing = text is None and not facts.hosts and not facts.paths
    return is_about and declares_nothing and any(_covers_text(rule, form) for form in spellings(facts.signature))


def is_about_access(rule: Rule, access: Literal["read", "write", "edit"]) -> bool:
    """Whether a rule is about reading, or about writing, where a path is accessed in this way."""
    names = {"read": _READ_RULES, "write": _WRITE_RULES, "edit": (*_READ_RULES, *_WRITE_RULES)}[access]
    return any(matches_tool(rule, name) for name in names)


def find_allow_rule(
    rules: Iterable[Rule], facts: CallFacts, settings: PolicySettings, text: ShellText | None
) -> Rule | None:
    """One of the allow rules if together they cover every part of the call; otherwise None."""
    rules = [rule for rule in rules if _is_about(rule, facts)]
    if text is not None:
        if unclear_reason(facts, text) or not text.commands or not all(path.inside for path in facts.redirects):
            return None
        covering = [
            _rule_for_command([rule for rule in rules if _holds_there(rule, command, facts)], command, facts)
            for command in text.commands
        ]
    elif bare := next((rule for rule in rules if rule.pattern is None), None):
        return bare
    elif facts.paths:
        covering = [_rule_for_path(rules, path, facts, settings) for path in facts.paths]
    else:
        return next((rule for rule in rules if _allows_signature(rule, facts)), None)
    return None if None in covering else covering[0]


def _is_about(rule: Rule, facts: CallFacts) -> bool:
    """Whether the rule is about the call's tool, by any of its names."""
    return matches_tool(rule, facts.tool) or (bool(facts.original_tool) and matches_tool(rule, facts.original_tool))


# Commands


def unclear_reason(facts: CallFacts, text: ShellText) -> str:
    """Why no rule can allow a command: it is not clear, or it works outside the workspace; empty if one can."""
    if text.unclear_reason:
        return text.unclear_reason
    inside = {folder.given for folder in facts.folders if folder.inside}
    for command in text.commands:
        for folder in command.folders:
            if folder and folder not in inside:
                place = next((str(one.resolved) for one in facts.folders if one.given == folder), "")
                where = f"{place}, outside the workspace" if place else f"{folder}, which may lead elsewhere"
                return f"{command.words[0]} would work in {where}"
            if folder is None:
                return f"the folder in which {command.words[0]} would work is not known"
    return ""


def command_folders(command: SimpleCommand, facts: CallFacts) -> frozenset[str]:
    """The folders in which a command works, as `Rule.folders` has them; the call is clear."""
    places = {folder.given: facts.relative(folder.resolved) for folder in facts.folders}
    return frozenset(places[folder] if folder else facts.folder for folder in command.folders)


def _holds_there(rule: Rule, command: SimpleCommand, facts: CallFacts) -> bool:
    return rule.folders is None or rule.folders == command_folders(command, facts)


def _rule_for_command(rules: list[Rule], command: SimpleCommand, facts: CallFacts, depth: int = 0) -> Rule | None:
    """The rule that covers a command; what a wrapper runs must be covered as well, unless the rule names it all."""
    rule = next((rule for rule in rules if _allows_words(rule, command, facts)), None)
    own = without_assignments(command.words)
    if rule is None or not own or rule.is_literal or _is_unlimited(rule):
        return rule
    inner = wrapped_commands(own) if depth < _MAX_DEPTH else None
    if inner is None:
        return next(filter(_is_unlimited, rules), None)
    return (
        rule
        if all(_rule_for_command(rules, replace(command, words=words), facts, depth + 1) for words in inner)
        else None
    )


def _allows_words(rule: Rule, command: SimpleCommand, facts: CallFacts) -> bool:
    """Whether a rule means this command.

    Its stars do not match options that make a program write or run others, nor protected names where the program
    may write, and it says nothing about code that the program takes from its input.
    """
    if rule.is_literal and rule.pattern is not None:
        # Compared word by word: `rm 'a b'` does not mean `rm a b`, nor `rm '*'` what `rm *` does.
        try:
            return not command.patterns and tuple(shlex.split(rule.pattern)) == command.words
        except ValueError:
            return False
    if _is_unlimited(rule):
        return True
    if command.leads_elsewhere or not _covers_text(rule, command.text):
        return False
    own = without_assignments(command.words)
    return not own or _stars_are_harmless(rule, own, command, facts)


def _stars_are_harmless(rule: Rule, own: tuple[str, ...], command: SimpleCommand, facts: CallFacts) -> bool:
    """Whether nothing that the rule does not name itself makes the command do more than its program does."""
    named = (rule.pattern or "").replace("*", " ").split()
    stems = {word.rstrip("=") for word in named}
    for option in uncovered_arguments(own):
        is_named = option in named or (option.startswith("-") and option.partition("=")[0] in stems)
        if not (is_named or _names_subcommand(rule, own, option)):
            return False
    if only_reads(own):
        return True
    # What a script is given from elsewhere may be run as well.
    runs_outside = read_command(own).row.effect == "script" and any(
        word in facts.outside_words and word not in named for word in own[1:]
    )
    if runs_outside:
        return False
    if (command.is_piped or command.stdin) and takes_code_from_input(own):
        return False
    return not any(word in facts.protected_words and word not in named for word in file_operands(own))


def _names_subcommand(rule: Rule, own: tuple[str, ...], word: str) -> bool:
    """Whether the rule names the subcommand in part, or what has to follow it: `git sta*`, `git * main`."""
    names = (rule.pattern or "").split()
    if own[1:2] != (word,) or not re.fullmatch(r"[a-z][\w-]*", word) or len(names) < 2:
        return False
    return len(names) > 2 or not names[1].startswith("*")


def _is_unlimited(rule: Rule) -> bool:
    return rule.pattern is None or (not rule.is_literal and rule.pattern.strip() == "*")


def _covers_text(rule: Rule, text: str) -> bool:
    pattern = (rule.pattern or "").strip()
    return _text_pattern(pattern, is_literal=rule.is_literal).fullmatch(text) is not None


def _allows_signature(rule: Rule, facts: CallFacts) -> bool:
    if facts.hosts:
        return all(matches_host(rule.pattern or "", host, is_strict=False) for host in facts.hosts)
    return _covers_text(rule, facts.signature)


@lru_cache(maxsize=512)
def _text_pattern(pattern: str, *, is_literal: bool) -> re.Pattern[str]:
    if is_literal:
        return re.compile(re.escape(pattern))
    # "git status *" also covers "git status" alone, but not "git statusx".
    stem, ending = (pattern[:-2], "(?: .*)?") if pattern.endswith(" *") else (pattern, "")
    return re.compile(".*".join(map(re.escape, stem.split("*"))) + ending, re.DOTALL)


# Paths


def covers_any_path(rule: Rule, paths: Iterable[PathFact], facts: CallFacts, settings: PolicySettings) -> bool:
    """Under its resolved name, the name it was given by, or another name of the same object."""
    names = (
        name
        for path in paths
        for name in (str(path.resolved), absolute_path(path.given, facts, settings), *map(str, path.aliases))
    )
    return covers_any_name(rule, names, facts, settings)


def covers_any_name(rule: Rule, names: Iterable[str], facts: CallFacts, settings: PolicySettings) -> bool:
    """Whether a deny or ask rule covers a path, in any spelling that some file system takes for the same."""
    base, relative = split_pattern(rule.pattern or "", facts.workspace, settings.home)
    patterns = _path_patterns(base, relative, is_literal=rule.is_literal)
    return any(pattern.fullmatch(form) for name in names for form in spellings(name) for pattern in patterns)


def _path_patterns(base: PurePath, relative: str, *, is_literal: bool) -> tuple[re.Pattern[str], ...]:
    forms = spellings(str(base))
    return tuple(_compiled_path(form.rstrip("/"), relative, is_literal=is_literal) for form in forms)


def _rule_for_path(rules: list[Rule], path: PathFact, facts: CallFacts, settings: PolicySettings) -> Rule | None:
    """The rule that allows the resolved name; one with `..` allows nothing, as it may lead anywhere."""
    for rule in rules:
        is_plain = ".." not in PurePath(rule.pattern or "").parts
        if is_plain and _path_pattern(rule, facts, settings).fullmatch(str(path.resolved)):
            return rule
    return None


def absolute_path(given: str, facts: CallFacts, settings: PolicySettings) -> str:
    """A path as it is given, from where the call's command starts; links in it are not followed."""
    return normpath(join(str(facts.cwd or facts.workspace), _expand_home(given, settings.home)))


def _expand_home(text: str, home: PurePath | None) -> str:
    return f"{home}{text[1:]}" if home is not None and (text == "~" or text.startswith("~/")) else text


def _path_pattern(rule: Rule, facts: CallFacts, settings: PolicySettings) -> re.Pattern[str]:
    base, relative = split_pattern(rule.pattern or "", facts.workspace, settings.home)
    return _compiled_path(str(base).rstrip("/"), relative, is_literal=rule.is_literal)


@lru_cache(maxsize=512)
def split_pattern(pattern: str, workspace: PurePath, home: PurePath | None) -> tuple[PurePath, str]:
    """The folder that a rule's path is relative to, and the path from there, without `.` and `..`."""
    path = _expand_home(pattern.strip(), home)
    base = PurePath("/") if path.startswith("/") else workspace
    relative = normpath(path.strip("/"))
    while relative.partition("/")[0] == "..":
        base, relative = base.parent, relative[3:] or "."
    return base, "/".join((*PurePath(relative).parts, *(("**",) if path.endswith("/") else ())))


@lru_cache(maxsize=512)
def _compiled_path(base: str, pattern: str, *, is_literal: bool) -> re.Pattern[str]:
    prefix = re.escape(f"{base}/")
    if is_literal:
        return re.compile(prefix + re.escape(pattern))
    pieces = re.split(r"(^\*\*/|/\*\*/|/\*\*$|\*\*|\*|\?)", pattern)
    regex = {"**/": "(?:.*/)?", "/**/": "/(?:.*/)?", "/**": "(?:/.*)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile(prefix + "".join(regex.get(piece, re.escape(piece)) for piece in pieces), re.DOTALL)


@lru_cache(maxsize=64)
def exact_rule_paths(rules: tuple[Rule, ...], workspace: PurePath, home: PurePath | None) -> tuple[PurePath, ...]:
    """The paths that rules name without a wildcard, absolute."""
    places = _rule_places(rules, workspace, home)
    return tuple(base / relative for base, relative in places if relative and not _WILDCARD.search(relative))


@lru_cache(maxsize=64)
def rule_folders(
    rules: tuple[Rule, ...], workspace: PurePath, home: PurePath | None
) -> tuple[tuple[PurePath, tuple[str, ...]], ...]:
    """The folders below which rules name paths, absolute, each with the names that follow.

    A folder reaches as deep as its names hold no wildcard: the first name that follows has one, or is the last.
    """
    found: dict[tuple[PurePath, tuple[str, ...]], None] = {}
    for base, relative in _rule_places(rules, workspace, home):
        parts = PurePath(relative).parts
        plain = tuple(takewhile(lambda part: not _WILDCARD.search(part), parts[:-1]))
        found[base.joinpath(*plain), parts[len(plain) :]] = None
    return tuple(found)


def _rule_places(
    rules: Iterable[Rule], workspace: PurePath, home: PurePath | None
) -> Iterator[tuple[PurePath, str]]:
    patterns = (
        rule.pattern for rule in rules if rule.pattern and any(matches_tool(rule, tool) for tool in _FILE_TOOLS)
    )
    return (split_pattern(pattern, workspace, home) for pattern in patterns)


class ClosedPath(NamedTuple):
    """What a deny rule closes, whichever tool or program would use it."""

    rule: str
    """As written."""
    access: Literal["read", "write"]
    """A path that is closed for reading is not to be written either."""
    folder: PurePath
    """Absolute: as much of the path as holds no wildcard."""
    names: tuple[str, ...]
    """What follows, from the first wildcard on."""
    patterns: tuple[re.Pattern[str], ...]

    def covers(self, path: str) -> bool:
        """Whether an absolute path is closed."""
        return any(pattern.fullmatch(form) for form in spellings(path) for pattern in self.patterns)

    def covers_all_in(self, folder: str) -> bool:
        """Whether everything in a folder is closed, however deep."""
        return self.covers(f"{folder}/{_ANY_NAME}") and self.covers(f"{folder}/{_ANY_NAME}/{_ANY_NAME}")


_ANY_NAME = "\0" * 256
"""Longer than a name can be, and of a sign that none contains, so that only a star matches it."""


def closed_paths(deny: Iterable[Rule], workspace: PurePath, home: PurePath | None) -> tuple[ClosedPath, ...]:
    """What deny rules close; one without a path takes a tool away and says nothing about files."""
    found: dict[ClosedPath, None] = {}
    for rule in deny:
        is_for_reading = is_about_access(rule, "read")
        if rule.pattern is None or not (is_for_reading or is_about_access(rule, "write")):
            continue
        base, relative = split_pattern(rule.pattern, workspace, home)
        parts = PurePath(relative).parts
        plain = tuple(takewhile(lambda part: not _WILDCARD.search(part), parts))
        access: Literal["read", "write"] = "read" if is_for_reading else "write"
        place, patterns = base.joinpath(*plain), _path_patterns(base, relative, is_literal=rule.is_literal)
        found[ClosedPath(rule.text, access, place, parts[len(plain) :], patterns)] = None
    return tuple(found)
