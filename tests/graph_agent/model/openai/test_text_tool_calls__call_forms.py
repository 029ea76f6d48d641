from typing import Any

import pytest

from graph_agent.model.openai.text_tool_calls import in_json, in_tags, named_json, offered_as

Call = tuple[str, dict[str, Any]]


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
    assert [(call.name, call.arguments.value) for call in in_json(text).calls] == calls


def test_json_that_is_broken_is_a_call_that_is_told_so() -> None:
    (call,) = in_json('{"name": "ls", "arguments": {"path": "').calls

    assert (call.name, call.arguments.value) == ("ls", {})
    assert call.arguments.complaint.startswith("the call is not valid JSON (Unterminated string")
    assert in_json('{"path": "').calls == ()


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
    assert [(call.name, call.arguments.value) for call in in_tags(text)] == calls


@pytest.mark.parametrize(
    "text", ["<function=ls>\n<parameter=path>\na", "<function=ls>\n<parameter=path>a</function>"]
)
def test_a_call_in_tags_that_has_no_end_is_not_runnable(text: str) -> None:
    (call,) = in_tags(text)

    assert (call.arguments.value, call.arguments.complaint) == (
        {},
        "the call has no end; send the whole of it again",
    )


def test_a_name_may_stand_before_its_arguments() -> None:
    calls = named_json('ls{"path": "}"}bash[ARGS]{"command": "x"}') + named_json('ls{"path')

    assert [(call.name, call.arguments.value) for call in calls] == [
        ("ls", {"path": "}"}),
        ("bash", {"command": "x"}),
        ("ls", {}),
    ]
    assert "not valid JSON" in calls[-1].arguments.complaint


def test_letter_case_and_blanks_do_not_matter_to_whether_a_tool_is_offered() -> None:
    assert [offered_as(name, ["Bash", "ls"]) for name in (" bash\n", "LS", "functions.ls:0", "rm")] == [
        "Bash",
        "ls",
        "ls",
        None,
    ]
    assert offered_as("BASH", ["Bash", "bash"]) is None
