"""How tests run the read-only commands, and the situation most of them start from."""

import json
from typing import Any

from typer.testing import CliRunner, Result

from tests.fakes.database_rows import START, Rows, record_of
from tests.fakes.light_program import app

__all__ = ["asking", "json_of", "run", "text_of"]


def run(*arguments: str, **environment: str | None) -> Result:
    """Run a command without a terminal; COLUMNS is unset unless it is given."""
    return CliRunner().invoke(app, arguments, env={"COLUMNS": None, **environment})


def text_of(rows: Rows, *arguments: str, **environment: str | None) -> str:
    """What a command prints that ends well."""
    result = run(*arguments, "--db", str(rows.path), **environment)
    assert result.exit_code == 0, result.exception
    return result.stdout


def json_of(rows: Rows, *arguments: str) -> Any:
    """The JSON that a command prints that ends well."""
    return json.loads(text_of(rows, *arguments, "--json"))


def asking(rows: Rows, thread_id: str = "t1", **fields: Any) -> None:
    """Add a thread whose call `call_a` waits for an approval."""
    rows.thread(thread_id, next_nodes=("human_approval",), title="Build it", checkpoint_id="c1")
    asked = {"asked_at": START, "reason": "runs a command", "summary": "make", "preview": {"text": "$ make"}}
    rows.call(record_of("awaiting_approval", **{**asked, **fields}), thread_id)
