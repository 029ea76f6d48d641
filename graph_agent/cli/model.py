"""The `model` commands: which model answers."""

from typing import Annotated

import typer

from graph_agent.cli.options import AsJson
from graph_agent.cli.plain import PlainCommand, PlainGroup

__all__ = ["model_app"]

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
    from graph_agent.cli.views.local_model import tell_local, use_local, use_no_local

    if off:
        use_no_local(as_json=as_json)
    elif file is None:
        tell_local(as_json=as_json)
    else:
        use_local(file, as_json=as_json)


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
def show_command(name: _Name = None, *, as_json: AsJson = False) -> None:
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
