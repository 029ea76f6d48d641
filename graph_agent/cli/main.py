"""The command line: which commands there are, and what happens when none is named.

Light on purpose: `--help` and `--version` load nothing but Typer; every command loads its own parts.

The commands of a program by name, each made when somebody asks for it.

Typer reads the whole signature of a command to make it; for all of them that takes longer than most commands run.
Knows no command.
"""

import inspect
import os
import sys
from collections.abc import Iterator, Mapping, MutableMapping
from typing import Annotated, Any

import typer
from typer import Typer
from typer.core import TyperCommand
from typer.main import get_command

from graph_agent.cli.command_types import PlainCommand, PlainGroup, ResumeCommand, write_examples
from graph_agent.cli.commands import session
from graph_agent.cli.commands.approvals import approvals_app, recover_command
from graph_agent.cli.commands.config import config_app, mcp_app, memory_app, model_app
from graph_agent.cli.commands.inspect import (
    calls_command,
    diff_command,
    graph_command,
    history_command,
    inspect_command,
)
from graph_agent.cli.commands.policy import policy_app, tools_app
from graph_agent.cli.commands.system import demo_command, doctor_command
from graph_agent.cli.commands.threads import threads_app
from graph_agent.cli.commands.time_travel import compact_command, fork_command, rewind_command
from graph_agent.cli.errors import run_guarded
from graph_agent.cli.options import DEBUG_HELP
from graph_agent.cli.startup import parse_run_options, print_result_on_signal
from graph_agent.cli.version import print_version

__all__ = ["LazyCommands", "LazyGroup", "app", "main", "single_command"]


def single_command(function: Any, kind: type[TyperCommand] = PlainCommand) -> Typer:
    """A program of one command."""
    program = Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    program.command(cls=kind)(function)
    return program


class LazyCommands(MutableMapping[str, Any]):
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


class LazyGroup(PlainGroup):
    """A group whose commands are `LateCommands`."""

    commands: LazyCommands

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """The list of commands, of which none has to be made."""
        PlainGroup(name=self.name, commands=self.commands.outlines()).format_commands(ctx, formatter)


def _purpose(program: Typer) -> str:
    if isinstance(program.info.help, str):
        return program.info.help
    return inspect.getdoc(program.registered_commands[0].callback) or ""


_PROGRAMS = {
    "chat": single_command(session.chat),
    "run": single_command(session.run, ResumeCommand),
    "resume": single_command(session.resume),
    "inspect": single_command(inspect_command),
    "fork": single_command(fork_command),
    "rewind": single_command(rewind_command),
    "compact": single_command(compact_command),
    "calls": single_command(calls_command),
    "recover": single_command(recover_command),
    "history": single_command(history_command),
    "graph": single_command(graph_command),
    "diff": single_command(diff_command),
    "doctor": single_command(doctor_command),
    "demo": single_command(demo_command),
    "threads": threads_app,
    "approvals": approvals_app,
    "policy": policy_app,
    "tools": tools_app,
    "memory": memory_app,
    "config": config_app,
    "mcp": mcp_app,
    "model": model_app,
}
"""What the program can be told to do, in the order of its help."""


class _Root(LazyGroup):
    """The program itself, whose options about completion may stand without the name of a shell."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = LazyCommands(_PROGRAMS)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Examples to begin with."""
        write_examples(ctx.command_path, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As for `run --resume`: an empty name is put in for the one that was left out."""
        bare = [name for name in ("--install-completion", "--show-completion") if args[:2] == [name]]
        return super().parse_args(ctx, [*bare, ""] if bare else args)


app = typer.Typer(
    name="graph-agent",
    help="A terminal coding agent you can kill: every tool call is a durable record.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    invoke_without_command=True,
    cls=_Root,
)


_TRACING = ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2")
"""Variables by which the libraries below would send every conversation to a service of their maker."""


_COMPLETION = "_GRAPH_AGENT_COMPLETE"
"""The variable by which a shell asks for completions: `line` gives the line up to the cursor, `words` its words."""


def main() -> int:
    """Run the command of `sys.argv`; returns the exit code."""
    for name in _TRACING:
        os.environ.pop(name, None)
    asked = os.environ.pop(_COMPLETION, "")
    return run_guarded(lambda: _complete(is_line=asked == "line") if asked else _run_command())


def _run_command() -> None:
    print_result_on_signal(*parse_run_options(sys.argv[1:]))
    app(prog_name="graph-agent")


@app.callback()
def root(
    context: typer.Context,
    show_version: Annotated[bool, typer.Option("--version", help="Show the version and leave.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help=DEBUG_HELP)] = False,
    install_completion: Annotated[
        str | None,
        typer.Option(
            "--install-completion",
            metavar="[SHELL]",
            help="Have bash, zsh or fish, else your shell, complete commands, options and ids.",
        ),
    ] = None,
    show_completion: Annotated[
        str | None,
        typer.Option(
            "--show-completion", metavar="[SHELL]", help="Print the script that does it, to put elsewhere."
        ),
    ] = None,
) -> None:
    """A terminal coding agent you can kill: every tool call is a durable record."""
    if debug:
        os.environ["GRAPH_AGENT_DEBUG"] = "1"
    if show_version:
        raise typer.Exit(print_version())
    if install_completion is not None or show_completion is not None:
        from graph_agent.cli.completion import install_script, show_script

        if install_completion is not None:
            install_script(install_completion)
        else:
            show_script(show_completion or "")
        raise typer.Exit
    if context.invoked_subcommand is None:
        _no_command(context)


def _complete(*, is_line: bool) -> None:
    """Print what may stand at the cursor of a shell; the first word is the program's own name."""
    from graph_agent.cli.completion import offered, split_line, tell_offers, values

    words = split_line(sys.argv[1] if sys.argv[1:] else "") if is_line else sys.argv[1:]
    tell_offers(offered(typer.main.get_command(app), words[1:] or [""], values), is_line=is_line)


def _no_command(context: typer.Context) -> None:
    """On a terminal the chat, with text on stdin one run, else the usage."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        session.chat_here()
    text = "" if sys.stdin.isatty() else sys.stdin.read()
    if text.strip():
        session.run_text(text)
    typer.echo(context.get_help(), err=True)
    raise typer.Exit(2)
