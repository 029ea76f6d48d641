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


@pytest.mark.parametrize(
    ("items", "result"),
    [
        (_PLAN, ToolResult(_CHECKLIST, _SO_FAR, metadata={"todo": _PLAN})),
        (
            [{"content": "  look\n at it "}],
            ToolResult(
                "[ ] look at it",
                "plan: 0 of 1 done",
                metadata={"todo": [{"content": "look at it", "status": "pending"}]},
            ),
        ),
        ([], ToolResult("The plan is empty.", "plan: 0 of 0 done", metadata={"todo": []})),
    ],
    ids=["steps", "no-status", "empty"],
)
async def test_a_plan_becomes_state_and_a_checklist(items: Any, result: ToolResult) -> None:
    assert await _write(items) == result
    assert await execute(TodoReadTool(), {}, ToolContext(Path("/w"), todo=_PLAN)) == ToolResult(_CHECKLIST, _SO_FAR)


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


def test_both_are_offered_while_planning_and_writing_never_runs_beside_another() -> None:
    registry, tool, arguments = ToolRegistry(), TodoWriteTool(), {"items": _PLAN}
    registry.register_all([tool, TodoReadTool()])

    assert [available.name for available in registry.available("plan")] == ["todo_write", "todo_read"]
    assert (tool.is_read_only(arguments), tool.is_concurrency_safe(arguments)) == (True, False)
