"""The command line: its commands, and what runs if none is given.

`--help` and `--version` load only Typer. Building a command makes Typer read its whole signature, so each command
is built when it is first used, and its body imports what it needs.
"""

import inspect
import os
import sys
from collections import UserDict
from typing import Annotated, Any

import typer
from typer import Option, Typer
from typer.core import TyperCommand
from typer.main import get_command

from graph_agent.cli.command_types import PlainCommand, PlainGroup, ResumeCommand, write_examples
from graph_agent.cli.commands import session
from graph_agent.cli.commands.approvals import approvals_app, policy_app, recover_command, tools_app
from graph_agent.cli.commands.config import config_app, doctor_command, mcp_app, memory_app, model_app
from graph_agent.cli.commands.threads import (
    calls_command,
    compact_command,
    diff_command,
    fork_command,
    graph_command,
    history_command,
    inspect_command,
    rewind_command,
    threads_app,
)
from graph_agent.cli.exit_codes import run_guarded
from graph_agent.cli.options import DEBUG_HELP
from graph_agent.cli.startup import parse_run_options, print_result_on_signal, print_version

__all__ = ["LazyCommands", "LazyGroup", "app", "main", "single_command"]

_TRACING = ("LANGSMITH_TRACING", "LANGSMITH_TRACING_V2", "LANGCHAIN_TRACING", "LANGCHAIN_TRACING_V2")
"""Variables that make LangChain send every conversation to LangSmith."""

_COMPLETION = "_GRAPH_AGENT_COMPLETE"
"""Variable by which a shell asks for completions: `line` passes the line up to the cursor, `words` its words."""


def main() -> int:
    """Run the command of `sys.argv`; returns the exit code."""
    for name in _TRACING:
        os.environ.pop(name, None)
    protocol = os.environ.pop(_COMPLETION, "")

    def run_command() -> None:
        if protocol:
            from graph_agent.cli.completion import print_completions

            print_completions(get_command(app), sys.argv[1:], is_line=protocol == "line")
        else:
            print_result_on_signal(*parse_run_options(sys.argv[1:]))
            app(prog_name="graph-agent")

    return run_guarded(run_command)


def single_command(function: Any, kind: type[TyperCommand] = PlainCommand) -> Typer:
    """A Typer app with one command."""
    program = Typer(rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
    program.command(cls=kind)(function)
    return program


class LazyCommands(UserDict[str, Any]):
    """The commands of a group by name. Each is a Typer app until it is looked up, then the built command."""

    def __getitem__(self, name: str) -> Any:
        if isinstance(self.data[name], Typer):
            self.data[name] = get_command(self.data[name])
            self.data[name].name = name
        return self.data[name]

    def outlines(self) -> dict[str, Any]:
        """What a list of the commands needs: the built ones, and stand-ins with name and help for the others."""
        outlines = dict(self.data)
        for name, program in self.data.items():
            if isinstance(program, Typer):
                text = program.info.help
                if not isinstance(text, str):
                    text = inspect.getdoc(program.registered_commands[0].callback) or ""
                outlines[name] = PlainCommand(name, help=text)
        return outlines


class LazyGroup(PlainGroup):
    """A group whose commands are `LazyCommands`."""

    commands: LazyCommands

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands without building them."""
        PlainGroup(name=self.name, commands=self.commands.outlines()).format_commands(ctx, formatter)


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
    "demo": single_command(session.demo),
    "threads": threads_app,
    "approvals": approvals_app,
    "policy": policy_app,
    "tools": tools_app,
    "memory": memory_app,
    "config": config_app,
    "mcp": mcp_app,
    "model": model_app,
}
"""The commands, in the order of the help."""


class _Root(LazyGroup):
    """The program itself."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = LazyCommands(_PROGRAMS)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write examples, and where the terms are explained."""
        write_examples(ctx.command_path, formatter)
        formatter.write("\nIDs can be shortened to any unique prefix or suffix of four or more characters.\n")
        formatter.write("Terms (thread, checkpoint, call, ...): docs/glossary.md\n")

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert an empty shell name after a bare `--install-completion` or `--show-completion`."""
        is_bare = args in (["--install-completion"], ["--show-completion"])
        return super().parse_args(ctx, [*args, ""] if is_bare else args)


app = Typer(
    name="graph-agent",
    help="A terminal coding agent you can kill: every tool call is a durable record.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    invoke_without_command=True,
    cls=_Root,
)


@app.callback()
def root(
    context: typer.Context,
    show_version: Annotated[bool, Option("--version", help="Show the version and exit.")] = False,
    debug: Annotated[bool, Option("--debug", help=DEBUG_HELP)] = False,
    install_completion: Annotated[
        str | None,
        Option(
            "--install-completion",
            metavar="[SHELL]",
            help="Install shell completion for bash, zsh or fish. Default: your shell.",
        ),
    ] = None,
    show_completion: Annotated[
        str | None, Option("--show-completion", metavar="[SHELL]", help="Print the completion script.")
    ] = None,
) -> None:
    """A terminal coding agent you can kill: every tool call is a durable record."""
    if debug:
        os.environ["GRAPH_AGENT_DEBUG"] = "1"
    if show_version:
        raise typer.Exit(print_version())
    if install_completion is not None or show_completion is not None:
        from graph_agent.cli.completion import install_script, print_script

        if install_completion is not None:
            install_script(install_completion)
        else:
            print_script(show_completion or "")
        raise typer.Exit
    if context.invoked_subcommand is not None:
        return
    # Without a command: the chat on a terminal, one run with text on stdin, else the usage.
    if sys.stdin.isatty() and sys.stdout.isatty():
        session.chat()
    text = "" if sys.stdin.isatty() else sys.stdin.read()
    if text.strip():
        session.run(text)
    typer.echo(context.get_help(), err=True)
    raise typer.Exit(2)
