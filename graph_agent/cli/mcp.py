"""The `mcp` commands: which servers are configured, which are trusted, and whether one works."""

from typing import Annotated

import typer

from graph_agent.cli.options import AsJson
from graph_agent.cli.plain import PlainCommand, PlainGroup

__all__ = ["mcp_app"]

mcp_app = typer.Typer(
    help="List, trust and test the MCP servers whose tools the model may use.",
    cls=PlainGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)

_Name = Annotated[str, typer.Argument(metavar="NAME", help="The server's name in the configuration.")]


@mcp_app.command("list", cls=PlainCommand)
def list_command(as_json: AsJson = False) -> None:
    """List the configured servers; nothing is started."""
    from graph_agent.cli.views.mcp import list_servers

    list_servers(as_json=as_json)


@mcp_app.command("trust", cls=PlainCommand)
def trust_command(
    name: _Name,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Trust it no more.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let a server be started as it is configured now; when its configuration changes it has to be trusted anew."""
    from graph_agent.cli.views.mcp import trust

    trust(name, withdraw=withdraw, as_json=as_json)


@mcp_app.command("test", cls=PlainCommand)
def try_command(name: _Name, as_json: AsJson = False) -> None:
    """Start a trusted server, list its tools, end it; exit code 1 when it does not work."""
    from graph_agent.cli.views.mcp import try_out

    try_out(name, as_json=as_json)
