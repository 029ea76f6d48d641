import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from graph_agent.cli.command_types import PlainCommand, PlainGroup, ResumeCommand
from tests.fakes.database_rows import Rows, record_of

_ROOT = Path(__file__).parents[3]
_MODEL = {"langgraph", "langchain_core", "langchain_openai", "openai", "langsmith", "httpx", "prompt_toolkit"}
_VALIDATION = _MODEL | {"pydantic"}
_READER = _VALIDATION | {"rich"}
_COMMAND_LINE = _READER | {"sqlite3", "ormsgpack", "asyncio"}
_PROBE = """
import json, sys
from graph_agent.cli.main import main
sys.argv[1:] = {arguments!r}
code = main()
names = sorted(sys.modules)
print()
print(json.dumps([code, sorted({{name.partition(".")[0] for name in names}}), len(names)]))
"""


def _loaded_by(arguments: list[str], more: Mapping[str, str] | None = None) -> tuple[int, set[str], int]:
    done = subprocess.run(
        [sys.executable, "-c", _PROBE.format(arguments=arguments)],
        cwd=_ROOT,
        env={**os.environ, **(more or {})},
        capture_output=True,
        text=True,
        check=True,
    )
    code, packages, count = json.loads(done.stdout.splitlines()[-1])
    return code, set(packages), count


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = Rows(tmp_path_factory.mktemp("light") / "graph-agent.db")
    rows.execute("BEGIN")
    for number in range(1000):
        rows.thread(f"thread-{number:04}", next_nodes=("human_approval",), checkpoint_id="c1")
        rows.call(record_of("awaiting_approval", f"call_{number:04}"), f"thread-{number:04}")
    checkpoint = {
        "v": 1,
        "id": "c1",
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": {},
        "channel_versions": {},
        "versions_seen": {},
    }
    rows.execute(
        "INSERT INTO checkpoints (thread_id, checkpoint_id, type, checkpoint, metadata)"
        " VALUES ('thread-0000', 'c1', 'json', ?, ?)",
        json.dumps(checkpoint).encode(),
        json.dumps({"source": "loop", "step": 1}),
    )
    rows.execute("COMMIT")
    rows.close()
    return rows.path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "code", "not_loaded", "most_modules"),
    [
        *(
            (f"{line} --db DB", 0, _READER, 300)
            for line in (
                *("threads list", "threads list --json", "threads show thread-0000", "inspect thread-0000"),
                *("calls", "approvals list", "tools stats"),
            )
        ),
        *((line, 0, _MODEL, 1000) for line in ("tools list", "tools show bash", "config show")),
        *(
            (line, 0, _COMMAND_LINE, 240)
            for line in (*("--version", "--help", "threads --help", "approvals approve --help", "inspect --help"),)
        ),
        ("chat --workspace /no/such/folder --add-dir more", 2, _VALIDATION, 1000),
    ],
)
def test_a_command_loads_only_what_it_needs(
    path: Path, line: str, code: int, not_loaded: set[str], most_modules: int
) -> None:
    exit_code, packages, count = _loaded_by(line.replace("DB", str(path)).split())

    assert (exit_code, packages & not_loaded, count < most_modules) == (code, set(), True)


@pytest.mark.slow
@pytest.mark.parametrize("words", [["resume", ""], ["tools", "show", ""], ["config", "set", ""], ["run", "--mo"]])
def test_completion_loads_little(path: Path, words: list[str]) -> None:
    environment = {"GRAPH_AGENT_DB": str(path), "_GRAPH_AGENT_COMPLETE": "words"}

    code, packages, count = _loaded_by(["graph-agent", *words], environment)

    assert (code, packages & (_MODEL | {"rich"})) == (0, set())
    assert count < 300 or "pydantic" in packages


def _program_of(function: Callable[..., None], kind: type[PlainCommand] = PlainCommand) -> typer.Typer:
    """A program with one command in a group."""
    program = typer.Typer(cls=PlainGroup, rich_markup_mode=None, add_completion=False)
    program.callback()(lambda: None)
    program.command("show", cls=kind)(function)
    return program


def test_strings_and_flags_pass_through_and_other_types_are_validated() -> None:
    taken: list[object] = []

    def show(
        name: str,
        note: Annotated[str | None, typer.Option()] = None,
        loud: Annotated[bool, typer.Option("--loud")] = False,
        count: Annotated[int, typer.Option()] = 1,
        most: Annotated[int | None, typer.Option()] = None,
        tag: Annotated[list[str] | None, typer.Option()] = None,
    ) -> None:
        taken.extend((name, note, loud, count, most, list(tag or ())))

    lines: tuple[list[str], ...] = (
        ["a name", "--loud", "--count", "3"],
        ["", "--note", "7", "--most", "8", "--tag", "x", "--tag", ""],
        ["a", "--count", "many"],
        [],
    )
    codes = [CliRunner().invoke(_program_of(show), ["show", *line]).exit_code for line in lines]

    assert codes == [0, 0, 2, 2]
    assert taken == ["a name", None, True, 3, None, [], "", "7", False, 1, 8, ["x", ""]]


def test_an_empty_id_is_refused_but_may_be_left_out() -> None:
    taken: list[object] = []

    def show(
        thread: Annotated[str, typer.Argument()] = "", resume: Annotated[str | None, typer.Option()] = None
    ) -> None:
        taken.append((thread, resume))

    program = _program_of(show, ResumeCommand)
    lines: tuple[list[str], ...] = (
        ["a"],
        [""],
        ["--resume", ""],
        ["--resume="],
        ["--resume", "b", ""],
        [],
        ["--resume"],
        ["a", "--resume"],
    )
    codes = [CliRunner().invoke(program, ["show", *line]).exit_code for line in lines]

    assert codes == [0, 2, 2, 2, 2, 0, 0, 0]
    assert taken == [("a", None), ("", None), ("", ""), ("a", "")]


def test_an_invalid_choice_is_reported_with_the_choices() -> None:
    class Colour(StrEnum):
        red = "red"

    def paint(colour: Annotated[Colour, typer.Option("--colour")] = Colour.red) -> None:
        pass

    refused = CliRunner().invoke(_program_of(paint), ["show", "--colour", "green"])

    assert refused.exit_code == 2
    assert "--colour 'green' is not one of: red." in refused.output


def test_the_command_list_does_not_cut_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer(cls=PlainGroup, rich_markup_mode=None, add_completion=False)
    summary = "What this command does takes so many words that no line of eighty columns holds all of them. More."
    for name in ("one", "two"):
        app.command(name, cls=PlainCommand, help=summary)(lambda: None)

    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output

    assert " ".join(shown.split()).count(summary.removesuffix(". More.")) == 2
