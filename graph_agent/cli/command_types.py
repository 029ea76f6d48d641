"""Typer commands and groups whose parameters skip Typer's validation, and whose help and errors are for people.

Typer validates every value with pydantic, which takes longer to load than a read-only command takes to run.
"""

import itertools
import math
import os
import re
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer import BadParameter, Option, Typer
from typer._click.exceptions import BadOptionUsage, MissingParameter, NoArgsIsHelpError, NoSuchOption, UsageError
from typer._click.shell_completion import CompletionItem, ShellComplete, split_arg_string
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption
from typer.main import get_command

from graph_agent.cli.arguments import OTHER_OPTIONS
from graph_agent.cli.exit_codes import print_early_failure
from graph_agent.cli.options import DATABASE_HELP, DEBUG_HELP, describe_exit_codes, find_examples
from graph_agent.wording import escape

__all__ = [
    "LineCompletion",
    "PlainCommand",
    "PlainGroup",
    "ResumeCommand",
    "RunCommand",
    "ServerCommand",
    "command_group",
    "print_completions",
    "write_examples",
]

_NO_LIMIT = 1000
"""Characters of a command's summary: its first sentence is wrapped, never cut."""

_ID_PARAMETERS = ("call", "checkpoint", "identifier", "new", "old", "resume", "target", "thread")
"""Parameters that take one id. An empty one is probably an unset variable."""

_NEWEST = "\0newest"
"""Placeholder for the missing ID of a bare `--resume`; no argument can contain it."""

_INDENT = 2
_SHELL_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|\S)+""")

_HELP = {"help_option_names": ["-h", "--help"]}
_ABOVE_ZERO = 0.01
"""A smaller minimum of a fraction only means that zero makes no sense."""


class PlainCommand(TyperCommand):
    """A command; pass as `cls` to `Typer.command`. Every command takes `-h`, `--db` and `--debug`."""

    allow_extra_args = True  # Checked below, with a message that says what to do.

    def __init__(self, *names: Any, **settings: Any) -> None:
        super().__init__(
            *names, **{**settings, "context_settings": _HELP | (settings.get("context_settings") or {})}
        )

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
        """Parse as Typer does, and reject empty ids and arguments that are left over."""
        words = list(itertools.takewhile(lambda word: not word.startswith("-"), args))
        try:
            remaining = super().parse_args(ctx, args)
        except UsageError as error:
            error.ctx = error.ctx or ctx  # The parser leaves it out of some errors.
            if isinstance(error, NoSuchOption):
                _explain_option(error, ctx, words)
            raise
        if remaining and not ctx.resilient_parsing:
            extra = ", ".join(map(repr, remaining))
            ctx.fail(f"Too many arguments: {extra}. Put text with spaces in quotes.")
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
            is_bare = argument in ("-r", "--resume") and following.startswith("-")
            filled += [argument, _NEWEST] if is_bare else [argument]
        remaining = super().parse_args(ctx, filled)
        if ctx.params.get("resume") == _NEWEST:
            ctx.params["resume"] = ""
        return remaining


class RunCommand(ResumeCommand):
    """The command whose help lists the exit codes."""

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
        except NoSuchOption as error:
            if "--" not in args:
                near = [f" Did you mean {one}?" for one in (error.possibilities or ())[:1]]
                error.message = (
                    f"Unknown option {error.option_name}.{''.join(near)} "
                    "If it belongs to the server's command, put -- before that command."
                )
                error.possibilities = None
            raise


class PlainGroup(TyperGroup):
    """A group of commands; pass as `cls` to `Typer`."""

    def __init__(self, **settings: Any) -> None:
        settings["context_settings"] = _HELP | (settings.get("context_settings") or {})
        super().__init__(**{**settings, "subcommand_metavar": "COMMAND"})

    def main(self, *arguments: Any, **settings: Any) -> Any:
        """Run as a program; errors are printed in the words of this program."""
        if not settings.get("standalone_mode", True):
            return super().main(*arguments, **settings)
        try:
            code = super().main(*arguments, **{**settings, "standalone_mode": False})
        except UsageError as error:
            from graph_agent.cli.views.table import wrap_message

            described = _describe_error(error)
            print_early_failure(described.partition("\n")[0].removeprefix("graph-agent: "))
            sys.stderr.write(f"{wrap_message(described)}\n")
            code = error.exit_code
        except typer.Abort:
            sys.stderr.write("graph-agent: Aborted.\n")
            code = 1
        sys.exit(code if isinstance(code, int) else 0)

    def get_short_help_str(self, limit: int = _NO_LIMIT) -> str:
        """The whole first sentence."""
        return super().get_short_help_str(max(limit, _NO_LIMIT))

    def get_params(self, ctx: Any) -> list[Any]:
        """The group's parameters."""
        return [_make_plain(parameter) for parameter in super().get_params(ctx)]

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command of the first word.

        Raises:
            UsageError: there is none; the message names the likeliest one.
        """
        if args[0] not in self.commands and not ctx.resilient_parsing:
            ctx.fail(self.describe_unknown(ctx, args))
        return super().resolve_command(ctx, args)

    def describe_unknown(self, ctx: Any, words: Sequence[str]) -> str:
        """What to say about words that begin with no command of this group."""
        near = get_close_matches(words[0], self.commands, n=1)
        hint = f"Did you mean `{ctx.command_path} {near[0]}`?" if near else f"Commands: {', '.join(self.commands)}."
        return f"Unknown command {' '.join(ctx.command_path.split()[1:])} {words[0]}. {hint}"


def _describe_error(error: UsageError) -> str:
    """What was wrong, the usage if it helps, and where the help is."""
    if isinstance(error, NoArgsIsHelpError):
        return str(error.message)
    context = error.ctx
    name = getattr(getattr(error, "param", None), "label", "")
    match error:
        case MissingParameter():
            message, shows_usage = f"{name} is missing.", True
        case NoSuchOption(message=message):
            slip = sorted(error.option_name)
            near = sorted(error.possibilities or (), key=lambda one: sorted(one) != slip)[:1]
            if message.startswith("No such option"):
                message = f"Unknown option {error.option_name}."
            message += f" Did you mean {near[0]}?" if near else _known_options(context)
            shows_usage = False
        case BadOptionUsage(message=message):
            needs = "takes no value" if "does not take" in message else "needs a value"
            message, shows_usage = f"{error.option_name} {needs}.", True
        case _:
            message, shows_usage = error.message, False
    lines = [f"graph-agent: {message}"]
    if context is not None:
        lines += [context.get_usage()] if shows_usage else []
        lines.append(f"Help: {context.command_path} --help")
    return escape("\n".join(lines), multiline=True)


def _explain_option(error: NoSuchOption, context: Any, words: Sequence[str]) -> None:
    """Say what an unknown option probably was, given the words before it."""
    meant = OTHER_OPTIONS.get(error.option_name, "")
    if meant and _has_option(context, meant.split()[0]):
        error.possibilities = [meant]
    arguments = [one for one in context.command.get_params(context) if one.param_type_name == "argument"]
    if arguments and len(words) >= len(arguments) and not error.possibilities:
        error.message = f"Unknown option {error.option_name}. If it belongs to the text, put the text in quotes."


def _has_option(context: Any, name: str) -> bool:
    return any(name in one.opts for one in context.command.get_params(context))


def _known_options(context: Any) -> str:
    """The options of a command, where none resembles what was typed; a group lists its commands likewise."""
    if context is None or not isinstance(context.command, PlainCommand):
        return ""
    shown = [one for one in context.command.get_params(context) if isinstance(one, _PlainOption) and not one.hidden]
    names = [max(one.opts, key=len) for one in shown]
    return f" Options: {', '.join(name for name in names if name != '--help')}."


def command_group(help_text: str) -> Typer:
    """A Typer app for a group of commands; without a command it prints its help."""
    return Typer(help=help_text, cls=PlainGroup, no_args_is_help=True, rich_markup_mode=None, add_completion=False)


def write_examples(path: str, formatter: Any) -> None:
    """Write the examples of the command with this path below its help."""
    if lines := find_examples(path):
        from graph_agent.cli.views.table import line_width

        width = line_width()
        formatter.write("\nExamples:\n" + "".join(f"  {_fold_command(line, width)}\n" for line in lines))


def _fold_command(line: str, width: int | None) -> str:
    """The command line, folded with backslashes, so that it can still be pasted into a shell."""
    if width is None or len(line) + _INDENT <= width:
        return line
    folded, taken = "", _INDENT
    for word in _SHELL_WORD.findall(line):
        if folded and taken + len(word) + len(" \\") >= width:
            folded, taken = f"{folded.rstrip()} \\\n{' ' * 2 * _INDENT}", 2 * _INDENT
        folded, taken = f"{folded}{word} ", taken + len(word) + 1
    return folded.rstrip()


class _Converter:
    """Converts a value without the validation library."""

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value as the command takes it.

        Raises:
            BadParameter: it is not a number, out of range, or none of the choices.
        """
        kind = self._annotation
        if value is None:
            return () if param.multiple or param.nargs == -1 else None
        if kind in (str, bool) or (isinstance(kind, type) and isinstance(value, kind)):
            return value
        if kind == list[str]:
            return list(value)
        if kind in (int, float):
            return _to_number(value, param, ctx)
        if kind is Path:
            return Path(value)
        choices = {str(one.value): one for one in kind}
        if value not in choices:
            raise BadParameter(
                f"{param.label.split()[0]} {value!r} is not one of: {', '.join(choices)}.", ctx=ctx, param=param
            )
        return choices[value]


def _to_number(text: str, parameter: Any, context: Any) -> int | float:
    is_whole, least, most = parameter.type_descriptor.annotation is int, parameter.min, parameter.max
    try:
        number = int(text) if is_whole else float(text)
    except ValueError:
        number = math.nan
    if math.isfinite(number) and (least is None or number >= least) and (most is None or number <= most):
        return number
    wanted = "a whole number" if is_whole else "a number"
    if most is not None:
        wanted += f" from {least or 0} to {most}"
    elif least is not None:
        wanted += " above 0" if 0 < least < _ABOVE_ZERO else f" of {least} or more"
    name = parameter.label.split()[0]
    raise BadParameter(f"{name} {text!r} is not {wanted}.", ctx=context, param=parameter)


class _PlainOption(TyperOption):
    @property
    def label(self) -> str:
        """Its long name with what its value is called."""
        name = max(self.opts, key=len)
        return name if self.is_flag else f"{name} {self._value_name}"

    @property
    def _value_name(self) -> str:
        choices = self.type_descriptor.choices
        return self.metavar or "|".join(str(one.value) for one in choices or ()) or self.name.upper()

    def get_runtime_param(self) -> Any:
        return _Converter(self.type_descriptor.annotation)

    def get_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002 - the shape of Typer's method
        return [self.label] if self.required else []

    def display_type_rich(self, ctx: Any) -> str:  # noqa: ARG002 - the shape of Typer's method
        return self._value_name

    def _get_number_range_help_str(self) -> None:
        return None

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        found = _complete_values(self, ctx, incomplete)
        return super().shell_complete(ctx, incomplete) if found is None else found


class _PlainArgument(TyperArgument):
    multiple = False

    @property
    def label(self) -> str:
        """What it is called."""
        return (self.metavar or self.name.upper()).strip("[]")

    def get_runtime_param(self) -> Any:
        return _Converter(self.type_descriptor.annotation)

    def get_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002 - as above
        return [self.label if self.required else f"[{self.label}]"]

    def get_help_record(self, ctx: Any) -> tuple[str, str]:  # noqa: ARG002 - as above
        return self.label, self.help or ""

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        found = _complete_values(self, ctx, incomplete)
        return super().shell_complete(ctx, incomplete) if found is None else found


def _complete_values(parameter: Any, ctx: Any, incomplete: str) -> list[CompletionItem] | None:
    """What the database and the settings offer; None if Typer knows the values from the parameter's type."""
    if parameter.type_descriptor.is_choice:
        return None
    from graph_agent.cli.completion import FILES, SOURCES, find_values

    group = ctx.parent.info_name if ctx.parent else ""
    source = SOURCES.get(f"{group} {parameter.name}") or SOURCES.get(parameter.name)
    if source is None:
        return None
    return [
        CompletionItem(incomplete, type="file") if one == FILES else CompletionItem(one.value, help=one.help)
        for one in find_values(source, ctx.params.get("db"), incomplete)
    ]


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


def print_completions(program: Any, arguments: Sequence[str], *, is_line: bool) -> None:
    """Print the completions, one per line: the value, a tab, its help text.

    Args:
        arguments: the words up to the cursor, beginning with the program's name; with `is_line`, as bash asks, one
            word that holds the whole line.
    """
    text = LineCompletion(program, arguments, is_line=is_line).complete()
    sys.stdout.write(f"{text}\n" if text else "")


class LineCompletion(ShellComplete):
    """Typer's completion, with the protocol of our scripts, see `completion`."""

    name = "graph-agent"
    source_template = ""

    def __init__(self, program: Any, arguments: Sequence[str], *, is_line: bool) -> None:
        super().__init__(program, {}, "graph-agent", "_GRAPH_AGENT_COMPLETE")
        self._is_line = is_line
        self._words = list(arguments)
        if is_line:
            line = "".join(arguments)
            self._words = words = split_arg_string(line)
            if not words or (line[-1:].isspace() and not words[-1][-1:].isspace()):
                words.append("")  # The cursor is on a new word.

    def source_vars(self) -> dict[str, Any]:
        """Nothing: our scripts are not templates."""
        return {}

    def get_completion_args(self) -> tuple[list[str], str]:
        """The complete words, and the incomplete last one."""
        *complete, incomplete = self._words[1:] or [""]
        return complete, incomplete

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem]:
        """The completions; the value of `--name=value` comes with its name, because the shells replace the word."""
        name, sign, _ = incomplete.partition("=")
        items = super().get_completions(list(args), incomplete)
        if not sign or not incomplete.startswith("-") or "--" in args:
            return items
        return [
            item if item.type == "file" else CompletionItem(f"{name}={item.value}", help=item.help)
            for item in items
        ]

    def format_completion(self, item: CompletionItem) -> str:
        """One line."""
        from graph_agent.cli.completion import FILES, Value

        value = FILES if item.type == "file" else Value(item.value, item.help or "")
        return value.as_line(is_quoted=self._is_line)
