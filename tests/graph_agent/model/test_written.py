import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_agent.model.written import written_calls

Call = tuple[str, dict[str, Any]]
OFFERED = ("read_file", "bash", "ls")
LS: Call = ("ls", {})
NAMED = ('{"name":"ls"}', "<function=ls>", "ls")
FRAMES = ("<tool_call>", "</tool_call>", "```json\n", "\n```\n", "[TOOL_CALLS]", "</function>", "<tool_result>")
PIECES = (*NAMED, *FRAMES, "{", "}", "\n")
ODD = {"content": "a </tool_call> <tool_result> ```\n```\n[TOOL_CALLS] <tool_call>{}</tool_call> }"}


def taken(text: str) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    written = written_calls(text, OFFERED)
    assert all(not call.arguments.complaint for call in written.calls)
    return [(call.name, call.arguments.value) for call in written.calls], written.text


@pytest.mark.parametrize(
    ("text", "calls", "rest"),
    [
        ('<tool_call>\n{"name": "ls", "arguments": {}}\n</tool_call>', [LS], ""),
        ('Look. <tool_call>{"name": "ls"}</tool_call>\n<tool_call>{"name": "x"}', [LS, ("x", {})], "Look."),
        ('a\n```json\n{"name": "ls", "arguments": {}}\n```\nb', [LS], "a\n\nb"),
        ('Sure.\n{"name": "ls", "arguments": {}}', [LS], "Sure."),
        ('[{"name": "ls", "arguments": {}}, {"name": "bash", "arguments": {}}]', [LS, ("bash", {})], ""),
        ('[TOOL_CALLS][{"name": "ls", "arguments": {}}]', [LS], ""),
        ("[TOOL_CALLS]ls[ARGS]{}[TOOL_CALLS]bash{}", [LS, ("bash", {})], ""),
        ("<tool_call>\n<function=ls>\n</function>\n</tool_call>", [LS], ""),
        ("hm\n<function=ls>\n</function>\n</tool_call>", [LS], "hm"),
        ('<｜DSML｜tool_calls>\n<｜DSML｜invoke name="ls">\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>', [LS], ""),
        (
            (
                "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>ls\n```json\n{}\n```<｜tool▁call▁end｜>"
                "<｜tool▁calls▁end｜>"
            ),
            [LS],
            "",
        ),
        ('A call looks like {"name": "ls"} here.', [], 'A call looks like {"name": "ls"} here.'),
        ('```json\n{"name": "me", "version": "1"}\n```', [], '```json\n{"name": "me", "version": "1"}\n```'),
        ('{"name": "no_such_tool", "arguments": {}}', [], '{"name": "no_such_tool", "arguments": {}}'),
        ("plain", [], "plain"),
    ],
)
def test_calls_are_found_in_the_text_in_every_form_and_the_rest_is_the_text(
    text: str, calls: list[tuple[str, dict[str, Any]]], rest: str
) -> None:
    assert taken(text) == (calls, rest)


@pytest.mark.parametrize("frame", ["<tool_call>{}</tool_call>", "```json\n{}\n```", "{}", "[TOOL_CALLS]{}"])
def test_what_looks_like_a_call_within_the_arguments_of_one_is_none(frame: str) -> None:
    call = json.dumps({"name": "bash", "arguments": ODD})

    assert taken(frame.replace("{}", call)) == ([("bash", ODD)], "")


def test_what_follows_an_answer_that_the_model_made_up_is_dropped() -> None:
    made_up = '<tool_result name="ls">\nx\n</tool_result>\nNow <tool_call>{"name": "bash"}</tool_call>'

    assert taken(f'ok\n<tool_call>{{"name": "ls"}}</tool_call>\n{made_up}') == ([LS], "ok")


def test_a_broken_call_is_one_that_is_told_why_it_did_not_run() -> None:
    (call,) = written_calls('<tool_call>{"name": "bash", "arguments": {"command": "x"</tool_call>', OFFERED).calls

    assert (call.name, call.arguments.value) == ("bash", {})
    assert "not valid JSON" in call.arguments.complaint


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=9))
def test_whatever_is_written_it_is_taken_apart_and_nothing_is_called_that_is_not_there(pieces: list[str]) -> None:
    written = written_calls("".join(pieces), OFFERED)

    assert len(written.calls) <= sum(piece in NAMED for piece in pieces)


@pytest.mark.parametrize("name", ["5", "null", '["ls"]', "{}"])
def test_a_call_between_tags_whose_name_is_no_text_is_one_the_model_is_told_about(name: str) -> None:
    (call,) = written_calls(f'<tool_call>{{"name": {name}, "arguments": {{}}}}</tool_call>', OFFERED).calls

    told = f"the name of the tool must be a text, not {name}; send the call again with its name"
    assert (call.name, call.arguments.complaint) == ("", told)


@pytest.mark.parametrize("text", ['{"name": 5, "arguments": {}}', '<tool_call>{"arguments": 5}</tool_call>'])
def test_what_may_be_no_call_at_all_stays_text(text: str) -> None:
    assert written_calls(text, OFFERED).calls == ()
