"""Types commands within this process, as most tests of the command line do."""

import json
from typing import Any

from typer.testing import CliRunner, Result

from graph_agent.cli.main import app

__all__ = ["json_of", "text_of", "type_command"]


def type_command(*arguments: str, stdin: str | None = None, **environment: str | None) -> Result:
    """Run `graph-agent` with the arguments; `stdin` is no terminal."""
    return CliRunner().invoke(app, arguments, input=stdin, env=environment)


def text_of(*arguments: str, stdin: str | None = None) -> str:
    """What a command prints that succeeds."""
    result = type_command(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.exception
    return result.stdout


def json_of(*arguments: str) -> Any:
    """The JSON that a command prints that succeeds."""
    return json.loads(text_of(*arguments, "--json"))
