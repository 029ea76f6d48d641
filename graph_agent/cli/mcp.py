"""The `mcp` commands: which servers are configured, which are trusted, and whether one works."""

from enum import StrEnum
from typing import Annotated

import typer

from graph_agent.cli.options import AsJson
from graph_agent.cli.plain import PlainCommand, PlainGroup, StartingCommand

__all__ = ["Scope", "mcp_app"]

mcp_app = typer.Typer(
    help="Add, list, trust and test the MCP servers whose tools the model may use.",
    cls=PlainGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


class Scope(StrEnum):
    """Whose config file is meant."""

    user = "user"
    project = "project"


_Name = Annotated[str, typer.Argument(metavar="NAME", help="The server's name in the configuration.")]
_Scope = Annotated[
    Scope, typer.Option("--scope", help="Your own config.toml, or .graph-agent/config.toml of this folder.")
]

_Env = Annotated[
    list[str] | None,
    typer.Option("--env", metavar="KEY=VALUE", help="A variable it gets; KEY alone passes yours on. Repeatable."),
]
_Header = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="NAME=VALUE", help="A header of each request to the URL. Repeatable."),
]


@mcp_app.command("list", cls=PlainCommand)
def list_command(as_json: AsJson = False) -> None:
    """List the configured servers and whether each can be started; nothing is started."""
    from graph_agent.cli.views.mcp import list_servers

    list_servers(as_json=as_json)


@mcp_app.command("add", cls=StartingCommand)
def add_command(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A name of your choice; with --from, one of the file.")
    ] = None,
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND ARGS", help="What starts the server, after --.")
    ] = None,
    *,
    url: Annotated[
        str | None, typer.Option("--url", metavar="URL", help="Reach a running server instead (streamable HTTP).")
    ] = None,
    env: _Env = None,
    header: _Header = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", help="How long a call may take.")
    ] = None,
    startup_timeout: Annotated[
        float | None, typer.Option("--startup-timeout", metavar="SECONDS", help="How long it may take to start.")
    ] = None,
    network: Annotated[bool, typer.Option("--network", help="Open the network to it in the sandbox.")] = False,
    scope: _Scope = Scope.user,
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="FILE", help='Take servers from another client\'s JSON ("mcpServers").'),
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace a server of the same name.")] = False,
    trust: Annotated[bool, typer.Option("--trust", help="Trust it without asking.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add a server to the configuration, show what it will run and ask whether to trust it."""
    from graph_agent.cli.views.servers_added import Wish, add

    wish = Wish(name, tuple(command or ()), url, tuple(env or ()), tuple(header or ()), source)
    numbers = {"timeout": timeout, "startup_timeout": startup_timeout, "network": network or None}
    add(wish, numbers, scope.value, replaces=replace, trusts=trust, as_json=as_json)


@mcp_app.command("remove", cls=PlainCommand)
def remove_command(name: _Name, scope: _Scope = Scope.user, as_json: AsJson = False) -> None:
    """Take a server out of the configuration, and back the trust in it."""
    from graph_agent.cli.views.servers_added import remove

    remove(name, scope.value, as_json=as_json)


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
