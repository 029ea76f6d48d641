import json
from pathlib import Path

import pytest
import typer

from graph_agent.cli.views.policy import check_call, show_policy
from graph_agent.errors import UsageError
from tests.fakes.database_rows import Rows
from tests.fakes.light_commands import json_of, run


@pytest.mark.parametrize(
    ("tool", "arguments", "mode", "code"),
    [
        ("read", '{"path": "a"}', None, 0),
        ("bash", '{"command": "ls"}', None, 3),
        ("bash", '{"command": "ls"}', "dontAsk", 4),
    ],
)
def test_the_exit_code_is_the_decision(
    tool: str, arguments: str, mode: str | None, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as left:
        check_call(tmp_path / "none", tool, arguments, mode=mode, workspace=str(tmp_path), as_json=True)

    assert left.value.exit_code == code
    assert set(json.loads(capsys.readouterr().out)) == {"decision", "rule", "reason", "parsed"}


def test_a_person_is_told_what_would_run_and_why_no_rule_allows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit):
        check_call(
            tmp_path / "none",
            "bash",
            '{"command": "echo $(rm a) > b"}',
            mode=None,
            workspace=str(tmp_path),
            as_json=False,
        )

    told = capsys.readouterr().out
    assert "decision: ask" in told
    assert "runs: rm a" in told
    assert "no rule can allow it: it substitutes a command" in told


@pytest.mark.parametrize(("arguments", "folder"), [("x", None), ("[]", None), ("{}", "/nonexistent")])
def test_wrong_usage_is_told(arguments: str, folder: str | None, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        check_call(tmp_path / "none", "bash", arguments, mode=None, workspace=folder, as_json=False)


def test_what_judges_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_policy(tmp_path / "none", None, as_json=False)

    assert "hard refusals" in capsys.readouterr().out


def test_what_was_allowed_always_counts_and_is_shown_in_its_place_but_for_that_of_one_thread(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows.grant("bash(make a)", scope="user")
    rows.grant("bash(make b)", scope="project", workspace=str(tmp_path))
    rows.grant("bash(make c)", scope="project", workspace="/elsewhere")
    rows.grant("bash(make d)", scope="thread", workspace=str(tmp_path))

    shown = [(rule["step"], rule["rule"], rule["source"]) for rule in json_of(rows, "policy", "show")["rules"]]
    checked = [
        run("policy", "check", "bash", f'{{"command": "make {name}"}}', "--db", str(rows.path)).exit_code
        for name in "abcd"
    ]

    place = shown.index(("what was allowed always", "bash(make a)", "grant 1"))
    assert shown[place + 1] == ("what was allowed always", "bash(make b)", "grant 2")
    assert [step for step, *_ in shown[place - 1 : place + 3 : 3]] == [
        "commands that name a path which deny rules close ask",
        "acceptEdits allows file changes in the workspace",
    ]
    assert checked == [0, 0, 3, 3]
    thread = run("policy", "check", "bash", '{"command": "make d"}', "--db", str(rows.path)).stdout
    assert "allowed always in thread t1: graph-agent policy list" in thread
