"""The `config`, `model`, `memory`, `mcp`, `doctor` and `init` commands."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from graph_agent.cli.command_types import PlainCommand, ServerCommand, command_group
from graph_agent.cli.options import AsJson, Database, resolve_database

__all__ = [
    "Scope",
    "config_app",
    "db_app",
    "doctor_command",
    "init_command",
    "mcp_app",
    "memory_app",
    "model_app",
    "update_command",
]

config_app = command_group("Show and change settings; trust a project folder.")

_Key = Annotated[str, Argument(metavar="KEY", help="Dotted key, e.g. model.name.")]


@config_app.command("show", cls=PlainCommand)
def show_command(db: Database = None, as_json: AsJson = False) -> None:
    """Show every setting, its value and where it comes from. Secrets are redacted."""
    from graph_agent.cli.views.settings import show_settings

    show_settings(db, as_json=as_json)


@config_app.command("path", cls=PlainCommand)
def path_command(as_json: AsJson = False) -> None:
    """Print the paths of your config file, memory file and database."""
    from graph_agent.cli.views.settings import show_paths

    show_paths(as_json=as_json)


@config_app.command("set", cls=PlainCommand)
def set_command(
    key: _Key,
    value: Annotated[
        str, Argument(metavar="VALUE", help="Text, or TOML for lists and tables: '[\"bash(ls *)\"]'.")
    ],
    as_json: AsJson = False,
) -> None:
    """Set a key in your config file; comments are kept."""
    from graph_agent.cli.views.settings import change_setting

    change_setting(key, value, as_json=as_json)


@config_app.command("trust", cls=PlainCommand)
def trust_command(
    folder: Annotated[
        str | None, Argument(metavar="[FOLDER]", help="Project folder. Default: the current one.")
    ] = None,
    *,
    yes: Annotated[bool, Option("--yes", help="Trust it without asking.")] = False,
    revoke: Annotated[bool, Option("--revoke", help="Revoke trust.")] = False,
    list_available_models: Annotated[bool, Option("--list", help="List trusted and rejected folders.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show what a project folder's files would enable, and trust them. Any change of them asks again."""
    from graph_agent.cli.views.settings import list_trusted, revoke_trust, trust_folder

    if list_available_models:
        list_trusted(as_json=as_json)
    elif revoke:
        revoke_trust(folder, as_json=as_json)
    else:
        trust_folder(folder, is_confirmed=yes, as_json=as_json)


@config_app.command("explain", cls=PlainCommand)
def explain_command(key: _Key, db: Database = None, as_json: AsJson = False) -> None:
    """Show the value of a key in each layer, which layer wins, and the allowed values."""
    from graph_agent.cli.views.settings import explain_setting

    explain_setting(key, db, as_json=as_json)


model_app = command_group("List, choose and test models.")


@model_app.callback()
def _model() -> None:
    """List, choose and test models."""


@model_app.command("local", cls=PlainCommand)
def local_command(
    file: Annotated[str | None, Argument(metavar="[FILE]", help="GGUF file of an instruct model.")] = None,
    *,
    off: Annotated[bool, Option("--off", help="Stop using the local model.")] = False,
    as_json: AsJson = False,
) -> None:
    """Use a small model from a file when no endpoint is configured. Needs graph-agent[local]."""
    from graph_agent.cli.views.models import set_local_model, show_local_model, unset_local_model

    if off:
        unset_local_model(as_json=as_json)
    elif file is None:
        show_local_model(as_json=as_json)
    else:
        set_local_model(file, as_json=as_json)


_Name = Annotated[str | None, Argument(metavar="[NAME]", help="Profile or model. Default: the current one.")]


@model_app.command("list", cls=PlainCommand)
def list_command(*, as_json: AsJson = False) -> None:
    """List the profiles and the models of the endpoint. Exit code 6 if the endpoint cannot list them."""
    from graph_agent.cli.views.models import list_models

    raise typer.Exit(list_models(as_json=as_json))


@model_app.command("use", cls=PlainCommand)
def use_command(
    name: Annotated[str, Argument(help="Profile, or model of the endpoint.")], *, as_json: AsJson = False
) -> None:
    """Set the default model in config.toml."""
    from graph_agent.cli.views.models import use_model

    use_model(name, as_json=as_json)


@model_app.command("show", cls=PlainCommand)
def show_command_model(name: _Name = None, *, as_json: AsJson = False) -> None:
    """Show the settings, price and budget of a model, and what was learned about it in the last day."""
    from graph_agent.cli.views.models import show_model

    show_model(name, as_json=as_json)


@model_app.command("forget", cls=PlainCommand)
def forget_command_model(name: _Name = None, *, as_json: AsJson = False) -> None:
    """Forget what was learned about a model from error responses, such as that it accepts no images."""
    from graph_agent.cli.views.models import forget_learned

    forget_learned(name, as_json=as_json)


@model_app.command("test", cls=PlainCommand)
def try_command(
    name: _Name = None,
    *,
    yes: Annotated[bool, Option("--yes", help="Write the findings into config.toml without asking.")] = False,
    as_json: AsJson = False,
) -> None:
    """Test a model: replies, streaming, tool calls, images. Exit code 6 on failure.

    Offers to write limitations into config.toml.
    """
    from graph_agent.cli.views.models import test_model

    raise typer.Exit(test_model(name, as_json=as_json, yes=yes))


memory_app = command_group("Show or change the memory that all threads share.")


@memory_app.command("show", cls=PlainCommand)
def show_command_memory(as_json: AsJson = False) -> None:
    """Print CONTEXT.md: what you wrote, and what the agent noted, each line with its date and folder."""
    from graph_agent.cli.views.memory import show_memory

    show_memory(as_json=as_json)


@memory_app.command("edit", cls=PlainCommand)
def edit_command() -> None:
    """Open CONTEXT.md in $VISUAL or $EDITOR; create it if it does not exist."""
    from graph_agent.cli.views.memory import edit_memory

    edit_memory()


@memory_app.command("forget", cls=PlainCommand)
def forget_command(
    number: Annotated[str, Argument(metavar="NUMBER", help="Number of the line; see `memory show`.")],
    as_json: AsJson = False,
) -> None:
    """Remove a line that the agent noted."""
    from graph_agent.cli.views.memory import remove_note

    remove_note(number, as_json=as_json)


@memory_app.command("undo", cls=PlainCommand)
def undo_command(as_json: AsJson = False) -> None:
    """Remove the newest line that the agent noted."""
    from graph_agent.cli.views.memory import remove_note

    remove_note(as_json=as_json)


mcp_app = command_group("Add, list, trust and test MCP servers.")


class Scope(StrEnum):
    """Which config file is changed."""

    user = "user"
    project = "project"


_NameMcp = Annotated[str, Argument(metavar="NAME", help="Server name in the configuration.")]
_Scope = Annotated[Scope, Option("--scope", help="Your config.toml, or .graph-agent/config.toml of this folder.")]

_Env = Annotated[
    list[str] | None,
    Option(
        "--env",
        metavar="KEY=VALUE",
        help="Environment variable of the server; KEY alone passes yours on. Repeatable.",
    ),
]
_Header = Annotated[
    list[str] | None,
    Option("--header", metavar="NAME=VALUE", help="Header of each request to the URL. Repeatable."),
]


@mcp_app.command("list", cls=PlainCommand)
def list_command_mcp(as_json: AsJson = False) -> None:
    """List the configured servers and whether each can start. Starts nothing."""
    from graph_agent.cli.views.mcp import list_servers

    list_servers(as_json=as_json)


@mcp_app.command("add", cls=ServerCommand)
def add_command(
    name: Annotated[
        str | None, Argument(metavar="NAME", help="Any name; with --from, a server of that file.")
    ] = None,
    command: Annotated[
        list[str] | None, Argument(metavar="-- COMMAND ARGS", help="Command that starts the server, after --.")
    ] = None,
    *,
    url: Annotated[
        str | None, Option("--url", metavar="URL", help="Connect to a running server instead (streamable HTTP).")
    ] = None,
    env: _Env = None,
    header: _Header = None,
    timeout: Annotated[float | None, Option("--timeout", metavar="SECONDS", help="Time limit of a call.")] = None,
    startup_timeout: Annotated[
        float | None, Option("--startup-timeout", metavar="SECONDS", help="Time limit of the start.")
    ] = None,
    network: Annotated[bool, Option("--network", help="Allow network access in the sandbox.")] = False,
    scope: _Scope = Scope.user,
    source: Annotated[
        str | None,
        Option("--from", metavar="FILE", help='Import servers from another client\'s JSON ("mcpServers").'),
    ] = None,
    replace: Annotated[bool, Option("--replace", help="Replace a server of the same name.")] = False,
    trust: Annotated[bool, Option("--trust", help="Trust it without asking.")] = False,
    as_json: AsJson = False,
) -> None:
    """Add a server to the configuration, show what it runs and ask whether to trust it."""
    from graph_agent.cli.views.mcp import add_server

    add_server(
        name,
        command or (),
        source=source,
        connection={"url": url, "env": env or (), "headers": header or ()},
        options={"timeout": timeout, "startup_timeout": startup_timeout, "network": network or None},
        scope=scope.value,
        replaces=replace,
        trusts=trust,
        as_json=as_json,
    )


@mcp_app.command("remove", cls=PlainCommand)
def remove_command(name: _NameMcp, scope: _Scope = Scope.user, as_json: AsJson = False) -> None:
    """Remove a server from the configuration and revoke its trust."""
    from graph_agent.cli.views.mcp import remove

    remove(name, scope.value, as_json=as_json)


@mcp_app.command("trust", cls=PlainCommand)
def trust_command_mcp(
    name: _NameMcp,
    withdraw: Annotated[bool, Option("--withdraw", help="Revoke trust.")] = False,
    as_json: AsJson = False,
) -> None:
    """Allow a server to start as configured now. If its configuration changes, trust it again."""
    from graph_agent.cli.views.mcp import trust

    trust(name, withdraw=withdraw, as_json=as_json)


@mcp_app.command("login", cls=PlainCommand)
def login_command(
    name: _NameMcp,
    no_browser: Annotated[bool, Option("--no-browser", help="Only print the address to open.")] = False,
    as_json: AsJson = False,
) -> None:
    """Log in to a server that requires OAuth, in your browser. The tokens are stored in a private file."""
    from graph_agent.cli.views.mcp import log_in

    log_in(name, opens_browser=not no_browser, as_json=as_json)


@mcp_app.command("logout", cls=PlainCommand)
def logout_command(name: _NameMcp, as_json: AsJson = False) -> None:
    """Delete the tokens of a server."""
    from graph_agent.cli.views.mcp import log_out

    log_out(name, as_json=as_json)


@mcp_app.command("test", cls=PlainCommand)
def try_command_mcp(name: _NameMcp, as_json: AsJson = False) -> None:
    """Start a trusted server, list its tools, stop it. Exit code 1 on failure."""
    from graph_agent.cli.views.mcp import print_test

    print_test(name, as_json=as_json)


db_app = command_group("Copy a database to or from a PostgreSQL server.")

_Copied = "A file, or the postgresql:// URL of a server."


@db_app.command("copy", cls=PlainCommand)
def copy_command(
    copy_from: Annotated[str, Argument(metavar="FROM", help=_Copied)],
    copy_to: Annotated[str, Argument(metavar="TO", help=f"{_Copied} It must be empty.")],
    *,
    as_json: AsJson = False,
) -> None:
    """Copy all threads, permissions and tasks to another database, and compare each thread by a digest."""
    from graph_agent.cli.views.doctor import copy_to_database

    copy_to_database(copy_from, copy_to, as_json=as_json)


def doctor_command(
    backup: Annotated[
        Path | None, Option("--backup", metavar="FILE", help="Back up the database (safe while in use).")
    ] = None,
    repair: Annotated[bool, Option("--repair", help="Fix what can be fixed; a damaged file is kept.")] = False,
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Check versions, settings, model, programs, database, permissions and terminal. Exit code 1 on failure."""
    from graph_agent.cli.views.doctor import back_up_database, print_checks

    if backup is not None:
        back_up_database(resolve_database(db), backup, as_json=as_json)
    if repair:
        from graph_agent.app.repair import repair as apply_rewind
        from graph_agent.cli.views.doctor import repair_installation

        repair_installation(resolve_database(db), apply_rewind, as_json=as_json)
    elif backup is None:
        print_checks(resolve_database(db), as_json=as_json)


def update_command(
    print_only: Annotated[bool, Option("--print", help="Print the command and run nothing.")] = False,
    yes: Annotated[bool, Option("--yes", help="Do not ask for confirmation.")] = False,
    as_json: AsJson = False,
) -> None:
    """Update this program the way it was installed: with uv, pipx, pip or git."""
    from graph_agent.cli.views.doctor import update_program

    update_program(is_printed=print_only, is_confirmed=yes, as_json=as_json)


def init_command(
    print_only: Annotated[bool, Option("--print", help="Print the text and write nothing.")] = False,
    yes: Annotated[bool, Option("--yes", help="Replace an existing AGENTS.md without asking.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write an AGENTS.md from this folder's README, build files, CI and layout. Needs no model; see also /init."""
    from graph_agent.cli.views.settings import init_project

    init_project(is_printed=print_only, is_confirmed=yes, as_json=as_json)
