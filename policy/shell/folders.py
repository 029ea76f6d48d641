"""In which folder each command of a text runs.

A subshell, a part of a pipeline or `bash -c` has a folder of its own, and a function runs where it is called.
A folder is a path as written, seen from the folder the text starts in; no file is looked at.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import dropwhile
from posixpath import basename, join

from policy.shell.commands import builtin_words, changes_folder, without_assignments
from policy.shell.program_table import program_named
from policy.shell.words import SimpleCommand

__all__ = ["names_folder", "placed", "with_folders"]

_FROM_HOME = re.compile(r"~|\$\{?HOME\b")
"""How a path begins that means the same in every folder."""
_CD_OPTION = re.compile(r"-[LPe@]+")
_GIT_OPTIONS = frozenset(("-c", "--namespace", "--exec-path", "--config-env"))
"""Other options of git itself that have a value."""
_MAX_CALLS = 200
"""How many calls of functions are followed, as functions that call functions multiply a few words without limit."""
_MAX_PLACES = 16
"""In how many ways changes of folder may succeed and fail that are followed."""


@dataclass(frozen=True)
class _Place:
    """Where a shell is, after changes of folder of which some succeeded and others failed."""

    folder: str | None = ""
    """None where it is not known; the same for those that follow."""
    previous: str | None = None
    """Where `cd -` goes."""
    stack: tuple[str | None, ...] | None = ()
    """Where `popd` goes, the next one last."""
    results: frozenset[tuple[int, bool]] = frozenset()
    """Which changes of folder, by the offset of their command in the text, succeeded or failed."""

    def may_run(self, command: SimpleCommand) -> bool:
        """Whether the command may run after these results."""
        return not any((offset, not succeeded) in self.results for offset, succeeded in command.position.requires)


_UNKNOWN = _Place(None, None, None)


@dataclass(frozen=True)
class _Shell:
    """What a shell knows of folders."""

    number: tuple[int | str, ...] = ()
    place: _Place = _Place()
    """Where it is if every change of folder succeeds, as far as that can be told."""
    possible: tuple[_Place, ...] = (_Place(),)
    """Where it may be, as any of them may fail."""


def placed(folder: str, word: str) -> str:
    """The path that a word means in a folder."""
    return word if _FROM_HOME.match(word) else join(folder, word)


def names_folder(words: tuple[str, ...]) -> bool:
    """Whether an option among the words names the folder that a command works in."""
    return any(_within_options("", without_assignments(words)))


def with_folders(commands: Iterable[SimpleCommand]) -> Iterator[SimpleCommand]:
    """The commands, in the order they are run in, each with its folder."""
    commands = tuple(commands)
    tracker = _FolderTracker(
        moves_in_loop=any(one.position.repeats and changes_folder(one.words) for one in commands)
    )
    yield from tracker.follow(commands, [_Shell()])
    yield from tracker.follow_uncalled()


class _FolderTracker:
    """Follows the commands of a text; those of a function where it is called, or else where it is defined."""

    def __init__(self, *, moves_in_loop: bool) -> None:
        self._moves_in_loop = moves_in_loop
        self._bodies: dict[str, tuple[SimpleCommand, ...]] = {}
        self._uncalled: dict[str, _Shell] = {}
        self._calls_left = _MAX_CALLS

    def follow(
        self, commands: Iterable[SimpleCommand], shells: list[_Shell], callers: tuple[str, ...] = ()
    ) -> Iterator[SimpleCommand]:
        """Commands of the text, or of a function with these callers; they change the folder of the last shell."""
        for command in commands:
            at = next((at for at, part in enumerate(command.shell) if isinstance(part, str)), None)
            here = _enter(shells, command.shell[:at])
            if at is not None:
                name, inside = str(command.shell[at]), replace(command, shell=command.shell[at + 1 :])
                if name not in self._bodies:
                    self._uncalled[name] = here
                self._bodies[name] = (*self._bodies.get(name, ()), inside)
                continue
            if self._moves_in_loop and command.position.repeats:
                here = shells[-1] = replace(here, possible=(_UNKNOWN,))
            folder = here.place.folder or ""
            yield replace(command, folder=folder, folders=_possible_folders(here, command))
            name = command.words[0]
            if (inner := _wrapper_folder(command.words)) is not None:
                # The command that the wrapper runs comes next, in a shell of its own.
                place = replace(here.place, folder=placed(folder, inner))
                shells.append(replace(here, number=(*here.number, 0), place=place))
            elif name in self._bodies and name not in callers and self._calls_left:
                own = [replace(here, number=())]
                yield from self._call(name, own, callers)
                shells[-1] = replace(own[0], number=here.number)
            elif changes_folder(command.words):
                shells[-1] = _after_change(here, command)

    def follow_uncalled(self) -> Iterator[SimpleCommand]:
        """The bodies of functions that something outside of the text may call."""
        for name, here in tuple(self._uncalled.items()):
            yield from self._call(name, [replace(here, number=())], ())

    def _call(self, name: str, shells: list[_Shell], callers: tuple[str, ...]) -> Iterator[SimpleCommand]:
        self._calls_left -= 1
        self._uncalled.pop(name, None)
        return self.follow(self._bodies[name], shells, (*callers, name))


def _enter(shells: list[_Shell], number: tuple[int | str, ...]) -> _Shell:
    """The shell of this number, made the last of those that are open."""
    while number[: len(shells[-1].number)] != shells[-1].number:
        shells.pop()
    if shells[-1].number != number:
        shells.append(replace(shells[-1], number=number))
    return shells[-1]


def _after_change(shell: _Shell, command: SimpleCommand) -> _Shell:
    words = builtin_words(command.words)
    # What `command cd` runs follows as a command of its own where all that a text runs is listed.
    end = _destination(shell.place, words) if words == command.words else None
    place = shell.place if end is None or end.folder is None else end
    # With an assignment before it, of CDPATH or HOME, it may lead anywhere.
    is_known = not command.computed and without_assignments(command.words) == command.words
    possible: dict[_Place, None] = {}
    for one in shell.possible:
        if not one.may_run(command):
            possible[one] = None
            continue
        end = _destination(one, words) if is_known else _UNKNOWN
        for result, after in ((True, end), (False, one)):
            if after is not None:
                possible[replace(after, results=one.results | {(command.position.offset, result)})] = None
    return _Shell(shell.number, place, tuple(possible) if len(possible) <= _MAX_PLACES else (_UNKNOWN,))


def _destination(place: _Place, words: tuple[str, ...]) -> _Place | None:
    """Where a change of folder leads if it succeeds; None if it cannot succeed."""
    name, *operands = words
    if name == "cd":
        return _after_cd(place, list(dropwhile(_CD_OPTION.fullmatch, operands)))
    operands = operands[1:] if operands[:1] == ["--"] else operands
    here, stack, target = place.folder, place.stack, "".join(operands)
    if stack is None or len(operands) > 1 or target.startswith(("-", "+")) or (operands and name != "pushd"):
        return _UNKNOWN
    if operands:
        return replace(place, folder=_within(here, target), previous=here, stack=(*stack, here))
    if name == "dirs" or not stack:
        return place if name == "dirs" else None
    below = (*stack[:-1], here) if name == "pushd" else stack[:-1]
    return replace(place, folder=stack[-1], previous=here, stack=below)


def _after_cd(place: _Place, operands: list[str]) -> _Place:
    has_dashes = operands[:1] == ["--"]
    operands = operands[1:] if has_dashes else operands
    target = operands[0] if operands else "~"
    if len(operands) > 1 or (target.startswith("-") and target != "-" and not has_dashes):
        return _UNKNOWN  # Versions of bash differ.
    folder = place.previous if target == "-" else _within(place.folder, target)
    return replace(place, folder=folder, previous=place.folder)


def _within(folder: str | None, word: str) -> str | None:
    if folder is None:
        return word if word.startswith("/") or _FROM_HOME.match(word) else None
    return placed(folder, word)


def _possible_folders(shell: _Shell, command: SimpleCommand) -> tuple[str | None, ...]:
    """Every folder that a command may work in, also the command that it wraps."""
    words = without_assignments(command.words)
    found: dict[str | None, None] = {}
    for place in [one for one in shell.possible if one.may_run(command)] or shell.possible:
        found[place.folder] = None
        found.update(dict.fromkeys(_within_options(place.folder, words)))
    return tuple(found)


def _within_options(folder: str | None, words: tuple[str, ...]) -> Iterator[str | None]:
    """The folders that options name, seen from a folder: of the program, or of one that it wraps."""
    for at, word in enumerate(words):
        if at and not program_named(basename(words[0])).wraps:
            break
        inner = folder
        for value in _option_values(basename(word), words[at + 1 :]):
            inner = _within(inner, value)
            yield inner


def _option_values(program: str, words: Sequence[str]) -> Iterator[str]:
    """The values of the options that name the folder a program works in; too many rather than too few."""
    options = program_named(program).folder_options.split()
    letters = {option[1] for option in options if not option.startswith("--")}
    following = iter(words if options else ())
    for word in following:
        name, sign, value = word.partition("=")
        if program == "git" and not word.startswith("-"):
            return
        if program == "git" and word in _GIT_OPTIONS:
            next(following, None)
        elif word.startswith("--"):
            if len(name) > 2 and any(option.startswith(name) for option in options):
                yield value if sign else next(following, "")
        elif word.startswith("-") and letters.intersection(word):
            at = next(at for at, letter in enumerate(word) if letter in letters)
            yield word[at + 1 :] or next(following, "")


def _wrapper_folder(words: tuple[str, ...]) -> str | None:
    """The folder that a wrapper runs its command in, if an option names one."""
    program = program_named(basename(words[0]))
    options = program.folder_options if program.wraps else ""
    for at, word in enumerate(words[1:], start=1) if options else ():
        if not (word.startswith("-") or "=" in word or words[at - 1].startswith("-")):
            return None  # The command begins here.
        values = _option_values(basename(words[0]), words[at : at + 2]) if word.startswith("-") else iter(())
        if (value := next(values, None)) is not None:
            return value
    return None
