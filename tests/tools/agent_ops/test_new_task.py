from pathlib import Path
from typing import Any

import pytest

from tests.contracts.example_calls import ExampleCalls
from tests.fakes.tool_ports import ImmediateSubAgents
from tools.agent_ops.new_task import NewTaskTool, SubAgentTask
from tools.base import ToolContext, ToolResult
from tools.running import execute, normalize_arguments

EXAMPLE_CALLS = {
    "new_task": ExampleCalls({"prompt": "Count the files.", "tools": ["ls"]}, {"prompt": " "}),
}


async def _given(port: ImmediateSubAgents | None, **arguments: Any) -> ToolResult:
    tool = NewTaskTool(sub_agents=port)
    return await execute(tool, normalize_arguments(tool, arguments), ToolContext(Path("/w"), call_id="c1"))


async def test_the_sub_agent_gets_the_task_with_the_tools_under_their_own_names() -> None:
    port = ImmediateSubAgents("read_file", "bash")
    asked = {"description": "count\nit all", "tools": ["Read", "bash", "read_file"], "max_steps": "7"}

    result = await _given(port, prompt="count", **asked)
    await _given(port, prompt="word " * 40)
    alone = await _given(None, prompt="go")

    assert result == ToolResult("did count for c1", "done")
    # Without a description the user reads how the prompt begins.
    untitled = SubAgentTask(f"{'word ' * 15}word…", "word " * 40)
    assert port.tasks == [SubAgentTask("count it all", "count", ("read_file", "bash"), 7), untitled]
    assert alone.error == "Sub-agents are not available here; do the work yourself."


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"prompt": " \n"}, "prompt: it is empty; say what to do, and what the answer should contain."),
        (
            {"prompt": "go", "tools": ["bash", "fly"]},
            "tools: There is no tool 'fly'. Available tools: bash, read_file.",
        ),
    ],
)
async def test_a_task_without_words_or_with_unknown_tools_is_refused(
    arguments: dict[str, Any], complaint: str
) -> None:
    port = ImmediateSubAgents("read_file", "bash")

    result = await _given(port, **arguments)

    assert (result.error, NewTaskTool(sub_agents=port).validate(arguments)) == (complaint, complaint)
    assert port.tasks == []


async def test_who_is_asked_about_a_task_sees_all_of_it() -> None:
    tool = NewTaskTool()

    given: list[dict[str, Any]] = [{}, {"tools": ["ls"]}, {"tools": []}]
    shown = [await tool.preview({"prompt": "go\non", **more}) for more in given]

    assert [one.text for one in shown if one] == [
        f"go\non\n\nwith {tools}\n" for tools in ("all tools", "ls", "no tools")
    ]
