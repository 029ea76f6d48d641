"""The facts about a shell command: what it would run, and where the paths in it lead."""

import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache
from itertools import islice, product
from pathlib import Path, PurePath
from typing import NamedTuple

from graph_agent.toolbox.places import Setting, names_in_rules, other_names, path_fact
from graph_agent.toolbox.shfmt import parse_bash
from policy import PathFact, ShellText, read_shell, unread
from tools.paths import PathRefused, destination, resolve
from tools.targets import CommandTarget, PathTarget

__all__ = ["CommandFacts", "command_facts"]

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
    start = destination(target.working_directory, str(setting.workspace)) if target.working_directory else cwd
    text = _read(target.text) if target.is_bash else unread(target.text, _NO_BASH)
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
    read = read_shell(text, parse_bash)
    if not read.is_read:
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
            path = destination(spelling, folder)
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
