"""Commands that take texts and flags as the shell gives them.

Typer checks every value with a validation library that takes longer to load than a read-only command takes to run.
Texts need no checking, flags have none to do, and neither has what was left out; the rest is left to Typer.
"""

import os
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

from typer import BadParameter, Option, Typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.exceptions import TyperException
from typer.main import get_command

from graph_agent.cli.options import DATABASE_HELP, DEBUG_HELP

__all__ = ["PlainCommand", "PlainGroup", "ResumeCommand", "ServerCommand", "write_examples"]

_ANY_LENGTH = 1000
"""Of a help text in a list of commands: its first sentence is wrapped instead of cut off."""

_IDS = ("call", "checkpoint", "identifier", "new", "old", "resume", "target", "thread")
"""Parameters that are one id. Left out it may mean the newest; given empty it is a variable nobody set."""

_NEWEST = "\0newest"
"""Stands for the ID that `--resume` came without; no argument can hold it."""


class _AsGiven:
    """Stands where Typer keeps what turns a parameter's texts into its type; asks that only where there is need."""

    def __init__(self, annotation: Any, build: Callable[[], Any]) -> None:
        self._annotation = annotation
        self._build = build

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command takes it."""
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if self._annotation in (str, bool):
            return value
        if self._annotation == list[str] and isinstance(value, list | tuple):
            return list(value)
        return self._build().coerce(value, param=param, ctx=ctx)


class _PlainOption(TyperOption):
    def get_runtime_param(self) -> Any:
        return _AsGiven(self.type_descriptor.annotation, super().get_runtime_param)


class _PlainArgument(TyperArgument):
    multiple = False

    def get_runtime_param(self) -> Any:
        return _AsGiven(self.type_descriptor.annotation, super().get_runtime_param)


class PlainCommand(TyperCommand):
    """A command; pass as `cls` to `Typer.command`."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, texts and flags among them made plain; `--db` and `--debug` are of every command."""
        *own, last = [_plain(parameter) for parameter in super().get_params(ctx)]
        names = {parameter.name for parameter in own}
        return [*own, *(option for option in _everywhere() if option.name not in names), last]

    def get_short_help_str(self, limit: int = _ANY_LENGTH) -> str:
        """The first sentence, whole."""
        return super().get_short_help_str(max(limit, _ANY_LENGTH))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Examples of the command."""
        write_examples(ctx.command_path, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer does, but complaints say what is wrong and not which library found it."""
        try:
            rest = super().parse_args(ctx, args)
            _require_ids(ctx)
        except BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise
        return rest


class ResumeCommand(PlainCommand):
    """A command whose `--resume` may stand without an ID, for the newest thread here."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The parser knows no option with a value that may be left out: something is put in for it."""
        rest = super().parse_args(ctx, [part for number in range(len(args)) for part in _with_id(args, number)])
        if ctx.params.get("resume") == _NEWEST:
            ctx.params["resume"] = ""
        return rest

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Examples, and what the exit code says."""
        from graph_agent.cli.options import describe_exit_codes

        super().format_epilog(ctx, formatter)
        with formatter.section("Exit codes"):
            formatter.write_text(describe_exit_codes())


class ServerCommand(PlainCommand):
    """A command that is given another command: an option it does not know may be that one's."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As Typer does; the complaint about an unknown option says where -- belongs."""
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            if "--" not in args and (option := getattr(error, "option_name", "")):
                error.message = (
                    f"No such option: {option}. If it belongs to the command to start, put -- before that command."
                )
            raise


class PlainGroup(TyperGroup):
    """A group of commands; pass as `cls` to `Typer`."""

    def get_short_help_str(self, limit: int = _ANY_LENGTH) -> str:
        """The first sentence, whole."""
        return super().get_short_help_str(max(limit, _ANY_LENGTH))

    def get_params(self, ctx: Any) -> list[Any]:
        """The parameters, texts and flags among them made plain."""
        return [_plain(parameter) for parameter in super().get_params(ctx)]


def write_examples(path: str, formatter: Any) -> None:
    """What stands below the help of the command with this path."""
    from graph_agent.cli.options import find_examples

    if lines := find_examples(path):
        formatter.write("\nExamples:\n" + "".join(f"  {line}\n" for line in lines))


def _require_ids(ctx: Any) -> None:
    for name in _IDS:
        if ctx.params.get(name) == "" and ctx.get_parameter_source(name).name == "COMMANDLINE":
            raise BadParameter("an id is empty, perhaps a variable that is not set; name one, or leave it out")


def _with_id(args: list[str], number: int) -> list[str]:
    is_bare = args[number] == "--resume" and (number + 1 == len(args) or args[number + 1].startswith("-"))
    return [args[number], _NEWEST] if is_bare else [args[number]]


def _name(db: str | None) -> str | None:
    if db:
        os.environ["GRAPH_AGENT_DB"] = db
    return db


_Database = Annotated[str | None, Option("--db", metavar="FILE", help=DATABASE_HELP, callback=_name)]


def _debug(*, debug: bool) -> bool:
    if debug:
        os.environ["GRAPH_AGENT_DEBUG"] = "1"
    return debug


_Debug = Annotated[bool, Option("--debug", help=DEBUG_HELP, callback=_debug, hidden=True)]


@cache
def _everywhere() -> tuple[Any, ...]:
    """`--db` for commands that open no database themselves: what they load finds this one. And `--debug`."""
    program = Typer(add_completion=False)

    @program.command()
    def _(db: _Database = None, debug: _Debug = False) -> None:
        pass

    options = tuple(map(_plain, get_command(program).params[:2]))
    for option in options:
        option.expose_value = False
    return options


def _plain(parameter: Any) -> Any:
    # Typer builds the parameters itself and offers no place to name their class.
    match parameter:
        case TyperOption():
            parameter.__class__ = _PlainOption
        case TyperArgument():
            parameter.__class__ = _PlainArgument
    return parameter
