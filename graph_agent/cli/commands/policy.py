"""The `policy` and `tools` commands. They run no call."""

from typing import Annotated

from typer import Argument, Option

from graph_agent.cli.command_types import PlainCommand, command_group
from graph_agent.cli.options import AsJson, Database, resolve_database

__all__ = ["policy_app", "tools_app"]

policy_app = command_group("Check, list and revoke permission rules.")

_Mode = Annotated[str | None, Option("--mode", help="Evaluate in this mode. Default: the configured one.")]
_Workspace = Annotated[
    str | None, Option("--workspace", metavar="DIR", help="Evaluate for this folder. Default: the current one.")
]


@policy_app.command("list", cls=PlainCommand)
def list_command(db: Database = None, as_json: AsJson = False) -> None:
    """List the configured rules and the saved permissions."""
    from graph_agent.cli.views.policy import list_policy

    list_policy(resolve_database(db), as_json=as_json)


@policy_app.command("revoke", cls=PlainCommand)
def revoke_command(
    grant: Annotated[str, Argument(metavar="ID", help="Id of a permission; see `policy list`.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a saved permission. Takes effect on the next call."""
    from graph_agent.cli.views.policy import revoke_permission

    revoke_permission(resolve_database(db), grant, as_json=as_json)


@policy_app.command("check", cls=PlainCommand)
def check_command(
    tool: Annotated[str, Argument(metavar="TOOL", help="Tool name or alias.")],
    arguments: Annotated[str, Argument(metavar="JSON", help="Arguments, as one JSON object.")],
    mode: _Mode = None,
    workspace: _Workspace = None,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Show the decision for a call, the rule and the reason. Exit code: 0 allow, 3 ask, 4 deny."""
    from graph_agent.cli.views.policy import check_call

    check_call(resolve_database(db), tool, arguments, mode=mode, workspace=workspace, as_json=as_json)


@policy_app.command("test", cls=PlainCommand)
def cases_command(
    file: Annotated[str, Argument(metavar="FILE", help="Labelled cases, one JSON object per line.")],
    as_json: AsJson = False,
) -> None:
    """Test the policy against labelled cases. Exit code 1 if a decision is more permissive than its label."""
    from graph_agent.cli.views.policy import run_cases

    run_cases(file, as_json=as_json)


@policy_app.command("show", cls=PlainCommand)
def show_command(mode: _Mode = None, db: Database = None, as_json: AsJson = False) -> None:
    """Show the whole policy in the order of evaluation, with the source of each rule."""
    from graph_agent.cli.views.policy import show_policy

    show_policy(resolve_database(db), mode, as_json=as_json)


tools_app = command_group("List tools, show one, show usage statistics.")

_ModeTools = Annotated[
    str | None, Option("--mode", help="Show what is enabled in this mode. Default: the configured one.")
]


@tools_app.command("list", cls=PlainCommand)
def list_command_tools(mode: _ModeTools = None, as_json: AsJson = False) -> None:
    """List every registered tool with its risk, kind and origin, and whether the model can use it."""
    from graph_agent.cli.views.tools import list_tools

    list_tools(mode, as_json=as_json)


@tools_app.command("show", cls=PlainCommand)
def show_command_tools(
    name: Annotated[str, Argument(metavar="NAME", help="Tool name.")],
    mode: _ModeTools = None,
    as_json: AsJson = False,
) -> None:
    """Show one tool's description and argument schema, as the model receives them."""
    from graph_agent.cli.views.tools import show_tool

    show_tool(name, mode, as_json=as_json)


@tools_app.command("stats", cls=PlainCommand)
def stats_command(db: Database = None, as_json: AsJson = False) -> None:
    """Show how often each tool ran, its results and its run time, over all threads."""
    from graph_agent.cli.views.tools import show_statistics

    show_statistics(resolve_database(db), as_json=as_json)
