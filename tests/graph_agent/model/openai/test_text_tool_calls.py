import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_agent.model.openai.text_tool_calls import (
    UNREADABLE,
    TextBuffer,
    match_tool_name,
    parse_json_calls,
    parse_named_json_calls,
    parse_tagged_calls,
    parse_text_tool_calls,
)

Call = tuple[str, dict[str, Any]]
OFFERED = ("read_file", "bash", "ls")
LS: Call = ("ls", {})
NAMED = ('{"name":"ls"}', "<function=ls>", "ls")
FRAMES = ("<tool_call>", "</tool_call>", "```json\n", "\n```\n", "[TOOL_CALLS]", "</function>", "<tool_result>")
PIECES = (*NAMED, *FRAMES, "{", "}", "\n")
ODD = {"content": "a </tool_call> <tool_result> ```\n```\n[TOOL_CALLS] <tool_call>{}</tool_call> }"}


def taken(text: str) -> tuple[list[tuple[str, dict[str, Any]]], str]:
    written = parse_text_tool_calls(text, OFFERED)
    assert all(not call.arguments.error for call in written.calls)
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
def test_a_call_within_the_arguments_of_another_is_no_call(frame: str) -> None:
    call = json.dumps({"name": "bash", "arguments": ODD})

    assert taken(frame.replace("{}", call)) == ([("bash", ODD)], "")


def test_text_after_a_made_up_result_is_dropped() -> None:
    made_up = '<tool_result name="ls">\nx\n</tool_result>\nNow <tool_call>{"name": "bash"}</tool_call>'

    assert taken(f'ok\n<tool_call>{{"name": "ls"}}</tool_call>\n{made_up}') == ([LS], "ok")


def test_a_broken_call_says_why_it_did_not_run() -> None:
    (call,) = parse_text_tool_calls(
        '<tool_call>{"name": "bash", "arguments": {"command": "x"</tool_call>', OFFERED
    ).calls

    assert (call.name, call.arguments.value) == ("bash", {})
    assert "not valid JSON" in call.arguments.error


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=9))
def test_any_text_can_be_parsed_and_only_offered_tools_are_called(pieces: list[str]) -> None:
    written = parse_text_tool_calls("".join(pieces), OFFERED)

    assert len([call for call in written.calls if call is not UNREADABLE]) <= sum(
        piece in NAMED for piece in pieces
    )


@pytest.mark.parametrize("name", ["5", "null", '["ls"]', "{}"])
def test_a_tagged_call_whose_name_is_no_text_is_an_error_for_the_model(name: str) -> None:
    (call,) = parse_text_tool_calls(f'<tool_call>{{"name": {name}, "arguments": {{}}}}</tool_call>', OFFERED).calls

    told = f"the name of the tool must be a text, not {name}; send the call again with its name"
    assert (call.name, call.arguments.error) == ("", told)


@pytest.mark.parametrize(
    "text",
    ['{"name": 5, "arguments": {}}', "Write `<tool_call>` to call.", '<Tool name="x" />', "<tools>\n</tools>"],
)
def test_an_unclear_call_stays_text(text: str) -> None:
    assert parse_text_tool_calls(text, OFFERED).calls == ()


@pytest.mark.parametrize(
    "body",
    [
        "{name: 'ls', arguments: {}}", "{'name': 'ls', 'arguments': {}}", "{“name”: “ls”, “arguments”: {}}",
        '{"name": "ls", "path": "."}', '{"ls": {"path": "."}}', '{"name": "l', '{"arguments": 5}',
        "<name>ls</name><arguments>{}</arguments>", "I list the files.", "",
    ],
)  # fmt: skip
def test_tags_without_a_readable_call_are_an_error_for_the_model_and_no_answer(body: str) -> None:
    for text in (f"Sure.\n<tool_call>\n{body}\n</tool_call>", f"Sure.\n<tool_call>{body}"):
        written = parse_text_tool_calls(text, OFFERED)

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
def test_a_call_that_is_cut_off_or_has_no_clear_end_does_not_run(text: str) -> None:
    (call,) = parse_text_tool_calls(text, OFFERED).calls

    assert (call.name, call.arguments.value, bool(call.arguments.error)) == ("bash", {}, True)


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ('{"name": "ls", "arguments": {"path": "."}}', [("ls", {"path": "."})]),
        ('{"name": "ls", "arguments": "{\\"path\\": \\".\\"}"}', [("ls", {"path": "."})]),
        ('{"name": "ls"}', [("ls", {})]),
        ('{"tool": "ls", "parameters": {}}', [("ls", {})]),
        ('{"tool_name": "ls", "tool_input": {"path": "."}}', [("ls", {"path": "."})]),
        ('{"type": "function", "function": {"name": "ls", "arguments": "{}"}}', [("ls", {})]),
        ('{"tool_calls": [{"name": "a", "args": {}}, {"name": "b", "args": {}}]}', [("a", {}), ("b", {})]),
        ('{"name": "a", "input": {}}\n{"name": "b", "input": {}}', [("a", {}), ("b", {})]),
        ('{"recipient_name": "functions.ls", "parameters": {}}', [("ls", {})]),
        ('{"name": "x", "version": "1"}', []),
        ("[1, 2]", []),
        ("words", []),
    ],
)
def test_json_is_a_call_where_it_names_one(text: str, calls: list[Call]) -> None:
    assert [(call.name, call.arguments.value) for call in parse_json_calls(text)[0]] == calls


def test_broken_json_is_a_call_with_an_error() -> None:
    (call,) = parse_json_calls('{"name": "ls", "arguments": {"path": "')[0]

    assert (call.name, call.arguments.value) == ("ls", {})
    assert call.arguments.error.startswith("the call is not valid JSON (Unterminated string")
    assert parse_json_calls('{"path": "')[0] == ()


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        ("<function=ls>\n<parameter=path>\na\nb\n</parameter>\n</function>", [("ls", {"path": "a\nb"})]),
        ('<invoke name="ls"><parameter name="path">.</parameter></invoke>', [("ls", {"path": "."})]),
        ('<function=ls>{"path": "."}</function>', [("ls", {"path": "."})]),
        (
            (
                '<｜DSML｜invoke name="ls">\n<｜DSML｜parameter name="limit" string="false">3</｜DSML｜parameter>\n'
                '<｜DSML｜parameter name="path" string="true">3</｜DSML｜parameter>\n</｜DSML｜invoke>'
            ),
            [("ls", {"limit": 3, "path": "3"})],
        ),
        ("ls\n<arg_key>path</arg_key>\n<arg_value>.</arg_value>", [("ls", {"path": "."})]),
        ("words", []),
    ],
)
def test_tags_are_a_call_in_each_of_their_spellings(text: str, calls: list[Call]) -> None:
    assert [(call.name, call.arguments.value) for call in parse_tagged_calls(text)] == calls


@pytest.mark.parametrize(
    "text", ["<function=ls>\n<parameter=path>\na", "<function=ls>\n<parameter=path>a</function>"]
)
def test_a_call_in_tags_that_has_no_end_is_not_runnable(text: str) -> None:
    (call,) = parse_tagged_calls(text)

    assert (call.arguments.value, call.arguments.error) == (
        {},
        "the call has no end; send the whole of it again",
    )


def test_a_name_may_stand_before_its_arguments() -> None:
    calls = parse_named_json_calls('ls{"path": "}"}bash[ARGS]{"command": "x"}') + parse_named_json_calls('ls{"path')

    assert [(call.name, call.arguments.value) for call in calls] == [
        ("ls", {"path": "}"}),
        ("bash", {"command": "x"}),
        ("ls", {}),
    ]
    assert "end in the middle" in calls[-1].arguments.error


def test_letter_case_and_blanks_do_not_matter_to_whether_a_tool_is_offered() -> None:
    assert [match_tool_name(name, ["Bash", "ls"]) for name in (" bash\n", "LS", "functions.ls:0", "rm")] == [
        "Bash",
        "ls",
        "ls",
        None,
    ]
    assert match_tool_name("BASH", ["Bash", "bash"]) is None


CALL = '<tool_call>\n{"name": "ls", "arguments": {}}\n</tool_call>'


def shown(pieces: list[str]) -> tuple[str, str]:
    """What is shown while it arrives, and at its end."""
    held, text = TextBuffer(), "".join(pieces)
    early = "".join(held.feed(piece) for piece in pieces)
    return early, held.remaining(parse_text_tool_calls(text, ["ls"]).text)


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
