import json
from pathlib import Path

import pytest

from graph_agent.cli.views.tools import list_tools, show_statistics, show_tool
from graph_agent.errors import ConfigError, UsageError
from tests.fakes.database_rows import Rows, record_of


def test_the_list_has_the_fixed_fields(capsys: pytest.CaptureFixture[str]) -> None:
    list_tools("plan", as_json=True)

    tools = {tool["name"]: tool for tool in json.loads(capsys.readouterr().out)["tools"]}
    assert {name: tools["bash"][name] for name in ("name", "risk", "kind", "origin", "offered")} == {
        "name": "bash",
        "risk": "high",
        "kind": "execute",
        "origin": "builtin",
        "offered": False,
    }


def test_a_tool_is_shown_as_the_model_receives_it(capsys: pytest.CaptureFixture[str]) -> None:
    show_tool("ls", None, as_json=True)
    shown = json.loads(capsys.readouterr().out)
    show_tool("ls", None, as_json=False)
    text = capsys.readouterr().out

    assert shown["description"] in text
    assert json.dumps(shown["parameters"], indent=2) in text
    assert set(shown["parameters"]["properties"]) == {"path", "depth"}


def test_the_table_shows_the_first_sentence_of_each_description(capsys: pytest.CaptureFixture[str]) -> None:
    list_tools(None, as_json=False)

    ends = [line.split("  ")[-1] for line in capsys.readouterr().out.splitlines()]
    assert {"Replace text in a file", "Run a command with bash in the workspace"} <= set(ends)
    assert "preferences for all later conversations" in "".join(ends)


def test_an_unknown_tool_or_mode_is_an_error() -> None:
    with pytest.raises(UsageError, match=r"'read_fil'\. Did you mean 'read_file'"):
        show_tool("read_fil", None, as_json=False)
    with pytest.raises(UsageError, match="No tool named ''"):
        show_tool("", None, as_json=False)
    with pytest.raises(ConfigError, match="flag --mode: mode = 'yolo'"):
        list_tools("yolo", as_json=False)


def test_statistics_are_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = Rows(tmp_path / "graph-agent.db")
    rows.thread()
    rows.call(record_of("success"))
    rows.journal("success", {}, ended_at="2026-11-28T10:00:01.500Z")
    rows.journal("interrupted", attempt=2)

    show_statistics(rows.path, as_json=False)
    rows.close()

    assert capsys.readouterr().out.splitlines() == [
        "TOOL  RUNS  OK  FAILED  UNFINISHED  TOTAL   AVERAGE  P95",
        "bash  2     1   0       1           1.50 s  1.50 s   1.50 s",
    ]


def test_there_are_no_statistics_before_a_tool_ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_statistics(tmp_path / "none.db", as_json=True)
    show_statistics(tmp_path / "none.db", as_json=False)

    assert capsys.readouterr().out == '{\n  "tools": []\n}\nNo tool has run yet.\n'
