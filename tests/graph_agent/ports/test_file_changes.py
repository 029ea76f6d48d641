from typing import Any

import pytest

from graph_agent.ports import ExecutedAttempt, Intent
from graph_agent.ports.time_travel import changes_by_path, find_foreign_change


def change(before: str | None, after: str, status: str = "success", path: str = "/w/a") -> ExecutedAttempt:
    return ExecutedAttempt("c", 1, status, Intent(path, before, after), "")


@pytest.mark.parametrize(
    ("now", "changes", "why"),
    [
        ("b", [change("a", "b")], ""),
        ("c", [change("a", "b"), change("b", "c")], ""),
        ("a", [change("a", "b", "executing")], ""),
        ("b", [change("a", "b"), change("b", "c", "interrupted")], ""),
        ("x", [change("a", "b")], "changed by somebody else since"),
        ("b", [change("a", "b"), change("b", "c")], "changed by somebody else since"),
        (None, [change("a", "b")], "removed by somebody else"),
        ("c", [change("a", "b"), change("x", "c")], "between two changes"),
    ],
)
def test_a_foreign_change_is_explained(now: Any, changes: list[ExecutedAttempt], why: str) -> None:
    found = find_foreign_change(now, changes)

    assert (found == "") == (why == "")
    assert why in found


def test_changes_are_grouped_by_file_without_failed_ones_and_commands() -> None:
    first, other, failed = change(None, "b"), change(None, "c", path="/w/o"), change("b", "c", "error")
    command = ExecutedAttempt("c", 1, "success", None, "")

    assert changes_by_path([first, other, failed, command]) == {"/w/a": [first], "/w/o": [other]}
