import json
from pathlib import Path

import pytest
import typer

from graph_agent.cli.views.policy import run_cases

_CASE = {"id": "a-1", "tool": "read", "args": {"path": "x"}}


def test_a_looser_decision_is_told_and_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cases"
    file.write_text(json.dumps({**_CASE, "expected": "deny"}))

    with pytest.raises(typer.Exit) as left:
        run_cases(str(file), as_json=False)

    assert left.value.exit_code == 1
    assert "LOOSER: a-1: allow, expected deny" in capsys.readouterr().out


def test_the_decisions_are_printed_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cases"
    file.write_text(json.dumps({**_CASE, "expected": "allow"}))

    run_cases(str(file), as_json=True)

    printed = json.loads(capsys.readouterr().out)
    assert [one["decision"] for one in printed["cases"]] == ["allow"]
    assert printed["score"]["looser"] == 0
