"""The read-only commands as a program of their own, without the rest of the command line."""

import sys

import typer

from graph_agent.cli.command_types import PlainCommand, PlainGroup
from graph_agent.cli.commands.approvals import approvals_app, policy_app, recover_command
from graph_agent.cli.commands.threads import calls_command, graph_command, inspect_command, threads_app
from graph_agent.cli.exit_codes import run_guarded

__all__ = ["app"]

app = typer.Typer(cls=PlainGroup, rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False)
app.add_typer(threads_app, name="threads")
app.add_typer(approvals_app, name="approvals")
app.add_typer(policy_app, name="policy")
app.command("inspect", cls=PlainCommand)(inspect_command)
app.command("graph", cls=PlainCommand)(graph_command)
app.command("recover", cls=PlainCommand)(recover_command)
app.command("calls", cls=PlainCommand)(calls_command)


if __name__ == "__main__":
    sys.exit(run_guarded(app))
