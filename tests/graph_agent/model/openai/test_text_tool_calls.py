import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_agent.model.openai.text_tool_calls import UNREADABLE, written_calls

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
        ('```xml\n<tool_call>\n{"name": "ls"}\n</tool_call>\n```', [LS], ""),
        ('<tool_call>\n```json\n{"name": "ls", "arguments": {}}\n```\n</tool_call>', [LS], ""),
        ('~~~\n{"name": "ls", "arguments": {}}\n~~~', [LS], ""),
        ('<TOOL_CALL>{"name": "ls"}</TOOL_CALL>', [LS], ""),
        ('<tool-call>{"name": "ls"}</tool-call>', [LS], ""),
        ('<|tool_call|>[{"name": "ls", "arguments": {}}]', [LS], ""),
        ('<|python_tag|>{"name": "ls", "parameters": {}}', [LS], ""),
        ('functools[{"name": "ls", "arguments": {}}]', [LS], ""),
        ("Thought: look.\nAction: ls\nAction Input: {}\nObservation: nothing", [LS], "Thought: look."),
        (
            "<|tool_call_begin|>functions.ls:0<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>",
            [("functions.ls:0", {})],
            "",
        ),
        (
            'Hm.\n<think><tool_call>{"name": "bash"}</tool_call></think>\n<tool_call>{"name": "ls"}</tool_call>',
            [LS],
            'Hm.\n<think>{"name": "bash"}</think>',
        ),
        (
            '<tool_call>{"name": "x", "args": {"a": "<think>"}}</tool_call><tool_call>ls{}</tool_call></think>',
            [("x", {"a": "<think>"}), LS],
            "</think>",
        ),
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

    assert len([call for call in written.calls if call is not UNREADABLE]) <= sum(
        piece in NAMED for piece in pieces
    )


@pytest.mark.parametrize("name", ["5", "null", '["ls"]', "{}"])
def test_a_call_between_tags_whose_name_is_no_text_is_one_the_model_is_told_about(name: str) -> None:
    (call,) = written_calls(f'<tool_call>{{"name": {name}, "arguments": {{}}}}</tool_call>', OFFERED).calls

    told = f"the name of the tool must be a text, not {name}; send the call again with its name"
    assert (call.name, call.arguments.complaint) == ("", told)


@pytest.mark.parametrize(
    "text",
    ['{"name": 5, "arguments": {}}', "Write `<tool_call>` to call.", '<Tool name="x" />', "<tools>\n</tools>"],
)
def test_what_may_be_no_call_at_all_stays_text(text: str) -> None:
    assert written_calls(text, OFFERED).calls == ()


@pytest.mark.parametrize(
    "body",
    [
        "{name: 'ls', arguments: {}}",
        "{'name': 'ls', 'arguments': {}}",
        "{“name”: “ls”, “arguments”: {}}",
        '{"name": "ls", "path": "."}',
        '{"ls": {"path": "."}}',
        '{"name": "l',
        '{"arguments": 5}',
        "<name>ls</name><arguments>{}</arguments>",
        "I list the files.",
        "",
    ],
)
def test_what_stands_where_a_call_should_and_is_none_is_told_to_the_model_and_never_an_answer(body: str) -> None:
    for text in (f"Sure.\n<tool_call>\n{body}\n</tool_call>", f"Sure.\n<tool_call>{body}"):
        written = written_calls(text, OFFERED)

        assert (written.calls, written.text) == ((UNREADABLE,), "Sure.")


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>bash\n<arg_key>command</arg_key>\n<arg_value>rm a</arg_value>\n<arg_key>timeout</arg_key>",
        "<function=bash><parameter=command>echo </parameter> b</parameter></function>",
        '<tool_call>\n{"name": "bash", "arguments": {"command": "echo "a""}}\n</tool_call>',
        '<tool_call>\n{"name": "bash", "arguments": {"command": "ls",}}\n</tool_call>',
        'Action: bash\nAction Input: {"command": "rm -rf bu',
    ],
)
def test_of_a_call_that_is_cut_or_has_no_clear_end_nothing_is_run(text: str) -> None:
    (call,) = written_calls(text, OFFERED).calls

    assert (call.name, call.arguments.value, bool(call.arguments.complaint)) == ("bash", {}, True)
