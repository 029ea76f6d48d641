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


async def test_the_answer_is_handed_to_the_model_as_it_is() -> None:
    assert await _asked("neither, thank you") == ToolResult("neither, thank you", "answered")


async def test_where_nobody_was_asked_the_model_is_told_to_decide_itself() -> None:
    result = await _asked(None)

    assert result.error is not None
    assert result.error.startswith("Nobody was asked")


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


def test_without_a_question_there_is_no_call() -> None:
    with pytest.raises(InvalidArguments, match="question"):
        normalize_arguments(AskUserTool(), {"options": ["a"]})


def test_the_user_sees_the_question_on_one_line() -> None:
    assert AskUserTool().display_call(_QUESTION) == "asks: Tabs or blanks?"
