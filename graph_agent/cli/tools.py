"""The `tools` commands: what the agent can do, and how that went so far. They run nothing."""

from typing import Annotated

import typer

from graph_agent.cli.options import AsJson, Database
from graph_agent.cli.plain import PlainCommand, PlainGroup

__all__ = ["tools_app"]

tools_app = typer.Typer(
    help="List the tools, show one as the model gets it, count how they fared.",
    cls=PlainGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)

_Mode = Annotated[
    str | None, typer.Option("--mode", help="Say what is offered in this mode instead of the configured one.")
]


@tools_app.command("list", cls=PlainCommand)
def list_command(mode: _Mode = None, as_json: AsJson = False) -> None:
    """List every registered tool: its risk, its kind, where it comes from, whether the model is offered it."""
    from graph_agent.cli.views.tools import list_tools

    list_tools(mode, as_json=as_json)


@tools_app.command("show", cls=PlainCommand)
def show_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The tool's name.")],
    mode: _Mode = None,
    as_json: AsJson = False,
) -> None:
    """Show one tool: its description and the schema of its arguments, as the model gets them."""
    from graph_agent.cli.views.tools import show_tool

    show_tool(name, mode, as_json=as_json)


@tools_app.command("stats", cls=PlainCommand)
def stats_command(db: Database = None, as_json: AsJson = False) -> None:
    """Show how often each tool ran, how that ended and how long it took, over all threads."""
    from graph_agent.cli.views.place import database_of
    from graph_agent.cli.views.statistics import show_statistics

    show_statistics(database_of(db), as_json=as_json)
