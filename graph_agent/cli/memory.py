"""The `memory` commands: what the agent remembers for every thread, in a file of the user's own."""

import typer

from graph_agent.cli.options import AsJson
from graph_agent.cli.plain import PlainCommand, PlainGroup

__all__ = ["memory_app"]

memory_app = typer.Typer(
    help="Show or edit what the agent remembers for every thread.",
    cls=PlainGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@memory_app.command("show", cls=PlainCommand)
def show_command(as_json: AsJson = False) -> None:
    """Print your CONTEXT.md: your own words, and what the agent was told to remember."""
    from graph_agent.cli.views.memory import show_memory

    show_memory(as_json=as_json)


@memory_app.command("edit", cls=PlainCommand)
def edit_command() -> None:
    """Open your CONTEXT.md in $VISUAL or $EDITOR; it is created, private, where there is none."""
    from graph_agent.cli.views.memory import edit_memory

    edit_memory()
