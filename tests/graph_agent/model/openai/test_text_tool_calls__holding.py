import pytest

from graph_agent.model.openai.text_tool_calls import HeldText, written_calls

CALL = '<tool_call>\n{"name": "ls", "arguments": {}}\n</tool_call>'


def shown(pieces: list[str]) -> tuple[str, str]:
    """What is shown while it arrives, and at its end."""
    held, text = HeldText(), "".join(pieces)
    early = "".join(held.feed(piece) for piece in pieces)
    return early, held.rest(written_calls(text, ["ls"]).text)


@pytest.mark.parametrize(
    ("text", "early", "late"),
    [
        ("one\ntwo\nthree", "one\ntwo\n", "three"),
        (f"look\n{CALL}", "look\n", ""),
        (f"look\n{CALL}\nthen", "look\n", "\nthen"),
        (f"say {CALL}", "", "say"),
        ("a <b> c\nd\n", "", "a <b> c\nd\n"),
        ("```python\nx\n```\n", "```python\nx\n", "```\n"),
        ('{"a": 1}\nb', "", '{"a": 1}\nb'),
        ("", "", ""),
    ],
)
def test_lines_are_shown_until_one_may_begin_a_call_and_the_rest_when_it_is_known(
    text: str, early: str, late: str
) -> None:
    assert shown([text]) == shown(list(text)) == (early, late)
