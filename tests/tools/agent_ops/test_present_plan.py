from pathlib import Path

import pytest

from tests.contracts.example_calls import ExampleCalls
from tools import create_default_tools
from tools.agent_ops.present_plan import PresentPlanTool
from tools.base import ToolContext, ToolResult
from tools.registry import ToolRegistry
from tools.running import execute, normalize_arguments
from tools.schema import InvalidArguments

EXAMPLE_CALLS = {
    "present_plan": ExampleCalls({"plan": "1. write a.txt"}, {"plan": " "}, needs_context=True),
}


async def _presented(answer: str | None) -> ToolResult:
    tool = PresentPlanTool()
    return await execute(
        tool, normalize_arguments(tool, {"plan": "1. write\n2. test"}), ToolContext(Path("/w"), answer=answer)
    )


async def test_the_decision_is_the_result_and_without_a_user_the_plan_is_the_answer() -> None:
    assert PresentPlanTool().display_call({"plan": "1. write\n2. test"}) == "plan: 1. write 2. test"
    assert (await _presented("start")).output == "The user's decision on the plan: start"
    assert str((await _presented(None)).error).startswith("Nobody was asked")


def test_an_empty_plan_is_refused() -> None:
    tool = PresentPlanTool()

    assert str(tool.validate({"plan": " \n"})).startswith("plan: it is empty")
    with pytest.raises(InvalidArguments, match="plan"):
        normalize_arguments(tool, {"plan": "x" * 20_001})


def test_it_is_offered_in_plan_mode_only() -> None:
    registry = ToolRegistry()
    for tool in create_default_tools(workspace="."):
        registry.register(tool)

    offered = {mode: {tool.name for tool in registry.available(mode)} for mode in ("default", "plan", "auto")}
    assert {mode: "present_plan" in names for mode, names in offered.items()} == {
        "default": False,
        "plan": True,
        "auto": False,
    }
