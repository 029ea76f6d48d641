"""Completion in a shell: what can stand where the cursor is.

Walks the commands as the command line declares them; whence the values of a parameter come is known to `offers`.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

__all__ = ["FILES", "Offer", "Values", "offered", "split_line"]


class Offer(NamedTuple):
    """One word to choose."""

    value: str
    about: str = ""
    """What it means, in one line."""


FILES = Offer(":files")
"""Stands alone: the shell itself completes the name of a file."""

Values = Callable[[Sequence[str], str, str, Mapping[str, str]], Sequence[Offer]]
"""Takes the words of a command, the name of a parameter, what was typed of its value, and the options given."""


@dataclass
class _Line:
    """What stands before the cursor, as far as it was understood."""

    command: Any
    path: list[str] = field(default_factory=list)
    given: dict[str, str] = field(default_factory=dict)
    """Options by the name of their parameter."""
    taken: int = 0
    """Arguments that are there already."""
    awaiting: Any = None
    """The option whose value comes next."""
    is_literal: bool = False
    """After --, no word is an option any more."""

    def read(self, word: str) -> None:
        """Take in one word."""
        is_option = not self.is_literal and word.startswith("-") and len(word) > 1
        if self.awaiting is not None and not is_option:
            self.given[self.awaiting.name] = word
            self.awaiting = None
        elif is_option:
            self._read_option(word)
        elif (inner := getattr(self.command, "commands", {}).get(word)) is not None:
            self.command = inner
            self.path.append(word)
        else:
            self.taken += 1

    def _read_option(self, word: str) -> None:
        name, sign, value = word.partition("=")
        self.is_literal = word == "--"
        found = next((one for one in _options(self.command) if name in one.opts), None)
        self.awaiting = found if found is not None and not found.is_flag and not sign else None
        if found is not None:
            self.given[found.name] = value


def split_line(line: str) -> list[str]:
    """The words of a line up to the cursor, the last one unfinished or empty; an open quote ends where it does."""
    reader = shlex.shlex(line, posix=True, punctuation_chars=False)
    reader.whitespace_split, reader.commenters = True, ""
    words: list[str] = []
    try:
        words.extend(reader)
    except ValueError:
        return [*words, reader.token]
    return [*words, ""] if not line or line[-1].isspace() else words


def offered(program: Any, words: Sequence[str], values: Values) -> list[Offer]:
    """What may stand in place of the last of these words, which come after the program's name.

    Words that begin with what was typed go before those that only end with it, as ids may be typed.
    """
    *before, typed = words or [""]
    line = _Line(program)
    for word in before:
        line.read(word)
    name, sign, value = typed.partition("=")
    option = next((one for one in _options(line.command) if sign and name in one.opts), None)
    if option is not None:
        found = _fitting(_values(line, option, value, values), value)
        return [one if one is FILES else Offer(f"{name}={one.value}", one.about) for one in found]
    if line.awaiting is None and typed.startswith("-") and not line.is_literal:
        return _fitting(_option_names(line), typed)
    if line.awaiting is None and (commands := getattr(line.command, "commands", {})):
        return _fitting([Offer(word, _summary(one)) for word, one in commands.items()], typed)
    parameter = line.awaiting or _argument(line)
    return _fitting(_values(line, parameter, typed, values), typed) if parameter is not None else []


def _options(command: Any) -> Iterator[Any]:
    return (one for one in command.params if one.param_type_name == "option")


def _argument(line: _Line) -> Any:
    arguments = [one for one in line.command.params if one.param_type_name == "argument"]
    if line.taken < len(arguments):
        return arguments[line.taken]
    return arguments[-1] if arguments and arguments[-1].nargs == -1 else None


def _option_names(line: _Line) -> list[Offer]:
    names = [
        Offer(name, one.help or "")
        for one in _options(line.command)
        if one.multiple or one.name not in line.given
        for name in one.opts
    ]
    return [*names, Offer("--help", "Show this message and exit.")]


def _values(line: _Line, parameter: Any, typed: str, values: Values) -> Sequence[Offer]:
    kind = parameter.type_descriptor.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return [Offer(str(one.value)) for one in kind]
    return values(line.path, parameter.name, typed, line.given)


def _fitting(found: Sequence[Offer], typed: str) -> list[Offer]:
    if list(found) == [FILES]:
        return [FILES]
    begin = [one for one in found if one.value.startswith(typed)]
    return begin or [one for one in found if len(typed) > 1 and one.value.endswith(typed)]


def _summary(command: Any) -> str:
    return str(command.get_short_help_str())
