import json
import os
import subprocess
import sys
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from graph_agent.cli.command_types import PlainCommand, PlainGroup, ResumeCommand
from tests.fakes.database_rows import Rows, record_of

_ROOT = Path(__file__).parents[3]
_HEAVY = {
    "langgraph",
    "langchain_core",
    "langchain_openai",
    "openai",
    "pydantic",
    "langsmith",
    "httpx",
    "prompt_toolkit",
}
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
    rows.execute(
        "INSERT INTO checkpoints (thread_id, checkpoint_id, type, checkpoint, metadata)"
        " VALUES ('thread-0000', 'c1', 'json', '{}', '{}')"
    )
    rows.execute("COMMIT")
    rows.close()
    return rows.path


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["threads", "list"],
        ["threads", "list", "--json"],
        ["threads", "show", "thread-0000"],
        ["inspect", "thread-0000"],
        ["calls"],
        ["approvals", "list"],
        ["tools", "stats"],
    ],
)
def test_read_only_commands_load_little(path: Path, command: list[str]) -> None:
    code, packages, count = _loaded_by([*command, "--db", str(path)])

    assert code == 0
    assert packages & _HEAVY == set()
    assert "rich" not in packages
    assert count < 300


@pytest.mark.slow
@pytest.mark.parametrize("command", [["tools", "list"], ["tools", "show", "bash"], ["config", "show"]])
def test_tools_and_settings_are_shown_without_the_model_stack(command: list[str]) -> None:
    code, packages, _ = _loaded_by(command)

    assert code == 0
    assert packages & (_HEAVY - {"pydantic"}) == set()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [["--help"], ["threads", "--help"], ["approvals", "approve", "--help"], ["inspect", "--help"], ["--version"]],
)
def test_help_loads_nothing_but_the_command_line_itself(command: list[str]) -> None:
    code, packages, count = _loaded_by(command)

    assert code == 0
    assert packages & (_HEAVY | {"sqlite3", "ormsgpack", "rich", "asyncio"}) == set()
    assert count < 240


@pytest.mark.slow
@pytest.mark.parametrize("words", [["resume", ""], ["tools", "show", ""], ["config", "set", ""], ["run", "--mo"]])
def test_completion_loads_little(path: Path, words: list[str]) -> None:
    code, packages, count = _loaded_by(
        ["graph-agent", *words], {"GRAPH_AGENT_DB": str(path), "_GRAPH_AGENT_COMPLETE": "words"}
    )

    assert code == 0
    assert packages & (_HEAVY - {"pydantic"} | {"rich"}) == set()
    assert count < 300 or "pydantic" in packages


def test_strings_and_flags_pass_through_and_other_types_are_validated() -> None:
    taken: list[object] = []
    program = typer.Typer(cls=PlainGroup, rich_markup_mode=None, add_completion=False)

    @program.callback()
    def root() -> None:
        pass

    @program.command(cls=PlainCommand)
    def show(
        name: str,
        note: Annotated[str | None, typer.Option()] = None,
        loud: Annotated[bool, typer.Option("--loud")] = False,
        count: Annotated[int, typer.Option()] = 1,
        most: Annotated[int | None, typer.Option()] = None,
        tag: Annotated[list[str] | None, typer.Option()] = None,
    ) -> None:
        taken.extend((name, note, loud, count, most, list(tag or ())))

    runner = CliRunner()
    codes = [
        runner.invoke(program, ["show", "a name", "--loud", "--count", "3"]).exit_code,
        runner.invoke(program, ["show", "", "--note", "7", "--most", "8", "--tag", "x", "--tag", ""]).exit_code,
        runner.invoke(program, ["show", "a", "--count", "many"]).exit_code,
        runner.invoke(program, ["show"]).exit_code,
    ]

    assert codes == [0, 0, 2, 2]
    assert taken == ["a name", None, True, 3, None, [], "", "7", False, 1, 8, ["x", ""]]


def test_an_empty_id_is_refused_but_may_be_left_out() -> None:
    taken: list[object] = []
    program = typer.Typer(cls=PlainGroup, rich_markup_mode=None, add_completion=False)

    @program.callback()
    def root() -> None:
        pass

    @program.command(cls=ResumeCommand)
    def show(
        thread: Annotated[str, typer.Argument()] = "", resume: Annotated[str | None, typer.Option()] = None
    ) -> None:
        taken.append((thread, resume))

    runner = CliRunner()
    lines = [["a"], [""], ["--resume", ""], ["--resume="], ["--resume", "b", ""]]
    refused = [runner.invoke(program, ["show", *line]).exit_code for line in lines]
    taken_at = [runner.invoke(program, ["show", *line]).exit_code for line in ([], ["--resume"], ["a", "--resume"])]

    assert (refused, taken_at) == ([0, 2, 2, 2, 2], [0, 0, 0])
    assert taken == [("a", None), ("", None), ("", ""), ("a", "")]


def test_the_options_of_chat_are_parsed_without_pydantic() -> None:
    code, packages, _ = _loaded_by(["chat", "--workspace", "/no/such/folder", "--add-dir", "more"])

    assert code == 2
    assert packages & _HEAVY == set()


def test_an_invalid_choice_is_reported_without_the_librarys_prefix() -> None:
    class Colour(StrEnum):
        red = "red"

    program = typer.Typer(rich_markup_mode=None, add_completion=False)

    @program.command(cls=PlainCommand)
    def paint(colour: Annotated[Colour, typer.Option("--colour")] = Colour.red) -> None:
        pass

    refused = CliRunner().invoke(program, ["--colour", "green"])

    assert refused.exit_code == 2
    assert "Invalid value for '--colour': 'green' is not one of 'red'." in refused.output


def test_the_command_list_does_not_cut_sentences(monkeypatch: pytest.MonkeyPatch) -> None:
    app = typer.Typer(cls=PlainGroup, rich_markup_mode=None, add_completion=False)
    told = "What this command does takes so many words that no line of eighty columns holds all of them. More."
    for name in ("one", "two"):
        app.command(name, cls=PlainCommand, help=told)(lambda: None)

    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output

    assert " ".join(shown.split()).count(told.removesuffix(". More.")) == 2
