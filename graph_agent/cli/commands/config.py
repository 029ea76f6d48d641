"""The `config` commands: what is set, where it comes from, and how to set it.

The `model` commands: which model answers.

The `memory` commands: what the agent remembers for every thread, in a file of the user's own.

The `mcp` commands: which servers are configured, which are trusted, and whether one works.
"""

from enum import StrEnum
from typing import Annotated

import typer

from graph_agent.cli.command_types import PlainCommand, PlainGroup, ServerCommand
from graph_agent.cli.options import AsJson, Database

__all__ = ["Scope", "config_app", "mcp_app", "memory_app", "model_app"]

config_app = typer.Typer(
    help="Show the settings and where each comes from; set one.",
    cls=PlainGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)

_Key = Annotated[str, typer.Argument(metavar="KEY", help="Dotted, such as model.name.")]


@config_app.command("show", cls=PlainCommand)
def show_command(db: Database = None, as_json: AsJson = False) -> None:
    """Show every setting, its value and where it comes from; keys and other secrets stay hidden."""
    from graph_agent.cli.views.settings import show_settings

    show_settings(db, as_json=as_json)


@config_app.command("path", cls=PlainCommand)
def path_command(as_json: AsJson = False) -> None:
    """Print where your config file, context file and database lie, whether they are there or not."""
    from graph_agent.cli.views.settings import show_paths

    show_paths(as_json=as_json)


@config_app.command("set", cls=PlainCommand)
def set_command(
    key: _Key,
    value: Annotated[
        str, typer.Argument(metavar="VALUE", help="Text, or TOML for lists and tables: '[\"bash(ls *)\"]'.")
    ],
    as_json: AsJson = False,
) -> None:
    """Set a key in your config file; comments and everything else in it stay."""
    from graph_agent.cli.views.settings import change_setting

    change_setting(key, value, as_json=as_json)


@config_app.command("trust", cls=PlainCommand)
def trust_command(
    folder: Annotated[
        str | None, typer.Argument(metavar="[FOLDER]", help="The project folder; the current one if left out.")
    ] = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Trust it without asking.")] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust it no more.")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="List all folders that were answered about.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a project folder's own files would turn on, and let them count; any change of them asks anew."""
    from graph_agent.cli.views.settings import list_trusted, revoke_trust, trust_folder

    if list_all:
        list_trusted(as_json=as_json)
    elif revoke:
        revoke_trust(folder, as_json=as_json)
    else:
        trust_folder(folder, is_settled=yes, as_json=as_json)


@config_app.command("explain", cls=PlainCommand)
def explain_command(key: _Key, db: Database = None, as_json: AsJson = False) -> None:
    """Show what each layer says about a key, which one won, and what values it takes."""
    from graph_agent.cli.views.settings import explain_setting

    explain_setting(key, db, as_json=as_json)


model_app = typer.Typer(
    help="Choose, look at and try the models.",
    cls=PlainGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@model_app.callback()
def _model() -> None:
    """Choose, look at and try the models."""


@model_app.command("local", cls=PlainCommand)
def local_command(
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help="A GGUF file of an instruct model.")] = None,
    *,
    off: Annotated[bool, typer.Option("--off", help="Use no local model any more.")] = False,
    as_json: AsJson = False,
) -> None:
    """Use a small model from a file, in this process, where no endpoint is configured; needs graph-agent[local]."""
    from graph_agent.cli.views.models import set_local_model, show_local_model, unset_local_model

    if off:
        unset_local_model(as_json=as_json)
    elif file is None:
        show_local_model(as_json=as_json)
    else:
        set_local_model(file, as_json=as_json)


_Name = Annotated[str | None, typer.Argument(metavar="[NAME]", help="A profile or a model; else the one in use.")]


@model_app.command("list", cls=PlainCommand)
def list_command(*, as_json: AsJson = False) -> None:
    """List the profiles and the models of the endpoint; exit 6 where it does not tell them."""
    from graph_agent.cli.views.models import list_models

    raise typer.Exit(list_models(as_json=as_json))


@model_app.command("use", cls=PlainCommand)
def use_command(
    name: Annotated[str, typer.Argument(help="A profile, or a model of the endpoint.")], *, as_json: AsJson = False
) -> None:
    """Write into your config.toml that this model answers from now on."""
    from graph_agent.cli.views.models import use_model

    use_model(name, as_json=as_json)


@model_app.command("show", cls=PlainCommand)
def show_command_model(name: _Name = None, *, as_json: AsJson = False) -> None:
    """Show how a model is asked, what it costs and what it may cost."""
    from graph_agent.cli.views.models import show_model

    show_model(name, as_json=as_json)


@model_app.command("test", cls=PlainCommand)
def try_command(
    name: _Name = None,
    *,
    yes: Annotated[
        bool, typer.Option("--yes", help="Write what was found into your config.toml without asking.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Ask a model a few short questions: does it answer, stream, call tools, see; exit 6 where it does not do.

    What it lacks is offered to be written into your config.toml.
    """
    from graph_agent.cli.views.models import test_model

    raise typer.Exit(test_model(name, as_json=as_json, yes=yes))


memory_app = typer.Typer(
    help="Show or edit what the agent remembers for every thread.",
    cls=PlainGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@memory_app.command("show", cls=PlainCommand)
def show_command_memory(as_json: AsJson = False) -> None:
    """Print your CONTEXT.md: your own words, and what the agent was told to remember."""
    from graph_agent.cli.views.memory import show_memory

    show_memory(as_json=as_json)


@memory_app.command("edit", cls=PlainCommand)
def edit_command() -> None:
    """Open your CONTEXT.md in $VISUAL or $EDITOR; it is created, private, where there is none."""
    from graph_agent.cli.views.memory import edit_memory

    edit_memory()


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


_NameMcp = Annotated[str, typer.Argument(metavar="NAME", help="The server's name in the configuration.")]
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
def list_command_mcp(as_json: AsJson = False) -> None:
    """List the configured servers and whether each can be started; nothing is started."""
    from graph_agent.cli.views.mcp import list_servers

    list_servers(as_json=as_json)


@mcp_app.command("add", cls=ServerCommand)
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
    from graph_agent.cli.views.mcp import ServerRequest, add_server

    wish = ServerRequest(name, tuple(command or ()), url, tuple(env or ()), tuple(header or ()), source)
    numbers = {"timeout": timeout, "startup_timeout": startup_timeout, "network": network or None}
    add_server(wish, numbers, scope.value, replaces=replace, trusts=trust, as_json=as_json)


@mcp_app.command("remove", cls=PlainCommand)
def remove_command(name: _NameMcp, scope: _Scope = Scope.user, as_json: AsJson = False) -> None:
    """Take a server out of the configuration, and back the trust in it."""
    from graph_agent.cli.views.mcp import remove

    remove(name, scope.value, as_json=as_json)


@mcp_app.command("trust", cls=PlainCommand)
def trust_command_mcp(
    name: _NameMcp,
    withdraw: Annotated[bool, typer.Option("--withdraw", help="Trust it no more.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let a server be started as it is configured now; when its configuration changes it has to be trusted anew."""
    from graph_agent.cli.views.mcp import trust

    trust(name, withdraw=withdraw, as_json=as_json)


@mcp_app.command("test", cls=PlainCommand)
def try_command_mcp(name: _NameMcp, as_json: AsJson = False) -> None:
    """Start a trusted server, list its tools, end it; exit code 1 when it does not work."""
    from graph_agent.cli.views.mcp import print_test

    print_test(name, as_json=as_json)
