"""Facts about a shell command: what it would run, where its paths lead, and how it was understood, in words."""

import json
import os
import stat
import subprocess
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import islice, product
from pathlib import Path, PurePath
from typing import Any, NamedTuple

from graph_agent.toolbox.path_facts import Setting, names_in_rules, other_names, path_fact
from policy import CallFacts, PathFact, ShellText, Unparsable, parse_shell, unparsed_shell
from tools.base import CommandTarget, PathTarget
from tools.paths import PathRefused, find_program, resolve, resolve_target

__all__ = ["CommandFacts", "command_facts", "command_in_words", "find_shfmt", "parse_bash"]

_TIMEOUT_S = 1.0
_MAX_BYTES = 8192
_MAX_NESTED = 400
"""Opening signs in a text: each may cost the parser, and the reader of its tree, a level."""


def find_shfmt() -> str | None:
    """The program that came with the package, else the one on PATH."""
    own = Path(sysconfig.get_path("scripts")) / "shfmt"
    return str(own) if own.is_file() else find_program("shfmt")


def parse_bash(text: str) -> Mapping[str, Any]:
    """The syntax tree of a text.

    Raises:
        Unparsable: it is no bash, too big, takes too long, or there is no shfmt.
    """
    if len(text.encode("utf-8", "replace")) > _MAX_BYTES:
        raise Unparsable(f"it is longer than {_MAX_BYTES} bytes")
    if sum(map(text.count, "({`")) > _MAX_NESTED:
        raise Unparsable(f"it opens more than {_MAX_NESTED} parentheses, braces or backticks")
    return _parsed(text)


@lru_cache(maxsize=256)
def _parsed(text: str) -> Mapping[str, Any]:
    program = find_shfmt()
    if program is None:
        raise Unparsable("shfmt, which reads shell commands, is not installed")
    try:
        done = subprocess.run(
            [program, "--to-json", "--language-dialect=bash"],
            input=text.encode(),
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        tree = json.loads(done.stdout) if done.returncode == 0 else None
    except subprocess.TimeoutExpired as error:
        raise Unparsable("it takes too long to read") from error
    except RecursionError as error:
        raise Unparsable("it is nested too deeply") from error
    except (OSError, ValueError) as error:
        raise Unparsable(f"shfmt cannot read it: {error}") from error
    if not isinstance(tree, dict):
        raise Unparsable(
            f"it is no valid bash: {done.stderr.decode(errors='replace').strip() or 'nothing was read'}"
        )
    return tree


_MAX_MENTIONS = 5_000
"""Words looked up; a text that can be plain at all is too short to have more."""
_NO_BASH = "it is not written for bash, and nothing here can read it"


class CommandFacts(NamedTuple):
    """What policy is told about a command."""

    shell: ShellText
    redirects: tuple[PathFact, ...]
    mentions: tuple[PurePath, ...]
    cwd: Path
    patterns: tuple[PurePath, ...] = ()


def command_facts(target: CommandTarget, cwd: Path, setting: Setting) -> CommandFacts:
    """Read a command that would start in `cwd`, or in the folder it names itself.

    Raises:
        PathRefused: its folder cannot be resolved.
    """
    start = resolve_target(target.working_directory, str(setting.workspace)) if target.working_directory else cwd
    text = _read(target.text) if target.is_bash else unparsed_shell(target.text, _NO_BASH)
    redirects = tuple(_redirect(path, start, setting) for path in text.written)
    words = dict.fromkeys(word for command in text.runs for word in command.words)
    patterns = dict.fromkeys(command.words[at] for command in text.commands for at in command.patterns)
    return CommandFacts(
        text,
        redirects,
        _places([*words, *text.read], text.folders, start, setting),
        start,
        _places(patterns, text.folders, start, setting),
    )


def _read(text: str) -> ShellText:
    try:
        return _known(text)
    except _NotUnderstood as not_understood:
        return not_understood.text


class _NotUnderstood(Exception):
    """Keeps what could not be read out of what is remembered: the parser may have been slow, or missing."""

    def __init__(self, text: ShellText) -> None:
        super().__init__()
        self.text = text


@lru_cache(maxsize=256)
def _known(text: str) -> ShellText:
    read = parse_shell(text, parse_bash)
    if not read.is_parsed:
        raise _NotUnderstood(read)
    return read


def _redirect(path: str, start: Path, setting: Setting) -> PathFact:
    try:
        found = path_fact(PathTarget(path, "write"), setting, base=start)
        return replace(found, inside=found.inside and not _has_other_names(found.resolved))
    except PathRefused:
        # What cannot be resolved is nowhere we know.
        return PathFact(path, PurePath("/"), "write", inside=False)


def _has_other_names(path: PurePath) -> bool:
    """Whether a redirection would change a file that stands elsewhere too: it writes in place."""
    try:
        status = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - a pure path
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def _places(words: Iterable[str], folders: Iterable[str], start: Path, setting: Setting) -> tuple[PurePath, ...]:
    """Where words lead if they are paths, from every folder the command may be in, by all names rules know."""
    found: dict[PurePath, None] = {}
    names = names_in_rules(setting)
    spellings = dict.fromkeys(form for word in islice(words, _MAX_MENTIONS) for form in _spellings(word))
    for spelling, folder in product(spellings, list(_resolved(folders, start))):
        with suppress(PathRefused):
            path = resolve_target(spelling, folder)
            found.update(dict.fromkeys((path, *other_names(path, names))))
    return tuple(found)


def _resolved(folders: Iterable[str], start: Path) -> Iterator[str]:
    for folder in folders:
        with suppress(PathRefused):
            yield str(resolve(str(start / folder), workspace=start).path)


def _spellings(word: str) -> set[str]:
    """What of a word may be a path: `--file=PATH`, `@PATH`, `-fPATH`, `host:PATH` name one too."""
    ends = {word, *(word.rpartition(sign)[2] for sign in "=@:,")}
    return {end for end in (*ends, word[2:] if word.startswith("-") else word) if end}


def command_in_words(facts: CallFacts, text: ShellText) -> str:
    """The simple commands in it where there are several, what it writes, what is unclear, and where it starts."""
    return "\n".join(_lines(facts, text))


def _lines(facts: CallFacts, text: ShellText) -> Iterator[str]:
    if [command.text for command in text.commands] != [facts.command]:
        yield from (f"runs    {command.text}" for command in text.commands)
    for path in facts.redirects:
        yield f"writes  {path.resolved}{'' if path.inside else '  (not in the workspace)'}"
    if text.unclear_reason:
        yield f"unclear {text.unclear_reason}"
    yield f"in      {facts.cwd or facts.workspace}"
