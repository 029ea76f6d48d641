"""Typer commands and groups whose string and boolean parameters skip Typer's validation.

Typer validates every value with pydantic, which takes longer to load than a read-only command takes to run.
"""

import os
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any

from typer import BadParameter, Option, Typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.exceptions import TyperException
from typer.main import get_command

from graph_agent.cli.options import DATABASE_HELP, DEBUG_HELP, describe_exit_codes, find_examples

__all__ = ["PlainCommand", "PlainGroup", "ResumeCommand", "ServerCommand", "command_group", "write_examples"]

_NO_LIMIT = 1000
"""Characters of a command's summary: its first sentence is wrapped, never cut."""

_ID_PARAMETERS = ("call", "checkpoint", "identifier", "new", "old", "resume", "target", "thread")
"""Parameters that take one id. An empty one is probably an unset variable."""

_NEWEST = "\0newest"
"""Placeholder for the missing ID of a bare `--resume`; no argument can contain it."""


class PlainCommand(TyperCommand):
    """A command; pass as `cls` to `Typer.command`. Every command takes `--db` and `--debug`."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The command's parameters, the shared options, and `--help`."""
        *own, help_option = [_make_plain(parameter) for parameter in super().get_params(ctx)]
        names = {parameter.name for parameter in own}
        return [*own, *(option for option in _shared_options() if option.name not in names), help_option]

    def get_short_help_str(self, limit: int = _NO_LIMIT) -> str:
        """The whole first sentence."""
        return super().get_short_help_str(max(limit, _NO_LIMIT))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples of the command."""
        write_examples(ctx.command_path, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as Typer does, without the validation library's prefix in messages, and reject empty ids."""
        try:
            remaining = super().parse_args(ctx, args)
        except BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise
        for name in () if ctx.resilient_parsing else _ID_PARAMETERS:
            if ctx.params.get(name) == "" and ctx.get_parameter_source(name).name == "COMMANDLINE":
                raise BadParameter("An ID is empty; is a variable unset? Give an ID, or leave the argument out.")
        return remaining


class ResumeCommand(PlainCommand):
    """A command whose `--resume` may be given without an ID, for the newest thread here."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert a placeholder after a bare `--resume`: the parser knows no options with an optional value."""
        filled: list[str] = []
        for argument, following in zip(args, [*args[1:], "-"], strict=False):
            is_bare = argument == "--resume" and following.startswith("-")
            filled += [argument, _NEWEST] if is_bare else [argument]
        remaining = super().parse_args(ctx, filled)
        if ctx.params.get("resume") == _NEWEST:
            ctx.params["resume"] = ""
        return remaining

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples and the exit codes."""
        super().format_epilog(ctx, formatter)
        with formatter.section("Exit codes"):
            formatter.write_text(describe_exit_codes())


class ServerCommand(PlainCommand):
    """A command that takes another command line after `--`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse as Typer does; the error for an unknown option explains `--`."""
        try:
            return super().parse_args(ctx, args)
        except TyperException as error:
            if "--" not in args and (option := getattr(error, "option_name", "")):
                error.message = (
                    f"No such option: {option}. If it belongs to the server's command, put -- before that command."
                )
            raise


class PlainGroup(TyperGroup):
    """A group of commands; pass as `cls` to `Typer`."""

    def get_short_help_str(self, limit: int = _NO_LIMIT) -> str:
        """The whole first sentence."""
        return super().get_short_help_str(max(limit, _NO_LIMIT))

    def get_params(self, ctx: Any) -> list[Any]:
        """The group's parameters."""
        return [_make_plain(parameter) for parameter in super().get_params(ctx)]


def command_group(help_text: str) -> Typer:
    """A Typer app for a group of commands; without a command it prints its help."""
    return Typer(help=help_text, cls=PlainGroup, no_args_is_help=True, rich_markup_mode=None, add_completion=False)


def write_examples(path: str, formatter: Any) -> None:
    """Write the examples of the command with this path below its help."""
    if lines := find_examples(path):
        formatter.write("\nExamples:\n" + "".join(f"  {line}\n" for line in lines))


class _LazyConverter:
    """Passes strings and booleans through; builds Typer's converter only for other types."""

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
        return _LazyConverter(self.type_descriptor.annotation, super().get_runtime_param)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        found = _complete_values(self, ctx, incomplete)
        return super().shell_complete(ctx, incomplete) if found is None else found


class _PlainArgument(TyperArgument):
    multiple = False

    def get_runtime_param(self) -> Any:
        return _LazyConverter(self.type_descriptor.annotation, super().get_runtime_param)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        found = _complete_values(self, ctx, incomplete)
        return super().shell_complete(ctx, incomplete) if found is None else found


def _complete_values(parameter: Any, ctx: Any, incomplete: str) -> list[Any] | None:
    """What the database and the settings offer; None if Typer knows the values from the parameter's type."""
    if parameter.type_descriptor.is_choice:
        return None
    from graph_agent.cli.completion import complete_parameter

    return complete_parameter(ctx, parameter.name, incomplete)


def _make_plain(parameter: Any) -> Any:
    # Typer builds the parameters itself and has no setting for their class.
    match parameter:
        case TyperOption():
            parameter.__class__ = _PlainOption
        case TyperArgument():
            parameter.__class__ = _PlainArgument
    return parameter


@cache
def _shared_options() -> tuple[Any, ...]:
    """`--db` and `--debug` for commands that do not declare them: both are passed on in the environment."""
    program = Typer(add_completion=False)

    def set_database(db: str | None) -> str | None:
        if db:
            os.environ["GRAPH_AGENT_DB"] = db
        return db

    def set_debug(*, debug: bool) -> bool:
        if debug:
            os.environ["GRAPH_AGENT_DEBUG"] = "1"
        return debug

    @program.command()
    def _(
        db: Annotated[str | None, Option("--db", metavar="FILE", help=DATABASE_HELP, callback=set_database)] = None,
        debug: Annotated[bool, Option("--debug", help=DEBUG_HELP, callback=set_debug, hidden=True)] = False,
    ) -> None:
        pass

    options = tuple(map(_make_plain, get_command(program).params[:2]))
    for option in options:
        option.expose_value = False
    return options
