"""The command line: its commands, and what runs if none is given.

`--help` and `--version` load only Typer. Building a command makes Typer read its whole signature, so each command
is built when it is first used, and its body imports what it needs.
"""

import inspect
import os
import shlex
import sys
from collections import UserDict
from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer import Option, Typer
from typer._click.exceptions import NoSuchOption
from typer.core import TyperCommand
from typer.main import get_command, get_group

from graph_agent.cli.arguments import expand_arguments, find_similar, find_similar_option, read_stdin
from graph_agent.cli.command_types import (
    PlainCommand,
    PlainGroup,
    ResumeCommand,
    RunCommand,
    print_completions,
    write_examples,
)
from graph_agent.cli.commands import session
from graph_agent.cli.commands.approvals import agents_app, approvals_app, policy_app, recover_command, tools_app
from graph_agent.cli.commands.config import (
    config_app,
    db_app,
    doctor_command,
    init_command,
    mcp_app,
    memory_app,
    model_app,
    update_command,
)
from graph_agent.cli.commands.tasks import tasks_app, top_command, worker_command, worktrees_app
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
            # A group is one even with a single command.
            is_group = isinstance(self.data[name].info.help, str)
            self.data[name] = (get_group if is_group else get_command)(self.data[name])
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
    "chat": single_command(session.chat, ResumeCommand),
    "run": single_command(session.run, RunCommand),
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
    "update": single_command(update_command),
    "init": single_command(init_command),
    "acp": single_command(session.acp),
    "web": single_command(session.web),
    "demo": single_command(session.demo),
    "worker": single_command(worker_command),
    "top": single_command(top_command),
    "tasks": tasks_app,
    "worktrees": worktrees_app,
    "threads": threads_app,
    "approvals": approvals_app,
    "policy": policy_app,
    "tools": tools_app,
    "agents": agents_app,
    "memory": memory_app,
    "config": config_app,
    "mcp": mcp_app,
    "model": model_app,
    "db": db_app,
}
"""The commands, in the order of the help."""


_SESSION_OPTIONS = (
    (
        "-p, --print TEXT",
        "Run one turn non-interactively, as `run` does, and print the answer. Piped input is added.",
    ),
    ("-c, --continue", "Continue the newest thread of this folder."),
    ("-r, --resume [ID]", "Resume a thread or checkpoint. Default: the newest thread here."),
    ("-m, --model NAME", "Model or profile. Default: the configured one."),
    ("-i, --image FILE", "Attach an image to the prompt; repeatable."),
    ("--mode MODE", "Permission mode."),
)
"""What the help lists of the options of `chat` and `run`, which all work without a command too."""


class _Root(LazyGroup):
    """The program itself."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = LazyCommands(_PROGRAMS)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the line, with its command and with an empty shell name after a bare `--install-completion`."""
        if args in (["--install-completion"], ["--show-completion"]):
            args = [*args, ""]
        try:
            return super().parse_args(ctx, expand_arguments(args))
        except NoSuchOption as error:
            error.possibilities = find_similar_option(error.option_name) or error.possibilities
            raise

    def describe_unknown(self, ctx: Any, words: Sequence[str]) -> str:
        """What to say about words that begin with no command: a prompt without quotes, or a mistyped command."""
        if near := find_similar(words[0]):
            commands = " or ".join(f"`{ctx.command_path} {one}`" for one in near)
            prompt = shlex.join([" ".join(words)])
            return (
                f"Unknown command {words[0]}. Did you mean {commands}?\n"
                f"To send it as a prompt: {ctx.command_path} -- {prompt}"
            )
        return f"Put a prompt of several words in quotes: {ctx.command_path} {shlex.join([' '.join(words)])}"

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The commands and options, also those of a session."""
        items = super().shell_complete(ctx, incomplete)
        if not incomplete.startswith("-"):
            return items
        command = self.commands["run"]
        found = {item.value: item for item in items}
        for item in command.shell_complete(
            command.make_context("run", [], ctx, resilient_parsing=True), incomplete
        ):
            found.setdefault(item.value, item)
        return list(found.values())

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        """Write both forms of the line."""
        formatter.write_usage(ctx.command_path, "[OPTIONS] [PROMPT]")
        formatter.write_usage(ctx.command_path, "COMMAND [OPTIONS]", prefix="       ")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options of a session before those of the program."""
        with formatter.section("Without a command: chat on a terminal, else one `run`"):
            formatter.write_dl(_SESSION_OPTIONS)
            formatter.write_text("All other options of `chat`, and with --print of `run`, work here too.")
        super().format_options(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write examples, and where the terms are explained."""
        write_examples(ctx.command_path, formatter)
        formatter.write_paragraph()
        formatter.write_text("IDs can be shortened to a unique prefix or suffix of four or more characters.")
        formatter.write_text("Terms (thread, checkpoint, call, ...): docs/glossary.md")


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
    show_version: Annotated[bool, Option("-V", "--version", help="Show the version and exit.")] = False,
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
    text = "" if sys.stdin.isatty() else read_stdin()
    if text.strip():
        session.run(text)
    typer.echo(context.get_help(), err=True)
    raise typer.Exit(2)
