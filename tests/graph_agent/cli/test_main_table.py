import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from graph_agent.cli.main import app
from tests.scenarios.command import Command

UNKNOWN = "zzzz9999"
PRINTS_NO_DATA = {"chat", "run", "resume", "demo", "memory edit", "threads export"}
"""Sessions, an editor, and what writes a file in a format of its own."""

LOOKS = {
    "threads list": {"threads"},
    "threads search what": {"query", "hits", "more"},
    "approvals list": {"approvals", "answered"},
    "recover": {"calls"},
    "calls": {"calls"},
    "policy list": {"rules", "grants"},
    "policy show": {"mode", "rules"},
    "tools list": {"tools", "problems"},
    "tools stats": {"tools"},
    "memory show": {"path", "exists", "text"},
    "config show": {"settings", "project"},
    "config path": {"config", "memory", "database"},
    "config trust --list": {"folders"},
    "mcp list": {"servers"},
    "model list": {"profiles", "models", "error"},
    "doctor": {"checks"},
    "graph": {"thread_id", "checkpoint_id", "status", "next", "since", "nodes", "edges"},
}
"""What can be asked where nothing is there yet, and the keys of its object."""

ASKS_FOR = (
    "threads show",
    "threads diff",
    "threads prune",
    "threads rename {} x",
    "threads delete {} --yes",
    "threads export",
    "threads import",
    "approvals approve",
    "approvals reject",
    "approvals edit {} --arguments {{}}",
    "approvals answer {} x",
    "recover",
    "recover --retry",
    "calls",
    "history",
    "inspect",
    "graph",
    "diff {} {}",
    "fork",
    "rewind {} --yes",
    "compact",
    "resume",
    "run --resume",
    "run x --resume",
    "tools show",
    "policy revoke",
    "policy test",
    "policy check {} {{}} --workspace /nowhere",
    "config explain",
    "config set {} x",
    "config trust",
    "mcp test",
    "mcp trust",
    "mcp remove",
    "model local",
)
"""Commands that name something; here it is not there."""


def _paths(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name, inner in getattr(command, "commands", {}).items():
        yield from _paths(inner, (*path, name))
    if not hasattr(command, "commands"):
        yield " ".join(path), command


COMMANDS = dict(_paths(typer.main.get_command(app)))


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    """One folder for all: with a thread whose call waits."""
    command = Command(tmp_path_factory.mktemp("table"))
    command("run", "run echo hi", "--thread", "shop")
    return command


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_says_what_it_does_takes_a_database_and_shows_examples(path: str) -> None:
    shown = CliRunner().invoke(app, [*path.split(), "--help"], prog_name="graph-agent", env={"COLUMNS": "60"})

    words = ["Usage: graph-agent", "--db FILE", "Examples:\n  graph-agent"]
    assert (shown.exit_code, [word for word in words if word not in shown.stdout]) == (0, [])
    assert ("--json" in shown.stdout) == (path not in PRINTS_NO_DATA)


@pytest.mark.parametrize("line", LOOKS)
def test_what_looks_prints_one_json_object_also_where_nothing_is_there(tmp_path: Path, line: str) -> None:
    nothing = Command(tmp_path)

    asked = nothing(*line.split(), "--json")

    assert (asked.returncode, set(json.loads(asked.stdout))) == (0, LOOKS[line])
    assert not (tmp_path / "home" / "data" / "graph-agent.db").exists()


@pytest.mark.parametrize("line", ASKS_FOR)
def test_what_is_not_there_is_named_on_stderr_alone_and_ends_with_2(command: Command, line: str) -> None:
    words = line.format(UNKNOWN, UNKNOWN) if "{" in line else f"{line} {UNKNOWN}"

    asked = command(*words.split())

    assert (asked.returncode, asked.stdout) == (2, "")
    assert (UNKNOWN in asked.stderr or "/nowhere" in asked.stderr, "Traceback" in asked.stderr) == (True, False)


@pytest.mark.parametrize("line", ["threads show", "approvals approve", "threads search", "graph", "model use"])
def test_a_name_that_is_no_utf_8_names_nothing_and_is_no_fault(command: Command, line: str) -> None:
    asked = command(*line.split(), "\udcff\udcfe\udcfd\udcfc")

    assert (asked.returncode in (0, 2), "unexpected" in asked.stderr) == (True, False)
    assert "\\udcff" in asked.stdout + asked.stderr


def test_every_command_that_names_something_is_in_the_table() -> None:
    naming = {path for path, one in COMMANDS.items() if any(p.param_type_name == "argument" for p in one.params)}
    free = {"chat", "threads search", "model use", "model show", "model test", "mcp add"}

    assert {path for path in naming - free if not any(line.startswith(path) for line in ASKS_FOR)} == set()
