"""The commands of a program by name, each made when somebody asks for it.

Typer reads the whole signature of a command to make it; for all of them that takes longer than most commands run.
Knows no command.
"""

import inspect
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

from typer import Typer
from typer.core import TyperCommand
from typer.main import get_command

from graph_agent.cli.plain import PlainCommand, PlainGroup

__all__ = ["LateCommands", "LateGroup", "single"]


def single(function: Any, kind: type[TyperCommand] = PlainCommand) -> Typer:
    """A program of one command."""
    program = Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    program.command(cls=kind)(function)
    return program


class LateCommands(MutableMapping[str, Any]):
    """As far as a group of commands can tell, a dictionary of them."""

    def __init__(self, programs: Mapping[str, Typer]) -> None:
        self._programs = programs
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            made = get_command(self._programs[name])
            made.name = name
            self._made[name] = made
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._made[name] = command

    def __delitem__(self, name: str) -> None:
        del self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._programs, **self._made})

    def __len__(self) -> int:
        return len({**self._programs, **self._made})

    def outlines(self) -> dict[str, Any]:
        """Each command with its name and what it is for, and nothing else."""
        return {name: PlainCommand(name, help=_purpose(program)) for name, program in self._programs.items()}


class LateGroup(PlainGroup):
    """A group whose commands are `LateCommands`."""

    commands: LateCommands

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands, of which none has to be made."""
        PlainGroup(name=self.name, commands=self.commands.outlines()).format_commands(ctx, formatter)


def _purpose(program: Typer) -> str:
    if isinstance(program.info.help, str):
        return program.info.help
    return inspect.getdoc(program.registered_commands[0].callback) or ""
