import json
from pathlib import Path

import pytest

from graph_agent.app.policy import CaseResult, Score, run_policy_cases
from graph_agent.errors import UsageError

_CASES = Path(__file__).parents[2] / "policy" / "labelled"


def _file(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(lines))
    return path


@pytest.mark.parametrize("file", sorted(_CASES.glob("*.jsonl")), ids=lambda file: file.stem)
def test_nothing_labelled_is_decided_otherwise(file: Path) -> None:
    scored, score = run_policy_cases(file)

    assert [one for one in scored if not one.is_right] == []
    assert score.cases > 0


def test_families_are_counted_by_how_their_cases_were_decided(tmp_path: Path) -> None:
    case = {"tool": "read", "args": {"path": "{WS}/README.md"}}
    path = _file(
        tmp_path,
        json.dumps({"id": "a-1", "expected": "allow", **case}),
        json.dumps({"id": "a-2", "expected": "ask", **case}),
    )

    scored, score = run_policy_cases(path)

    assert scored[1] == CaseResult("a-2", "ask", "allow", "risk low", "read_file has low risk.")
    assert score == Score(2, 1, 0, 1, {"a": {"right": 1, "stricter": 0, "looser": 1}})


def test_a_call_with_unusable_arguments_is_one_that_nobody_makes(tmp_path: Path) -> None:
    path = _file(tmp_path, '{"id": "a", "tool": "read", "args": {"path": 7, "x": 1}, "expected": "deny"}')

    scored, _ = run_policy_cases(path)

    assert [(one.decision, one.rule) for one in scored] == [("deny", "unusable arguments")]


@pytest.mark.parametrize("line", ["nonsense", "{}", '{"id": "a", "tool": "read", "args": {}, "expected": "maybe"}'])
def test_a_line_that_is_no_case_is_named(line: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="line 1"):
        run_policy_cases(_file(tmp_path, line))
