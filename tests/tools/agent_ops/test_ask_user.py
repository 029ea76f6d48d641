from pathlib import Path
from typing import Any

import pytest

from tests.contracts.example_calls import ExampleCalls
from tools.agent_ops.ask_user import AskUserTool
from tools.base import ToolContext, ToolResult
from tools.running import execute, normalize_arguments
from tools.schema import InvalidArguments

EXAMPLE_CALLS = {
    "ask_user": ExampleCalls(
        {"question": "Which port?", "options": ["8080", "9090"]}, {"question": " "}, needs_context=True
    ),
}

_QUESTION = {"question": "Tabs or\nblanks?", "options": ["tabs", "blanks"]}


async def _asked(answer: str | None) -> ToolResult:
    tool = AskUserTool()
    return await execute(tool, normalize_arguments(tool, _QUESTION), ToolContext(Path("/w"), answer=answer))


async def test_the_answer_is_the_result_and_without_one_the_model_decides() -> None:
    assert AskUserTool().display_call(_QUESTION) == "asks: Tabs or blanks?"
    assert await _asked("neither, thank you") == ToolResult("neither, thank you", "answered")
    assert str((await _asked(None)).error).startswith("Nobody was asked")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"question": " \n"}, "question: it is empty; ask what you need to know, in one sentence."),
        (
            {"question": "which?", "options": ["a", ""]},
            "options: one of them is empty; leave it out, or give it a text.",
        ),
    ],
)
def test_an_empty_question_or_option_is_refused(arguments: dict[str, Any], complaint: str) -> None:
    tool = AskUserTool()

    assert tool.validate(normalize_arguments(tool, arguments)) == complaint
    with pytest.raises(InvalidArguments, match="question"):
        normalize_arguments(tool, {"options": ["a"]})
