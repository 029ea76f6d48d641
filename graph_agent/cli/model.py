"""The `model` commands: which model answers."""

from typing import Annotated

import typer

from graph_agent.cli.options import AsJson
from graph_agent.cli.plain import PlainCommand, PlainGroup

__all__ = ["model_app"]

model_app = typer.Typer(
    help="Say which model answers.",
    cls=PlainGroup,
    no_args_is_help=True,
    rich_markup_mode=None,
    add_completion=False,
)


@model_app.callback()
def _model() -> None:
    """Say which model answers."""


@model_app.command("local", cls=PlainCommand)
def local_command(
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help="A GGUF file of an instruct model.")] = None,
    *,
    off: Annotated[bool, typer.Option("--off", help="Use no local model any more.")] = False,
    as_json: AsJson = False,
) -> None:
    """Use a small model from a file, in this process, where no endpoint is configured; needs graph-agent[local]."""
    from graph_agent.cli.views.local_model import tell_local, use_local, use_no_local

    if off:
        use_no_local(as_json=as_json)
    elif file is None:
        tell_local(as_json=as_json)
    else:
        use_local(file, as_json=as_json)
