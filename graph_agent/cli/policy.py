"""The `policy` commands: what is let through by rules and by answers "always". They run nothing."""

from typing import Annotated

import typer

from graph_agent.cli.options import AsJson, Database
from graph_agent.cli.plain import PlainCommand, PlainGroup

__all__ = ["policy_app"]

policy_app = typer.Typer(
    help="List the rules and what was allowed always; take that back.",
    cls=PlainGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@policy_app.command("list", cls=PlainCommand)
def list_command(db: Database = None, as_json: AsJson = False) -> None:
    """List the rules of the config, and every grant: what was allowed always, where, in which mode, by whom."""
    from graph_agent.cli.views.grants import list_policy
    from graph_agent.cli.views.place import database_of

    list_policy(database_of(db), as_json=as_json)


@policy_app.command("revoke", cls=PlainCommand)
def revoke_command(
    grant: Annotated[str, typer.Argument(metavar="ID", help="Id of a grant, as `policy list` shows it.")],
    db: Database = None,
    as_json: AsJson = False,
) -> None:
    """Take a grant back; from its next call on every process asks again."""
    from graph_agent.cli.views.grants import revoke
    from graph_agent.cli.views.place import database_of

    revoke(database_of(db), grant, as_json=as_json)
