"""The `config` commands: what is set, where it comes from, and how to set it."""

from typing import Annotated

import typer

from graph_agent.cli.options import AsJson, Database
from graph_agent.cli.plain import PlainCommand, PlainGroup

__all__ = ["config_app"]

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
    from graph_agent.cli.views.trust import list_trusted, revoke_trust, trust_folder

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
