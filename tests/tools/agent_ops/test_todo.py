from pathlib import Path
from typing import Any

import pytest

from tests.contracts.example_calls import ExampleCalls
from tools.agent_ops.todo import TodoReadTool, TodoWriteTool
from tools.base import ToolContext, ToolResult
from tools.registry import ToolRegistry
from tools.running import execute, normalize_arguments
from tools.schema import InvalidArguments

EXAMPLE_CALLS = {
    "todo_write": ExampleCalls(
        {"items": [{"content": "look", "status": "in_progress"}, {"content": "act"}]},
        {"items": [{"content": "a", "status": "in_progress"}, {"content": "b", "status": "in_progress"}]},
    ),
    "todo_read": ExampleCalls({}, None),
}

_PLAN = [
    {"content": "look around", "status": "completed"},
    {"content": "mend it", "status": "in_progress"},
    {"content": "tell", "status": "pending"},
]
_CHECKLIST = "[x] look around\n[>] mend it\n[ ] tell"
_SO_FAR = "plan: 1 of 3 done, now mend it"


async def _write(items: Any) -> ToolResult:
    tool = TodoWriteTool()
    return await execute(tool, normalize_arguments(tool, {"items": items}), ToolContext(Path("/w")))


async def test_a_plan_is_handed_to_the_state_and_told_as_a_checklist() -> None:
    assert await _write(_PLAN) == ToolResult(_CHECKLIST, _SO_FAR, metadata={"todo": _PLAN})


async def test_a_step_without_a_status_is_still_to_do_and_stands_on_one_line() -> None:
    result = await _write([{"content": "  look\n at it "}])

    assert result.metadata == {"todo": [{"content": "look at it", "status": "pending"}]}


async def test_an_empty_plan_clears_the_one_before() -> None:
    assert await _write([]) == ToolResult("The plan is empty.", "plan: 0 of 0 done", metadata={"todo": []})


async def test_two_steps_at_once_are_refused_before_and_while_running() -> None:
    items = [{"content": "a", "status": "in_progress"}, {"content": "b", "status": "in_progress"}]
    words = "items: 'a' and 'b' are in_progress at once; keep one of them and set the others to pending."

    result = await _write(items)

    assert (TodoWriteTool().validate({"items": items}), result.error) == (words, words)
    assert result.metadata == {"error_type": "validation"}


@pytest.mark.parametrize("items", [[{"content": ""}], [{"content": " \n"}], [{"content": "x"}] * 101])
def test_plans_that_say_nothing_or_too_much_are_refused(items: list[dict[str, str]]) -> None:
    with pytest.raises(InvalidArguments, match="items"):
        normalize_arguments(TodoWriteTool(), {"items": items})


async def test_reading_shows_the_plan_of_the_thread() -> None:
    context = ToolContext(Path("/w"), todo=_PLAN)

    assert await execute(TodoReadTool(), {}, context) == ToolResult(_CHECKLIST, _SO_FAR)


def test_both_are_offered_while_planning() -> None:
    registry = ToolRegistry()
    registry.register_all([TodoWriteTool(), TodoReadTool()])

    assert [tool.name for tool in registry.offered("plan")] == ["todo_write", "todo_read"]


def test_writing_a_plan_may_be_repeated_but_never_runs_beside_another() -> None:
    tool, arguments = TodoWriteTool(), {"items": _PLAN}

    assert (tool.is_read_only(arguments), tool.is_concurrency_safe(arguments)) == (True, False)
