"""The risk of one call: what its command would do by the table of programs, in a few words.

The declared risk of a tool stays as it is. In a sandbox a command may lower it for its call: what provably only
reads is LOW, what can change no more than files of the workspace is MEDIUM, and the rest is HIGH.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePath
from typing import NamedTuple

from policy.facts import CallFacts, PolicySettings, Risk
from policy.matching import unclear_reason
from policy.protected import is_protected_in
from policy.shell.arguments import Reading, dangerous_options, file_operands, is_dry_run, only_reads, read_command
from policy.shell.commands import changes_folder, without_assignments, wrapped_commands
from policy.shell.programs import RUN_AS_CODE, Effect, describe_program, steers_programs
from policy.shell.project_table import RSYNC_REMOVES
from policy.shell.shell_text import ShellText

__all__ = ["CallRisk", "call_risk", "contacting_program", "describe_programs"]

_ORDER: tuple[Risk, ...] = ("low", "medium", "high")
_MAX_DEPTH = 8
_MAX_CHARS = 60
"""Of the names in a reason."""
_MAX_REASONS = 3
"""For a command that does several things of HIGH risk."""
_HARMLESS = re.compile(r"LC_\w+|LANG|LANGUAGE|TZ|NO_COLOR|FORCE_COLOR|COLUMNS|LINES|CI|TERM")
"""Variables that change how something is shown, and nothing else."""


class CallRisk(NamedTuple):
    """How much harm a call can do."""

    level: Risk
    reason: str = ""
    """What the call does, to be read after "it"; empty where only the tool's declaration is known."""
    leaves_workspace: bool = False
    """It only reads, and names something outside of the workspace."""


def call_risk(facts: CallFacts, settings: PolicySettings) -> CallRisk:
    """The risk of a call: the declared one, unless it is a command, and it runs in a sandbox."""
    is_declared = settings.shell_risk == "declared" or facts.tool in settings.risk
    if facts.shell is None or is_declared:
        return CallRisk(facts.risk)
    found = _risk_of_text(facts, facts.shell)
    if facts.sandbox != "none":
        return found
    reason = found.reason if found.level == "high" else f"{found.reason}, and there is no sandbox"
    return CallRisk(facts.risk, reason)


def describe_programs(text: ShellText) -> dict[str, str]:
    """The programs of a text, wrapped ones too, with what the table says of each."""
    own = (without_assignments(words) for command in text.commands for words in _unwrapped(command.words))
    readings = [read_command(words) for words in own if words]
    return {reading.name: describe_program(reading.row) for reading in readings}


def contacting_program(command: str, text: ShellText) -> str:
    """The program with which a command contacts a host, as far as its words show; empty if none does.

    A text that cannot be parsed does so if there is an address in it.
    """
    if not text.is_parsed and _ADDRESS.search(command):
        return "an address"
    exact = [words for one in text.commands for words in _unwrapped(one.words)]
    for own in map(without_assignments, (*exact, *(run.words for run in text.runs))):
        if own:
            reading = read_command(own)
            has_address = not only_reads(own) and any(_ADDRESS.search(word) for word in own[1:])
            if _effect_of(reading) == "network" or (has_address and not reading.name.startswith("git ")):
                return reading.name
    return ""


_ADDRESS = re.compile(r"\b[a-z][a-z0-9+]*://", re.IGNORECASE)


def _risk_of_text(facts: CallFacts, text: ShellText) -> CallRisk:
    exact = [words for command in text.commands for words in _unwrapped(command.words)]
    found = list(_redirection_risks(facts, text))
    found += [one for words in exact for one in _command_risks(words, facts)]
    if any(map(_may_run_more, exact)):
        # What inline code would run is found too, and more than that: only the worst of it counts.
        found += [one for run in text.runs for one in _command_risks(run.words, facts) if one.level == "high"]
    if reason := text.unclear_reason or text.computed_reason:
        found.append(CallRisk("high", f"cannot be judged before it runs: {reason}"))
    elif reason := unclear_reason(facts, text):
        found.append(CallRisk("medium", f"may leave the workspace: {reason}"))
    if not exact and not found:
        found.append(CallRisk("medium", "runs no known program"))
    found += [CallRisk("medium", f"may do more than read: {doubt}") for doubt in _doubts(exact, facts, text)]
    worst = max(found, key=lambda one: _ORDER.index(one.level), default=CallRisk("low", "only reads"))
    if worst.level != "high":
        return worst
    reasons = dict.fromkeys(one.reason for one in found if one.level == "high")
    return worst._replace(reason=", ".join([*reasons][:_MAX_REASONS]))


def _doubts(commands: Sequence[tuple[str, ...]], facts: CallFacts, text: ShellText) -> Iterator[str]:
    """Why commands that only read may do more in their context."""
    readings = [read_command(words) for words in map(without_assignments, commands) if words]
    is_elsewhere = any(map(changes_folder, commands)) or (facts.cwd is not None and facts.cwd != facts.workspace)
    if is_elsewhere and any(reading.row.obeys_folder for reading in readings):
        yield "git in another folder, whose settings may run programs"
    if text.patterns and any(reading.row.walks for reading in readings):
        yield "a search of what a pattern matches"
    if any(re.match(r"[/~]|\.\./", one) or re.search(r"(?:^|/)\.[*?\[]|\[[:.=]", one) for one in text.patterns):
        yield "a pattern that may leave the workspace"
    for reading in readings:
        # What a wrapper runs is evaluated separately; its option may change the folder or hold a command.
        if reading.row.wraps and reading.row.code == "words" and reading.options:
            yield f"{reading.name} {reading.options[0]}"


def _unwrapped(words: tuple[str, ...], depth: int = 0) -> Iterator[tuple[str, ...]]:
    """The command, and what it runs if it is a wrapper, or `find`, whose words are known."""
    yield words
    own = without_assignments(words)
    inner = wrapped_commands(own) if own and depth < _MAX_DEPTH else None
    for one in inner or ():
        yield from _unwrapped(one, depth + 1) if one else ()


def _may_run_more(words: tuple[str, ...]) -> bool:
    """Whether something in the words may be code, or a command that they do not show."""
    own = without_assignments(words)
    if len(own) < len(words):
        return True
    row = read_command(own).row
    takes_code = row.code not in ("", "index") or bool(row.wraps_after.intersection(own))
    is_unknown_wrapper = (row.wraps and wrapped_commands(own) is None) or (row.wraps and row.syntax is None)
    return not only_reads(own) and (takes_code or is_unknown_wrapper or bool(dangerous_options(own[0], own[1:])))


def _redirection_risks(facts: CallFacts, text: ShellText) -> Iterator[CallRisk]:
    for path in facts.redirects:
        if not path.inside:
            yield CallRisk("high", f"writes {path.given}, outside the workspace")
        elif is_protected_in(path.resolved, facts.workspace):
            yield CallRisk("high", f"changes {path.given}, which decides what runs later")
        else:
            yield CallRisk("medium", f"writes {path.given}")
    if outside := [word for word in ("", *text.read) if word in facts.outside_words]:
        yield _read_outside(outside[:1])


def _read_outside(words: Sequence[str]) -> CallRisk:
    return CallRisk("medium", f"reads {_named(words) or 'a folder'}, outside the workspace", leaves_workspace=True)


def _named(words: Iterable[str]) -> str:
    text = " ".join(words)
    return text if len(text) <= _MAX_CHARS else f"{text[: _MAX_CHARS - 1]}…"


def _command_risks(words: tuple[str, ...], facts: CallFacts) -> Iterator[CallRisk]:
    own = without_assignments(words)
    for assignment in words[: len(words) - len(own)]:
        name = re.split(r"[+=]", assignment, maxsplit=1)[0]
        if steers_programs(name) or RUN_AS_CODE.fullmatch(name):
            yield CallRisk("high", f"sets {name}, which decides what other programs run")
        elif not _HARMLESS.fullmatch(name):
            yield CallRisk("medium", f"sets {name}")
    if not own:
        return
    reading = read_command(own)
    if reading.row.wraps and reading.row.syntax is not None:
        yield from _wrapper_risks(own, reading)
    elif only_reads(own):
        yield from _reader_risks(own, reading, facts)
    else:
        yield _effect_risk(own, reading, facts)


def _wrapper_risks(words: tuple[str, ...], reading: Reading) -> Iterator[CallRisk]:
    if reading.row.effect:
        yield CallRisk("high", _EFFECTS[reading.row.effect].format(reading.name))
    inner = wrapped_commands(words)
    if inner is None:
        yield CallRisk("high", f"runs a command that its arguments do not show: {reading.name}")
    elif reading.name == "xargs":
        yield CallRisk("medium", "runs a command with arguments it reads from its input: xargs")


def _reader_risks(words: tuple[str, ...], reading: Reading, facts: CallFacts) -> Iterator[CallRisk]:
    if outside := [word for word in file_operands(words) if word in facts.outside_words]:
        yield _read_outside(outside)
    if reading.row.follows and any(re.fullmatch(reading.row.follows, word) for word in reading.options):
        yield CallRisk("medium", f"follows links, which may lead outside the workspace: {reading.name}")
    if reading.name == "cd":
        [target, *more] = reading.operands or ("",)
        if more or target in ("", "-") or reading.options or ".." in PurePath(target).parts:
            yield CallRisk("medium", f"changes to an unknown folder: {_named(words)}")


_EFFECTS: dict[Effect, str] = {
    "deletes": "deletes {}",
    "discards": "discards changes: {}",
    "rewrites": "rewrites history: {}",
    "network": "uses the network: {}",
    "privilege": "runs as another user: {}",
    "outside": "hands work to a program outside the sandbox: {}",
}
"""Reasons of HIGH risk."""


def _effect_risk(words: tuple[str, ...], reading: Reading, facts: CallFacts) -> CallRisk:
    """The risk of a command that does more than read."""
    name, operands = reading.name, reading.operands
    effect = _effect_of(reading)
    files = file_operands(words)
    if effect in _EFFECTS:
        about = _deleted(reading) if effect == "deletes" else _named(words) if effect in _LONG else name
        return CallRisk("high", _EFFECTS[effect].format(about))
    if protected := next((word for word in files if word in facts.protected_words), ""):
        return CallRisk("high", f"may change {protected}, which decides what runs later")
    if effect != "writes":
        return _unknown_risk(words, reading, effect, facts)
    if outside := next((word for word in files if word in facts.outside_words), ""):
        return CallRisk("high", f"names {outside}, outside the workspace: {name}")
    if name == "git" or name.startswith("git "):
        return CallRisk("medium", f"changes the repository: {name}")
    return CallRisk("medium", f"writes {_named(operands)}" if operands else f"writes: {name}")


def _deleted(reading: Reading) -> str:
    if reading.row.walks or reading.name == "git clean" or not reading.operands:
        return f"what {reading.name} finds"
    return _named(reading.operands)


def _unknown_risk(words: tuple[str, ...], reading: Reading, effect: Effect, facts: CallFacts) -> CallRisk:
    """The risk of a program of which the table does not say what it does."""
    name, row = reading.name, reading.row
    if row.code == "index":
        return CallRisk("medium", f"changes variables: {name}")
    if row.only_reads and "/" not in words[0]:
        [option, *_] = (*dangerous_options(words[0], words[1:]), *words[1:], "")
        return CallRisk("medium", f"may write or run something: {name} {option}".rstrip())
    name = words[0] if "/" in words[0] else name
    what = "runs a script: " if effect == "script" else "runs code: " if row.code else "runs "
    if facts.sandbox == "open":
        # With an open network nothing is known of what it sends where.
        return CallRisk("high", f"{what}{name}, and the network is open")
    return CallRisk("medium", f"{what}{name}")


_LONG: frozenset[Effect] = frozenset(("deletes", "discards", "rewrites"))
"""Effects whose reason shows the whole command, or what is deleted."""
_REMOTE = re.compile(r"(?:rsync://|[\w.@-]+:).*")


def _effect_of(reading: Reading) -> Effect:
    return _git_effect(reading) if reading.name.startswith("git ") else _own_effect(reading)


def _own_effect(reading: Reading) -> Effect:
    name, row, arguments = reading.name, reading.row, reading.arguments
    if row.wraps_until and "-delete" in arguments:
        return "deletes"
    if name == "rsync":
        if any(map(_REMOTE.fullmatch, reading.operands)):
            return "network"
        removes = any(word.startswith("--") and word[2:] in RSYNC_REMOVES for word in arguments)
        return "deletes" if removes and not is_dry_run(arguments) else "writes"
    if row.code == "language" and not row.only_reads and reading.operands and not _has_inline_code(arguments):
        return "script"
    if row.code == "shell" and not row.effect and reading.operands and not _has_inline_code(arguments):
        return "script"
    return row.effect


def _has_inline_code(arguments: Sequence[str]) -> bool:
    return any(re.fullmatch(r"-[A-Za-z]*[cerE]|--(?:eval|print|command)(?:=.*)?", word) for word in arguments)


def _git_effect(reading: Reading) -> Effect:
    """What a command of git comes to with these options and operands."""
    subcommand = reading.name.removeprefix("git ")
    if subcommand == "clean" and is_dry_run(reading.arguments):
        return "writes"
    text = " ".join(reading.arguments)
    found = (effect for names, pattern, effect in _GIT_EFFECTS if subcommand in names and re.search(pattern, text))
    return next(found, reading.row.effect)


_GIT_EFFECTS: tuple[tuple[tuple[str, ...], str, Effect], ...] = (
    (("push",), r"(?<!\S)(?:-\w*[fd]|--(?:force|mirror|delete|prune)|[+:])", "rewrites"),
    (("commit",), r"(?<!\S)--am", "rewrites"),
    (("branch", "tag"), r"(?<!\S)(?:-\w*[dDmMf]|--(?:delete|move|force))", "rewrites"),
    (("reflog",), r"(?:^|\s)(?:expire|delete)\b", "rewrites"),
    (("stash",), r"^(?:drop|clear)\b", "discards"),
    (("reset",), r"(?<!\S)--(?:h|me|k)", "discards"),
    (("checkout", "checkout-index", "switch"), r"(?<!\S)(?:-\w*f|--force|--disc|(?:--|\.)(?!\S))", "discards"),
    (("restore",), r"^(?!.*(?<!\S)(?:-\w*S|--staged))|(?<!\S)(?:-\w*W|--worktree)", "discards"),
    (("remote",), r"^(?:update|show|prune)\b", "network"),
    (("submodule",), r"^(?:add|update|init)\b", "network"),
    (("worktree",), r"^(?:remove|prune)\b", "deletes"),
)
"""Commands of git, what their arguments look like, and what they then come to."""
