from typing import Any

import pytest

from graph_agent.ports import ExecutedAttempt, Intent

_RECORD = {
    "tool_name": "bash",
    "kind": "execute",
    "arguments": {"command": "make"},
    "attempt": 2,
    "metadata": {"changed_files": ["a", "b"], "changed_files_more": 3},
}


def test_what_a_command_changed_belongs_to_the_attempt_that_the_record_is_about() -> None:
    first, second = (
        ExecutedAttempt.from_record(("c", number, "success", "at"), None, _RECORD) for number in (1, 2)
    )

    assert (first.changed_files, first.changed_files_more) == (None, 0)
    assert (second.changed_files, second.changed_files_more) == (("a", "b"), 3)
    assert (second.tool_name, second.kind, second.arguments) == ("bash", "execute", {"command": "make"})


@pytest.mark.parametrize(("record", "changes_todo_only"), [({}, False), ({"metadata": {"todo": []}}, True)])
def test_a_call_without_a_record_is_described_by_its_journal_row(
    record: dict[str, Any], changes_todo_only: bool
) -> None:
    intent = Intent("/w/a", None, "x")

    assert ExecutedAttempt.from_record(("c", 1, "error", "at"), intent, record) == ExecutedAttempt(
        "c", 1, "error", intent, "at", changes_todo_only=changes_todo_only
    )
