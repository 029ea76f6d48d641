"""The facts about a call that policy evaluates: where its paths lead, its command, the hosts it contacts."""

import os
import re
import stat
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import islice, takewhile
from os.path import normpath
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from graph_agent.calls import CallKind
from graph_agent.ports import Scope
from policy import (
    PROTECTED_FILES,
    PROTECTED_FOLDERS,
    CallFacts,
    PathFact,
    PolicySettings,
    Risk,
    Sandboxing,
    ShellText,
    exact_rule_paths,
    globs_overlap,
    host_access,
    is_protected_in,
    is_reserved,
    parse_shell,
    risk_of,
    rule_folders,
    unparsed_shell,
)
from tools.base import BaseTool, CommandTarget, HostPermission, HostTarget, PathTarget, Target, ToolKind
from tools.paths import PathRefused, given_path, resolve, resolve_target
from tools.registry import Origin, is_available_in_plan_mode
from tools.sandbox import Sandbox
from tools.shell_ops.bash_parser import parse_bash

__all__ = [
    "CommandFacts",
    "PolicyContext",
    "RuleNames",
    "Targets",
    "call_facts",
    "command_facts",
    "find_glob_links",
    "format_command",
    "host_permission",
    "kind_of",
    "names_in_rules",
    "other_names",
    "path_fact",
    "resolve_targets",
    "shell_folder",
    "tool_risk",
    "with_command",
]

_WILDCARDS = {"*": ".*", "?": "."}
_MAX_FOLDERS = 500
"""Folders that are searched for one rule."""
_MAX_MENTIONS = 5_000
"""Words that are looked up; a text that can be plain at all is too short to have more."""
_HOME_VARIABLE = re.compile(r"\$(?:HOME\b|\{HOME\})")
_HERE = re.compile(r"(?:\$PWD\b|\$\{PWD\}|\$\(pwd\)|`pwd`|~\+|/proc/(?:self|thread-self|\d+|\$\$)/cwd)(?=/|$)")
"""Ways to write the folder in which a command is."""
_PROCESS_FOLDER = re.compile(r"/proc/\d+/cwd(?=/|$)")
"""Of them the one that may also be the folder of another process."""
_PATH_SIGNS = re.compile(r"[=@:,;]")
_SED_FILE = re.compile(r"(?:^|[/|,;}\s])[rRwW]\s*(?=\S)")
"""What stands before the name of a file in a script of sed."""
_BRACKETS = re.compile(r"\[[!^]?\]?(?:\[[:.=].*?[:.=]\]|[^\]])*\]")
"""A set of characters in a pattern, which may name a class: `[[:lower:]]`."""
_MAX_BUNDLE = 5
"""Letters of short options before a value in the same word: `-vfPATH`."""
_MAX_PARTS = 8
"""Of a word, each of which may be a path."""
_PATTERN = re.compile(r"[*?[]")
_NOWHERE = frozenset(("/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr"))
_NOT_BASH = "it is not written for bash, and nothing here can read it"


class PolicyContext(NamedTuple):
    """What policy evaluates every call of a session with."""

    workspace: Path
    policy: PolicySettings
    roots: tuple[Path, ...] = ()
    """Folders beside the workspace that count as inside."""
    sandbox: Sandbox | None = None
    """The sandbox that commands run in; None without one."""

    def sandboxing(self) -> Sandboxing:
        """What policy has to know of it; the first look in a process takes some milliseconds."""
        if self.sandbox is None or not self.sandbox.is_available:
            return "none"
        return "open" if self.sandbox.rules.network else "closed"


class CommandFacts(NamedTuple):
    """What policy needs to know about a command."""

    target: CommandTarget
    shell: ShellText
    redirects: tuple[PathFact, ...]
    mentions: tuple[PurePath, ...]
    cwd: Path
    patterns: tuple[PurePath, ...]
    protected_words: frozenset[str]
    """Those that lead to protected names."""
    outside_words: frozenset[str]
    """Those that lead out of the workspace."""
    folders: tuple[PathFact, ...]


class Targets(NamedTuple):
    """What a call names, as the file system has it now. Two that are equal give the same facts."""

    paths: tuple[PathFact, ...]
    files: tuple[tuple[int, ...] | None, ...]
    """For each path what identifies its file and the version of it; None if there is no file."""
    hosts: tuple[str, ...]
    command: CommandFacts | None


class RuleNames(NamedTuple):
    """What the `deny` and `ask` rules name in the file system."""

    files: tuple[PurePath, ...]
    """Those named exactly."""
    links: tuple[tuple[PurePath, PurePath], ...]
    """What is named by way of a link, or lies below it: the real path of each, and what the rules call it."""


def call_facts(
    tool: BaseTool,
    arguments: Mapping[str, Any],
    scope: Scope,
    context: PolicyContext,
    origin: Origin | None,
    resolved: Targets | None = None,
) -> CallFacts:
    """The facts about one validated call; `resolved` are its targets if they were looked up already.

    Raises:
        PathRefused: a path it names cannot be resolved.
    """
    targets = resolved or resolve_targets(tool.targets(arguments), scope.cwd, context)
    cwd = shell_folder(scope.cwd, context)
    facts = CallFacts(
        tool=tool.name,
        mode=scope.mode,
        risk=tool_risk(tool, origin, context.policy),
        kind=kind_of(tool, arguments),
        workspace=context.workspace,
        original_tool=tool.rule_name,
        allowed_in_plan_mode=is_available_in_plan_mode(tool),
        requires_input=tool.requires_input,
        cwd=cwd,
        paths=targets.paths,
        declares_access=origin == "builtin" or bool(targets.paths or targets.hosts or targets.command),
        hosts=targets.hosts,
        signature=targets.hosts[0] if targets.hosts else tool.signature(arguments),
    )
    if targets.command is None:
        return facts
    # Plug-ins and servers start their commands themselves, outside of the sandbox.
    sandbox = context.sandboxing() if origin == "builtin" else "none"
    return replace(with_command(facts, targets.command), sandbox=sandbox)


def shell_folder(cwd: str, context: PolicyContext) -> Path | None:
    """The current folder of a thread's shell; None for the workspace.

    A folder elsewhere counts for nothing: the thread has moved, or came from a file that names it.
    """
    with suppress(PathRefused, TypeError):
        if cwd and resolve(cwd, workspace=context.workspace, roots=context.roots).inside:
            return Path(cwd)
    return None


def with_command(facts: CallFacts, command: CommandFacts) -> CallFacts:
    """The facts with those about the call's command."""
    return replace(
        facts,
        command=command.target.text,
        cwd=command.cwd if command.target.working_directory else facts.cwd,
        shell=command.shell,
        redirects=command.redirects,
        mentions=command.mentions,
        patterns=command.patterns,
        protected_words=command.protected_words,
        outside_words=command.outside_words,
        folders=command.folders,
    )


def kind_of(tool: BaseTool, arguments: Mapping[str, Any]) -> CallKind:
    """The kind of this very call."""
    if tool.is_read_only(arguments):
        return "readonly"
    return "write" if tool.kind == ToolKind.WRITE else "execute"


def tool_risk(tool: BaseTool, origin: Origin | None, policy: PolicySettings) -> Risk:
    """The risk of a registered tool's calls.

    The risk that the user configured for a server's tool is believed. What a plug-in says about itself is not.
    """
    is_own = origin == "builtin" or (origin == "mcp" and tool.risk_is_configured)
    return risk_of(tool.name, str(tool.risk_level), is_own=is_own, settings=policy.risk)


def resolve_targets(targets: Sequence[Target], cwd: str, context: PolicyContext) -> Targets:
    """Look up what a call names.

    Raises:
        PathRefused: a path, or the folder of a command, cannot be resolved.
    """
    paths: list[PathFact] = []
    files: list[tuple[int, ...] | None] = []
    hosts: list[str] = []
    commands: list[CommandTarget] = []
    for target in targets:
        match target:
            case PathTarget():
                for text in _readings(target.text, context):
                    paths.append(path_fact(replace(target, text=text), context))
                    files.append(_file_version(paths[-1].resolved))
            case HostTarget():
                hosts.append(target.text)
            case CommandTarget():
                commands.append(target)
    command = None
    if commands:
        # Several commands are evaluated as one text.
        text = "\n".join(one.text for one in commands)
        whole = replace(commands[0], text=text, is_bash=all(one.is_bash for one in commands))
        command = command_facts(whole, shell_folder(cwd, context) or context.workspace, context)
    return Targets(tuple(paths), tuple(files), tuple(hosts), command)


def _readings(text: str, context: PolicyContext) -> tuple[str, ...]:
    """The path that an argument means; and the text itself if something has that name, for a tool may open it."""
    meant = given_path(text)
    with suppress(PathRefused):
        if meant != text and os.path.lexists(resolve(text, workspace=context.workspace).path):
            return meant, text
    return (meant,)


def _file_version(path: PurePath) -> tuple[int, ...] | None:
    try:
        now = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - a pure path
    except OSError:
        return None
    return now.st_dev, now.st_ino, now.st_mode, now.st_nlink, now.st_size, now.st_mtime_ns, now.st_ctime_ns


def host_permission(host: str, scope: Scope, context: PolicyContext) -> HostPermission:
    """What the rules say about a host that a fetch is redirected to; grants are for calls alone."""
    facts = CallFacts(
        tool="web_fetch",
        mode=scope.mode,
        risk="medium",
        kind="readonly",
        workspace=context.workspace,
        allowed_in_plan_mode=True,
        hosts=(host,),
    )
    reach = host_access(facts, context.policy)
    return HostPermission(
        is_denied=reach.is_denied,
        is_closed=reach.is_closed,
        may_follow=reach.is_allowed,
        may_be_private=reach.is_named,
    )


def path_fact(
    target: PathTarget, context: PolicyContext, base: Path | None = None, names: RuleNames | None = None
) -> PathFact:
    """The resolved path and what policy needs to know about it; `names` are those in the rules if they are known.

    Raises:
        PathRefused: it cannot be resolved.
    """
    resolved = resolve(target.text, workspace=context.workspace, base=base, roots=context.roots)
    policy = context.policy
    has_rules = bool(policy.rules.deny or policy.rules.ask)
    return PathFact(
        given=target.text,
        resolved=resolved.path,
        aliases=other_names(resolved.path, names or names_in_rules(context)) if has_rules else (),
        access=target.access,
        inside=resolved.inside,
        reserved=is_reserved(resolved.path, context.workspace, policy.reserved, policy.exempt_files),
        is_memory=resolved.path in policy.exempt_files,
        exposes_process=resolved.exposes_process,
    )


def names_in_rules(context: PolicyContext) -> RuleNames:
    """The names in the rules, and the links among them as the file system is now."""
    policy = context.policy
    rules = (*policy.rules.deny, *policy.rules.ask)
    places: dict[PurePath, PurePath] = {}
    for folder, rest in rule_folders(rules, context.workspace, policy.home):
        for name in (folder, *find_glob_links(folder, rest)):
            if name not in places:
                places[name] = PurePath(os.path.realpath(name))
    links = tuple((place, name) for name, place in places.items() if place != name)
    return RuleNames(exact_rule_paths(rules, context.workspace, policy.home), links)


def find_glob_links(folder: PurePath, names: Sequence[str]) -> Iterator[PurePath]:
    """Every link that the names of a glob match, level by level. From `**` on none: that is the whole tree."""
    names = tuple(takewhile(lambda name: "**" not in name, names))
    waiting = deque([(folder, 0)] if any(sign in name for name in names for sign in _WILDCARDS) else [])
    for _ in range(_MAX_FOLDERS):
        if not waiting:
            return
        place, level = waiting.popleft()
        pattern = _compile_glob(names[level])
        try:
            with os.scandir(place) as entries:
                matches = [entry for entry in entries if pattern.fullmatch(entry.name)]
        except OSError:
            continue
        for entry in matches:
            if entry.is_symlink():
                yield place / entry.name
            if level + 1 < len(names) and os.path.isdir(entry):  # noqa: PTH112 - the method of a path can raise
                waiting.append((place / entry.name, level + 1))


@lru_cache(maxsize=512)
def _compile_glob(name: str) -> re.Pattern[str]:
    pieces = re.split(r"([*?])", name)
    return re.compile("".join(_WILDCARDS.get(piece) or re.escape(piece) for piece in pieces), re.DOTALL)


def other_names(path: Path, names: RuleNames) -> tuple[PurePath, ...]:
    """Names by which rules mean this very path: hard links of it, another spelling, a way through a link."""
    found: list[PurePath] = []
    with suppress(OSError):
        status = path.stat(follow_symlinks=False) if names.files else None
        for name in names.files:
            with suppress(OSError):
                if name != path and status and os.path.samestat(status, os.stat(name)):  # noqa: PTH116 - a pure path
                    found.append(name)
    for place, name in names.links:
        if path.is_relative_to(place):
            found.append(name / path.relative_to(place))
    return tuple(dict.fromkeys(found))


def command_facts(target: CommandTarget, cwd: Path, context: PolicyContext) -> CommandFacts:
    """Read a command that would start in `cwd`, or in the folder it names itself.

    Raises:
        PathRefused: its folder cannot be resolved.
    """
    folder = given_path(target.working_directory)
    start = resolve_target(folder, str(context.workspace)) if folder else cwd
    try:
        text = _parse_cached(target.text) if target.is_bash else unparsed_shell(target.text, _NOT_BASH)
    except _NotParsed as error:
        text = error.text
    words = dict.fromkeys(word for command in (*text.runs, *text.commands) for word in command.words)
    find = _PathFinder(text.folders, start, context)
    patterns = tuple(dict.fromkeys(path for word in text.patterns for path in find.paths(word)))
    linked = (
        _real_path(link)
        for pattern in patterns
        for link in find_glob_links(*_glob_start(pattern))
        # What a pattern itself matches is read if it is a file, and if more than its name is shown.
        if len(link.parts) < len(pattern.parts) or (text.reads_contents and not os.path.isdir(link))  # noqa: PTH112 - a pure path
    )
    named = islice(dict.fromkeys(("", *words, *text.read, *text.named)), _MAX_MENTIONS)
    places = {word: find.paths(word) for word in named}
    links = tuple(linked)
    return CommandFacts(
        target,
        text,
        tuple(_redirect(path, start, context, find.names) for path in text.written),
        tuple(
            dict.fromkeys(
                (
                    *(path for word, paths in places.items() if word for path in paths),
                    *(name for path in links for name in (path, *other_names(path, find.names))),
                )
            )
        ),
        start,
        patterns,
        frozenset(word for word, paths in places.items() if _may_be_protected(word, paths, context)),
        frozenset(word for word, paths in places.items() if _leaves_workspace(word, paths, links, context)),
        tuple(_folders(text, start, context, find.names)),
    )


def _real_path(link: PurePath) -> Path:
    try:
        return Path(os.path.realpath(link))
    except OSError:  # A link of another process, which this user may not read.
        return Path(link)


def _may_be_protected(word: str, paths: Iterable[PurePath], context: PolicyContext) -> bool:
    """Whether a word leads to a protected name, or is a pattern that may match one."""
    return any(is_protected_in(path, context.workspace) for path in paths) or _may_match_protected(word)


@lru_cache(maxsize=2048)
def _may_match_protected(word: str) -> bool:
    hidden = [name for name in word.split("/") if name.startswith(".") and _PATTERN.search(name)]
    return any(globs_overlap(name, known) for name in hidden for known in (*PROTECTED_FOLDERS, *PROTECTED_FILES))


def _leaves_workspace(word: str, paths: Iterable[PurePath], links: Iterable[Path], context: PolicyContext) -> bool:
    """Whether a word leads out of the workspace; a pattern does if a link does that patterns match."""
    found = (*paths, *(links if _PATTERN.search(word) else ()))
    roots = (context.workspace, *context.roots)
    return word not in _NOWHERE and not all(any(_is_within(path, root) for root in roots) for path in found)


@lru_cache(maxsize=2048)
def _is_within(path: PurePath, root: PurePath) -> bool:
    return path.is_relative_to(root)


def _glob_start(pattern: PurePath) -> tuple[PurePath, tuple[str, ...]]:
    """The folder before the first wildcard of a pattern, and the names that follow."""
    parts = pattern.parts
    plain = tuple(takewhile(lambda part: not re.search(r"[*?[]", part), parts))
    return PurePath(*plain), tuple(_BRACKETS.sub("?", part) for part in parts[len(plain) :])


class _NotParsed(Exception):
    """Raised so that the cache does not keep it: the parser may have been slow, or missing."""

    def __init__(self, text: ShellText) -> None:
        super().__init__()
        self.text = text


@lru_cache(maxsize=256)
def _parse_cached(text: str) -> ShellText:
    read = parse_shell(text, parse_bash)
    if not read.is_parsed:
        raise _NotParsed(read)
    return read


def _redirect(path: str, start: Path, context: PolicyContext, names: RuleNames) -> PathFact:
    try:
        fact = path_fact(PathTarget(path, "write"), context, start, names)
    except PathRefused:
        # What cannot be resolved is not inside anything that is known.
        return PathFact(path, PurePath("/"), "write", inside=False)
    with suppress(OSError):
        # A redirection writes in place, so it changes a hard-linked file under its other names too.
        status = os.stat(fact.resolved, follow_symlinks=False)  # noqa: PTH116 - a pure path
        if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
            return replace(fact, inside=False)
    return fact


def _folders(text: ShellText, start: Path, context: PolicyContext, names: RuleNames) -> Iterator[PathFact]:
    """The folders that the commands of a text work in, as far as it is certain where they lead."""
    for folder in dict.fromkeys(folder for command in text.commands for folder in command.folders if folder):
        with suppress(PathRefused, RuntimeError):
            fact = path_fact(PathTarget(folder, "read"), context, start, names)
            # For a shell `link/..` is the folder that the link is in, for programs the one above its target.
            by_name = normpath(start / Path(folder).expanduser())
            is_certain = resolve_target(by_name, "/") == fact.resolved
            if is_certain and (folder not in text.late_folders or Path(fact.resolved).is_dir()):
                yield fact


class _PathFinder:
    """Finds where words lead as paths, from every folder the command may be in, by all names that rules know."""

    def __init__(self, folders: Iterable[str], start: Path, context: PolicyContext) -> None:
        self.names = names_in_rules(context)
        self._starts: list[str] = []
        for folder in folders:
            place = folder if folder.startswith("~") else str(start / folder)
            try:
                self._starts.append(str(resolve(place, workspace=start).path))
            except PathRefused:
                self._starts.append(os.path.normpath(place))
        self._known: dict[str, tuple[PurePath, ...]] = {}

    def paths(self, word: str) -> tuple[PurePath, ...]:
        """The paths that any part of a word may mean; of no word the folders themselves."""
        spellings = _path_spellings(word) if word else (".",)
        return tuple(dict.fromkeys(path for spelling in spellings for path in self._resolved(spelling)))

    def _resolved(self, spelling: str) -> tuple[PurePath, ...]:
        if spelling not in self._known:
            found: list[PurePath] = []
            for folder in self._starts:
                try:
                    path = resolve_target(spelling, folder)
                except PathRefused:
                    # Where it leads cannot be found out, as `/proc/1/root/etc`: its own name says what it may be.
                    path = Path(os.path.normpath(os.path.join(folder, spelling.replace("\0", ""))))  # noqa: PTH118 - not resolved
                found += (path, *other_names(path, self.names))
            self._known[spelling] = tuple(found)
        return self._known[spelling]


@lru_cache(maxsize=2048)
def _path_spellings(word: str) -> tuple[str, ...]:
    """The parts of a word that may be a path: `--file=PATH`, `@PATH`, `-fPATH`, `PATH:place` name one too."""
    word = _HOME_VARIABLE.sub("~", word)
    ends: set[str] = set()
    for text in (_HERE.sub(".", word), *((word,) if _PROCESS_FOLDER.search(word) else ())):
        ends |= {text, *(text.rpartition(sign)[2] for sign in "=@:,"), *_PATH_SIGNS.split(text)[:_MAX_PARTS]}
        ends.update(text[found.end() :] for found in islice(_SED_FILE.finditer(text), _MAX_PARTS))
        is_bundle = re.match(r"-[A-Za-z]", text) is not None
        ends.update(text[at:] for at in range(2, _MAX_BUNDLE + 2) if is_bundle)
    return tuple(sorted(end for end in ends if end))


def format_command(facts: CallFacts, text: ShellText) -> str:
    """The simple commands of a text with several, the files it writes, what is unclear, and where it starts."""
    lines: list[str] = []
    if [command.text for command in text.commands] != [facts.command]:
        lines += [f"runs    {command.text}" for command in text.commands]
    writes = (
        f"writes  {path.resolved}{'' if path.inside else '  (not in the workspace)'}" for path in facts.redirects
    )
    lines += dict.fromkeys(writes)
    if text.unclear_reason:
        lines.append(f"unclear {text.unclear_reason}")
    return "\n".join([*lines, f"in      {facts.cwd or facts.workspace}"])
