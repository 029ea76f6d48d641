"""What the commands of a text change for those after them: how words are read, and where paths lead."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from posixpath import basename
from typing import NamedTuple

from policy.shell.arguments import dangerous_options, only_reads
from policy.shell.commands import builtin_words, changes_folder, without_assignments, wrapped_commands
from policy.shell.folders import names_folder
from policy.shell.program_table import program_named
from policy.shell.words import SimpleCommand

__all__ = ["Paths", "changed_shell_reason", "follow_paths"]

_MAX_SHELLS = 100
"""How many shells within shells are told apart."""


def changed_shell_reason(commands: Sequence[SimpleCommand]) -> str:
    """Why a command may not be what its words say after an earlier one in the same shell; empty where all are."""
    last: dict[tuple[int | str, ...], int] = {}
    for at, command in enumerate(commands):
        for depth in range(min(len(command.shell), _MAX_SHELLS) + 1):
            last[command.shell[:depth]] = at
    for at, command in enumerate(commands):
        name = _shell_change(command.words)
        is_followed = last.get(command.shell, len(commands)) > at or command.position.repeats
        if name and is_followed:
            return f"{name} changes how the shell reads the commands after it"
    return ""


def _shell_change(words: tuple[str, ...]) -> str:
    """What in a command changes the shell it is run in; empty if nothing does."""
    own = builtin_words(words)
    if not own:
        return f"setting {words[0].partition('=')[0].rstrip('+')}"
    row = program_named(own[0])
    sets_variable = row.variable_option and any(word.startswith(row.variable_option) for word in own[1:])
    return own[0] if row.changes_shell or sets_variable else ""


_MAX_DEPTH = 8
_COPIES_FILES = re.compile(r"-[fginpuv]+|--(?:force|interactive|no-clobber|update|verbose)")
"""Options with which `cp` makes no link and no folder."""


def _may_link_by_any(command: SimpleCommand) -> bool:
    """Whether a command may make a path lead elsewhere: it is not known to make no link and to move nothing."""
    return any(map(_may_link, _with_wrapped(without_assignments(command.words))))


def _may_link(words: tuple[str, ...]) -> bool:
    name, options = basename(words[0]), [word for word in words[1:] if word.startswith("-")]
    program = program_named(name)
    if only_reads(words) or program.changes_paths == "nothing" or words[:2] == ("git", "add"):
        return False
    if name == "cp":
        return not all(map(_COPIES_FILES.fullmatch, options))
    is_wrapper = program.wraps and program.syntax not in (None, "unknown")
    is_harmless = is_wrapper or program.changes_paths == "in place"
    return not is_harmless or bool(dangerous_options(words[0], words[1:]))


def _with_wrapped(words: tuple[str, ...], depth: int = 0) -> list[tuple[str, ...]]:
    """The words of a command, and those of the commands it wraps as far as they are known."""
    inner = wrapped_commands(words) if words and depth < _MAX_DEPTH else ()
    return [one for one in (words, *(deep for own in inner or () for deep in _with_wrapped(own, depth + 1))) if one]


class Paths(NamedTuple):
    """The commands of a text, with what earlier ones may change for them."""

    commands: tuple[SimpleCommand, ...]
    late_folders: frozenset[str]
    """Folders that an earlier command may make a link, if they do not exist before."""
    redirection_reason: str
    """Why nobody can tell which file a redirection writes; empty where its path tells."""


def follow_paths(commands: Sequence[SimpleCommand], commands_before: Iterable[int]) -> Paths:
    """Find out which paths an earlier command may lead elsewhere.

    Args:
        commands: with their folders.
        commands_before: for each redirection that writes, how many of the commands come before it.
    """
    links = [_may_link_by_any(command) for command in commands]
    if not any(links):
        return Paths(tuple(commands), frozenset(), "")
    first = links.index(True)
    name = builtin_words(commands[first].words)[0]
    reason = f"it writes a file after {name}, which may have put a link there"
    every = _Linked()
    for command, is_link in zip(commands, links, strict=True):
        every = every.after(command) if is_link else every
    so_far = _Linked()
    marked: list[SimpleCommand] = []
    seen: set[str | None] = set()
    late: set[str] = set()
    moves_late = False
    for command, is_link in zip(commands, links, strict=True):
        linked = every if command.position.overlaps else so_far
        folders = tuple(None if folder and linked.covers(folder) else folder for folder in command.folders)
        is_late = moves_late or (linked.has_any and names_folder(command.words))
        late.update(folder for folder in folders if is_late and folder and folder not in seen)
        seen.update(folders)
        moves_late = moves_late or (linked.has_any and changes_folder(command.words))
        marked.append(replace(command, folders=folders, leads_elsewhere=_may_write_elsewhere(command, linked)))
        so_far = so_far.after(command) if is_link else so_far
    is_unknown = any(count > first for count in commands_before)
    return Paths(tuple(marked), frozenset(late), reason if is_unknown else "")


class _Linked(NamedTuple):
    """What commands have linked or moved."""

    has_any: bool = False
    names: frozenset[str] = frozenset()
    """The last names of what they named."""
    moved: frozenset[str] = frozenset()
    """Of these, the names of what was moved and is no link itself if it was none."""

    def after(self, command: SimpleCommand) -> "_Linked":
        """Together with one more command."""
        names = set(self.names)
        moved = set(self.moved)
        for words in _with_wrapped(without_assignments(command.words)):
            change = program_named(basename(words[0])).changes_paths
            if change in ("links", "moves"):
                paths = (part for word in words[1:] for part in (word, word.rpartition("=")[2]))
                (moved if change == "moves" else names).update(name for path in paths for name in _names(path)[-1:])
        return _Linked(has_any=True, names=frozenset(names), moved=frozenset(moved))

    def covers(self, path: str) -> bool:
        """Whether a path goes through one of the names."""
        names = _names(path)
        return not self.names.isdisjoint(names) or not self.moved.isdisjoint(names[:-1])


def _names(path: str) -> tuple[str, ...]:
    """The names in a path, in one spelling for all that are the same on some file system."""
    plain = unicodedata.normalize("NFC", path).casefold()
    return tuple(name for name in plain.split("/") if name not in ("", ".", ".."))


def _may_write_elsewhere(command: SimpleCommand, linked: _Linked) -> bool:
    """Whether a command may write by a path that earlier commands linked or moved."""
    if not linked.has_any:
        return False
    for words in _with_wrapped(without_assignments(command.words)):
        program, dangerous = program_named(basename(words[0])), dangerous_options(words[0], words[1:])
        if program.changes_paths == "nothing" or only_reads(words):
            continue
        operands = [part for word in words[1:] for part in (word, word.rpartition("=")[2])]
        operands = [path for path in operands if path and not path.startswith("-")]
        if program.writes_by == "links" and operands:
            return True
        if (dangerous or program.writes_by == "folders") and any("/" in path.strip("/") for path in operands):
            return True
        if any(map(linked.covers, operands)):
            return True
    return False
