"""Words as a person types them after `graph-agent`, understood and not run."""

from typing import Any

import typer

from graph_agent.cli.arguments import expand_arguments
from graph_agent.cli.main import app

__all__ = ["PROGRAM", "understood"]

PROGRAM = typer.main.get_command(app)


def understood(words: list[str]) -> Any:
    """What the words are understood as; whatever is wrong with them is raised, and nothing runs."""
    command, context, path, words = PROGRAM, None, ["graph-agent"], expand_arguments(words)
    while inner := getattr(command, "commands", {}):
        if not words or words[0].startswith("-"):
            break
        name, words = words[0], words[1:]
        context = command.context_class(command, parent=context, info_name=path[-1])
        command = inner[name]
        path.append(name)
    return command.make_context(path[-1], list(words), parent=context)
