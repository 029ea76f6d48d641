import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from graph_agent.cli.exit_codes import MEANINGS, ExitCode
from graph_agent.cli.main import LazyCommands, LazyGroup, app, single_command
from graph_agent.cli.options import EXAMPLES, describe_exit_codes, find_examples
from graph_agent.cli.startup import print_version
from tests.architecture.checkout import ROOT
from tests.fakes.parsed_commands import PROGRAM, understood
from tests.scenarios.command import Command


def _run(*arguments: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *options, "-m", "graph_agent", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=dict(os.environ),
        timeout=30,
    )


def test_help_lists_the_commands_without_escapes() -> None:
    ended = _run("--help")

    listed = ["chat", "run", "resume", "threads", "approvals", "calls", "inspect"]
    assert (ended.returncode, [name for name in listed if f"\n  {name} " in ended.stdout]) == (0, listed)
    assert "\x1b" not in ended.stdout


@pytest.mark.parametrize(
    ("arguments", "message"), [((), "Usage: graph-agent"), (("theads",), "graph-agent threads")]
)
def test_no_command_and_an_unknown_one_are_usage_errors_on_stderr(arguments: tuple[str, ...], message: str) -> None:
    ended = _run(*arguments)

    assert (ended.returncode, ended.stdout, message in ended.stderr) == (2, "", True)


_MADE: list[str] = []


def _greet(name: str = "you") -> None:
    """Say hello. Then leave."""


class _Noted(typer.core.TyperCommand):
    def __init__(self, *names: Any, **settings: Any) -> None:
        _MADE.append(settings["name"])
        super().__init__(*names, **settings)


def test_a_command_is_built_once_and_only_when_it_is_used() -> None:
    _MADE.clear()
    commands = LazyCommands({"greet": single_command(_greet, _Noted), "meet": single_command(_greet, _Noted)})

    before = (list(commands), len(commands), list(_MADE))
    first, second = commands["greet"], commands.get("greet")

    assert before == (["greet", "meet"], 2, [])
    assert (first is second, first.name, len(_MADE)) == (True, "greet", 1)
    assert commands.get("leave") is None


def test_the_command_list_of_the_help_matches_the_built_commands() -> None:
    program: Any = typer.main.get_command(app)
    assert isinstance(program, LazyGroup)

    outlines = {name: one.get_short_help_str() for name, one in program.commands.outlines().items()}

    assert outlines == {name: command.get_short_help_str() for name, command in program.commands.items()}


UNKNOWN = "zzzz9999"
PRINTS_NO_DATA = {"acp", "web", "chat", "run", "resume", "demo", "worker", "memory edit", "threads export"}
"""Sessions, a server, an editor, and what writes a file in a format of its own."""

LOOKS = {
    "threads list": {"threads"},
    "threads search what": {"query", "hits", "more"},
    "approvals list": {"approvals", "answered"},
    "recover": {"calls"},
    "calls": {"calls"},
    "tasks list": {"tasks"},
    "top --once": {"workers", "tasks", "threads"},
    "policy list": {"rules", "grants"},
    "policy show": {"mode", "rules", "unenforced"},
    "tools list": {"tools", "problems"},
    "tools stats": {"tools"},
    "agents list": {"agents"},
    "memory show": {"path", "exists", "text", "user", "notes"},
    "config show": {"settings", "project"},
    "config path": {"config", "memory", "database"},
    "config trust --list": {"folders"},
    "mcp list": {"servers"},
    "model list": {"profiles", "models", "error"},
    "doctor": {"checks"},
    "update": {"version", "installed_with", "command"},
    "graph": {"thread_id", "checkpoint_id", "status", "next", "since", "nodes", "edges"},
}
"""What can be asked where nothing is there yet, and the keys of its object."""

ASKS_FOR = (
    *("threads show", "threads diff", "threads prune", "threads rename {} x", "threads delete {} --yes"),
    *("threads export", "threads import", "threads say {} x", "approvals approve", "approvals reject"),
    *("approvals edit {} --arguments {{}}", "approvals answer {} x", "recover", "recover --retry"),
    *("calls", "history", "inspect", "graph", "diff {} {}", "fork", "rewind {} --yes", "compact"),
    *("resume", "run --resume", "run x --resume", "tools show", "policy revoke", "policy test"),
    *("policy check {} {{}} --workspace /nowhere", "config explain", "config set {} x", "config trust"),
    *("memory forget", "memory undo", "mcp test", "mcp trust", "mcp remove", "model local"),
    *("mcp login", "mcp logout", "agents show"),
    *("tasks add x --agent", "tasks show", "tasks cancel", "tasks retry"),
    "worktrees remove {} --workspace /nowhere",
    "db copy {} postgresql://127.0.0.1:1/nobody",
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
    command("run", "run touch hi", "--thread", "shop")
    return command


@pytest.mark.parametrize("path", COMMANDS)
def test_every_command_has_help_a_database_option_and_examples(path: str) -> None:
    shown = CliRunner().invoke(app, [*path.split(), "--help"], prog_name="graph-agent", env={"COLUMNS": "60"})

    words = ["Usage: graph-agent", "--db FILE", "Examples:\n  graph-agent"]
    assert (shown.exit_code, [word for word in words if word not in shown.stdout]) == (0, [])
    assert ("--json " in shown.stdout) == (path not in PRINTS_NO_DATA)


@pytest.mark.slow
@pytest.mark.parametrize("line", LOOKS)
def test_read_only_commands_print_one_json_object_also_without_a_database(tmp_path: Path, line: str) -> None:
    nothing = Command(tmp_path)

    asked = nothing(*line.split(), "--json")

    assert (asked.returncode, set(json.loads(asked.stdout))) == (0, LOOKS[line])
    assert not (tmp_path / "home" / "data" / "graph-agent.db").exists()


@pytest.mark.slow
@pytest.mark.parametrize("line", ASKS_FOR)
def test_an_unknown_name_is_reported_on_stderr_and_exits_with_2(command: Command, line: str) -> None:
    words = line.format(UNKNOWN, UNKNOWN) if "{" in line else f"{line} {UNKNOWN}"

    asked = command(*words.split())

    assert (asked.returncode, asked.stdout) == (2, "")
    assert (UNKNOWN in asked.stderr or "/nowhere" in asked.stderr, "Traceback" in asked.stderr) == (True, False)


@pytest.mark.slow
@pytest.mark.parametrize("line", ["threads show", "approvals approve", "threads search", "graph", "model use"])
def test_a_name_that_is_not_utf_8_is_not_a_bug(command: Command, line: str) -> None:
    asked = command(*line.split(), "\udcff\udcfe\udcfd\udcfc")

    assert (asked.returncode in (0, 2), "unexpected" in asked.stderr) == (True, False)
    assert "\\udcff" in asked.stdout + asked.stderr


def test_every_command_with_an_argument_is_tested_with_an_unknown_one() -> None:
    naming = {path for path, one in COMMANDS.items() if any(p.param_type_name == "argument" for p in one.params)}
    free = {"chat", "threads search", "model use", "model show", "model forget", "model test", "mcp add"}

    assert {path for path in naming - free if not any(line.startswith(path) for line in ASKS_FOR)} == set()


def _example_paths(command: Any, path: tuple[str, ...] = ()) -> Iterator[str]:
    inner = getattr(command, "commands", {})
    if not inner or not path:
        yield " ".join(path)
    for name, one in inner.items():
        yield from _example_paths(one, (*path, name))


def test_every_command_has_examples_and_every_example_its_command() -> None:
    assert sorted(EXAMPLES) == sorted(_example_paths(PROGRAM))
    assert (find_examples("graph-agent"), find_examples("program unknown")) == (EXAMPLES[""], ())


@pytest.mark.parametrize("path", [path for path in EXAMPLES if path])
def test_an_example_can_be_typed_as_it_stands(path: str) -> None:
    for line in EXAMPLES[path]:
        program, *words = shlex.split(re.split(r" [<>] ", line)[0])

        context = understood(words)

        assert (program, context.command_path) == ("graph-agent", f"graph-agent {path}")


def test_every_exit_code_has_its_meaning_in_help_and_in_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")

    assert set(MEANINGS) == set(ExitCode)
    assert [code for code in ExitCode if f"{code.value} {MEANINGS[code]}" not in describe_exit_codes()] == []
    assert [code.value for code in ExitCode if not re.search(rf"\b{code.value} [a-zCS]", readme)] == []


def test_the_version_is_the_installed_one(capsys: pytest.CaptureFixture[str]) -> None:
    line = f"graph-agent {version('graph-agent')}\n"

    assert (print_version(), capsys.readouterr().out) == (0, line)
    assert _run("--version").stdout == line
