"""The command line: which commands there are, and what happens when none is named.

Light on purpose: `--help` and `--version` load nothing but Typer; every command loads its own parts.
"""

import os
import sys
from typing import Annotated, Any

import typer

from graph_agent.cli import commands
from graph_agent.cli.approvals import approvals_app
from graph_agent.cli.boundary import guarded
from graph_agent.cli.calls import calls_command
from graph_agent.cli.compact import compact_command
from graph_agent.cli.config import config_app
from graph_agent.cli.demo import demo_command
from graph_agent.cli.diff import diff_command
from graph_agent.cli.doctor import doctor_command
from graph_agent.cli.graph import graph_command
from graph_agent.cli.history import history_command
from graph_agent.cli.inspect import inspect_command
from graph_agent.cli.late import LateCommands, LateGroup, single
from graph_agent.cli.mcp import mcp_app
from graph_agent.cli.memory import memory_app
from graph_agent.cli.model import model_app
from graph_agent.cli.options import DEBUG_HELP
from graph_agent.cli.plain import ResumingCommand, write_examples
from graph_agent.cli.policy import policy_app
from graph_agent.cli.recover import recover_command
from graph_agent.cli.starting import asked_for, tell_if_cut
from graph_agent.cli.threads import threads_app
from graph_agent.cli.tools import tools_app
from graph_agent.cli.travel import fork_command, rewind_command
from graph_agent.cli.version import tell_version

__all__ = ["app", "main"]

_PROGRAMS = {
    "chat": single(commands.chat),
    "run": single(commands.run, ResumingCommand),
    "resume": single(commands.resume),
    "inspect": single(inspect_command),
    "fork": single(fork_command),
    "rewind": single(rewind_command),
    "compact": single(compact_command),
    "calls": single(calls_command),
    "recover": single(recover_command),
    "history": single(history_command),
    "graph": single(graph_command),
    "diff": single(diff_command),
    "doctor": single(doctor_command),
    "demo": single(demo_command),
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


class _Root(LateGroup):
    """The program itself, whose options about completion may stand without the name of a shell."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = LateCommands(_PROGRAMS)

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
    return guarded(lambda: _complete(is_line=asked == "line") if asked else _run_command())


def _run_command() -> None:
    tell_if_cut(*asked_for(sys.argv[1:]))
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
        raise typer.Exit(tell_version())
    if install_completion is not None or show_completion is not None:
        from graph_agent.cli.shells import install_script, show_script

        if install_completion is not None:
            install_script(install_completion)
        else:
            show_script(show_completion or "")
        raise typer.Exit
    if context.invoked_subcommand is None:
        _no_command(context)


def _complete(*, is_line: bool) -> None:
    """Print what may stand at the cursor of a shell; the first word is the program's own name."""
    from graph_agent.cli.completing import offered, split_line
    from graph_agent.cli.offers import values
    from graph_agent.cli.shells import tell_offers

    words = split_line(sys.argv[1] if sys.argv[1:] else "") if is_line else sys.argv[1:]
    tell_offers(offered(typer.main.get_command(app), words[1:] or [""], values), is_line=is_line)


def _no_command(context: typer.Context) -> None:
    """On a terminal the chat, with text on stdin one run, else the usage."""
    if sys.stdin.isatty() and sys.stdout.isatty():
        commands.chat_here()
    text = "" if sys.stdin.isatty() else sys.stdin.read()
    if text.strip():
        commands.run_text(text)
    typer.echo(context.get_help(), err=True)
    raise typer.Exit(2)
