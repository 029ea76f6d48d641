"""The `policy` commands: what the rules say, and what was allowed always. They run nothing.

The `tools` commands: what the agent can do, and how that went so far. They run nothing.
"""

from typing import Annotated

import typer

from graph_agent.cli.command_types import PlainCommand, PlainGroup
from graph_agent.cli.options import AsJson, Database

__all__ = ["policy_app", "tools_app"]

policy_app = typer.Typer(
    help="Ask what the rules say to a call; list them and what was allowed always, take that back.",
    cls=PlainGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)

_Mode = Annotated[str | None, typer.Option("--mode", help="Judge in this mode instead of the configured one.")]
_Workspace = Annotated[
    str | None, typer.Option("--workspace", metavar="DIR", help="Judge as if working there instead of here.")
]


@policy_app.command("list", cls=PlainCommand)
def list_command(db: Database = None, as_json: AsJson = False) -> None:
    """List the rules of the config, and every grant: what was allowed always, where, in which mode, by whom."""
    from graph_agent.cli.views.format import resolve_database
    from graph_agent.cli.views.policy import list_policy

    list_policy(resolve_database(db), as_json=as_json)


@policy_app.command("revoke", cls=PlainCommand)
def revoke_command(
    grant: Annotated[str, typer.Argument(metavar="ID", help="Id of a grant, as `policy list` shows it.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Take a grant back; from its next call on every process asks again."""
    from graph_agent.cli.views.format import resolve_database
    from graph_agent.cli.views.policy import revoke_permission

    revoke_permission(resolve_database(db), grant, as_json=as_json)


@policy_app.command("check", cls=PlainCommand)
def check_command(
    tool: Annotated[str, typer.Argument(metavar="TOOL", help="The tool's name, or its alias.")],
    arguments: Annotated[str, typer.Argument(metavar="JSON", help="The call's arguments, as one JSON object.")],
    mode: _Mode = None,
    workspace: _Workspace = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Say what would become of a call, by which rule and why; exit code 0 allow, 3 ask, 4 deny."""
    from graph_agent.cli.views.format import resolve_database
    from graph_agent.cli.views.policy import check_call

    check_call(resolve_database(db), tool, arguments, mode=mode, workspace=workspace, as_json=as_json)


@policy_app.command("test", cls=PlainCommand)
def cases_command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Labelled cases, one JSON object a line.")],
    as_json: AsJson = False,
) -> None:
    """Decide the labelled cases of a file; exit code 1 when one is decided more permissively than labelled."""
    from graph_agent.cli.views.policy import run_cases

    run_cases(file, as_json=as_json)


@policy_app.command("show", cls=PlainCommand)
def show_command(mode: _Mode = None, db: Database = None, as_json: AsJson = False) -> None:
    """Show everything that judges a call, in order, with where it stands."""
    from graph_agent.cli.views.format import resolve_database
    from graph_agent.cli.views.policy import show_policy

    show_policy(resolve_database(db), mode, as_json=as_json)


tools_app = typer.Typer(
    help="List the tools, show one as the model gets it, count how they fared.",
    cls=PlainGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)

_ModeTools = Annotated[
    str | None, typer.Option("--mode", help="Say what is offered in this mode instead of the configured one.")
]


@tools_app.command("list", cls=PlainCommand)
def list_command_tools(mode: _ModeTools = None, as_json: AsJson = False) -> None:
    """List every registered tool: its risk, its kind, where it comes from, whether the model is offered it."""
    from graph_agent.cli.views.tools import list_tools

    list_tools(mode, as_json=as_json)


@tools_app.command("show", cls=PlainCommand)
def show_command_tools(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.")],
    mode: _ModeTools = None,
    as_json: AsJson = False,
) -> None:
    """Show one tool: its description and the schema of its arguments, as the model gets them."""
    from graph_agent.cli.views.tools import show_tool

    show_tool(name, mode, as_json=as_json)


@tools_app.command("stats", cls=PlainCommand)
def stats_command(db: Database = None, as_json: AsJson = False) -> None:
    """Show how often each tool ran, how that ended and how long it took, over all threads."""
    from graph_agent.cli.views.format import resolve_database
    from graph_agent.cli.views.statistics import show_statistics

    show_statistics(resolve_database(db), as_json=as_json)
