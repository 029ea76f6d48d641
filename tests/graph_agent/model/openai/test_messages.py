from typing import Any

import pytest

from graph_agent.model.openai.messages import plain_text, thinking_text


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("hi", "hi"),
        (None, ""),
        (["h", "i"], "hi"),
        ([{"type": "text", "text": "h"}, {"type": "thinking", "thinking": "no"}, {"text": None}, 3, "i"], "hi"),
        ({"type": "text", "text": "hi"}, "hi"),
        ([{"type": "reasoning", "text": "no"}, {"type": "text", "text": "hi"}], "hi"),
        (7, ""),
    ],
)
def test_text_is_read_from_a_text_or_from_its_parts(content: Any, text: str) -> None:
    assert plain_text(content) == text


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"reasoning_content": "hm"}, "hm"),
        ({"reasoning": "hm", "reasoning_content": None}, "hm"),
        ({"reasoning": "hm", "reasoning_content": "hm"}, "hm"),
        ({"thinking": "hm"}, "hm"),
        ({"reasoning": {"text": "hm"}}, "hm"),
        ({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}, "hm"),
        ({"content": [{"type": "text", "text": "hi"}, "x"]}, ""),
        ({"reasoning_details": [{"type": "reasoning.text", "text": "h"}, {"summary": "m"}, 3]}, "hm"),
        ({"content": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "hi"}]}, "hm"),
        ({"content": "hi"}, ""),
    ],
)
def test_thinking_is_read_from_whichever_field_holds_it(part: dict[str, Any], text: str) -> None:
    assert thinking_text(part) == text
