import json
from pathlib import Path

import pytest
import typer

from graph_agent.cli.views.policy import check, show
from graph_agent.errors import UsageError


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
        check(tool, arguments, mode, str(tmp_path), as_json=True)

    assert left.value.exit_code == code
    assert set(json.loads(capsys.readouterr().out)) == {"decision", "rule", "reason", "parsed"}


def test_a_person_is_told_what_would_run_and_why_no_rule_allows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit):
        check("bash", '{"command": "echo $(rm a) > b"}', None, str(tmp_path), as_json=False)

    told = capsys.readouterr().out
    assert "decision: ask" in told
    assert "runs: rm a" in told
    assert "no rule can allow it: it substitutes a command" in told


@pytest.mark.parametrize(("arguments", "folder"), [("x", None), ("[]", None), ("{}", "/nonexistent")])
def test_wrong_usage_is_told(arguments: str, folder: str | None) -> None:
    with pytest.raises(UsageError):
        check("bash", arguments, None, folder, as_json=False)


def test_what_judges_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    show(None, as_json=False)

    assert "hard refusals" in capsys.readouterr().out
