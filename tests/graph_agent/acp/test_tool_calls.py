from pathlib import Path
from typing import Any

import pytest

from graph_agent.acp.tool_calls import plan_entries, question_content, tool_call
from tests.fakes.scripted_session import approval, recovery
from tools.diff import diff_texts

_WORKSPACE = Path("/w")
_OLD = "".join(f"line {number}\n" for number in range(1, 31))
_NEW = _OLD.replace("line 3\n", "line three\n").replace("line 25\n", "")


def _record(tool: str, arguments: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {
        "call_id": "c1",
        "tool_name": tool,
        "arguments": arguments,
        "status": "pending",
        "result": None,
        **fields,
    }


def _preview(before: str | None, after: str) -> dict[str, Any]:
    return {"kind": "diff", "text": diff_texts("/w/a.txt", before, after, digests=(None, "")).unified}


def test_a_change_is_shown_piece_by_piece_with_the_line_where_it_begins() -> None:
    call = tool_call(_record("edit_file", {"file_path": "a.txt"}, preview=_preview(_OLD, _NEW)), _WORKSPACE)

    pieces = [(one["oldText"].count("\n"), one["newText"].count("\n"), one["path"]) for one in call["content"]]
    assert pieces == [(6, 6, "/w/a.txt"), (7, 6, "/w/a.txt")]
    assert "line three" in call["content"][0]["newText"]
    assert (call["kind"], call["locations"]) == ("edit", [{"path": "/w/a.txt", "line": 3}])


@pytest.mark.parametrize(
    ("preview", "text"),
    [(_preview(None, "a\nb"), "a\nb"), ({**_preview(None, "a\n"), "full": "blob:sha256:0"}, "a\nmuch more\n")],
)
def test_a_new_file_is_one_piece_without_a_text_before(preview: dict[str, Any], text: str) -> None:
    record = _record("write_file", {"file_path": "a.txt", "content": "a\nmuch more\n"}, preview=preview)

    assert tool_call(record, _WORKSPACE)["content"] == [
        {"type": "diff", "path": "/w/a.txt", "oldText": None, "newText": text}
    ]


@pytest.mark.parametrize(
    ("tool", "fields", "kind"),
    [
        ("read_file", {}, "read"),
        ("grep", {}, "search"),
        ("bash", {}, "execute"),
        ("web_fetch", {}, "fetch"),
        ("todo_write", {}, "think"),
        ("present_plan", {}, "switch_mode"),
        ("mcp__notes__note", {"kind": "write"}, "edit"),
        ("mcp__notes__list", {"kind": "readonly"}, "read"),
        ("no_such_tool", {}, "other"),
    ],
)
def test_kinds_follow_from_the_tool_or_from_what_it_does(tool: str, fields: dict[str, Any], kind: str) -> None:
    assert tool_call(_record(tool, {}, **fields), _WORKSPACE)["kind"] == kind


@pytest.mark.parametrize(
    ("fields", "status", "text"),
    [
        ({"status": "success", "result": "a ``` b"}, "completed", "````\na ``` b\n````"),
        ({"status": "error", "error_msg": "no such file"}, "failed", "no such file"),
        (
            {"status": "cancelled", "outcome": "rejected", "decided_by": "pid 7", "reason": "not now"},
            "failed",
            "rejected by pid 7: not now",
        ),
    ],
)
def test_a_call_that_has_ended_says_how(fields: dict[str, Any], status: str, text: str) -> None:
    call = tool_call(_record("bash", {"command": "x"}, **fields), _WORKSPACE)

    assert (call["status"], call["content"][0]["content"]["text"]) == (status, text)


@pytest.mark.parametrize(
    ("item", "parts"),
    [
        (
            approval("c1", "bash", {"command": "rm \u202ex"}, risk="high", risk_reason="deletes x"),
            ["HIGH risk: it deletes x", "```sh\nrm \\u202ex\n```", "in a sandbox"],
        ),
        (approval("c1", "bash", {"command": "cаt x"}), ["mixes alphabets: U+0430"]),
        (
            recovery("c1", "bash", {"command": "x"}, partial_output="half", finding="Unknown.", processes=(7,)),
            ["it may have run in part or in full", "Unknown.", "pid 7", "half"],
        ),
        (approval("c1", "ask_user", {"question": "Which?"}, requires_input=True), ["Which?"]),
    ],
)
def test_a_question_shows_what_helps_to_decide(item: Any, parts: list[str]) -> None:
    text = "\n".join(one["content"]["text"] for one in question_content(item, "in a sandbox"))

    assert [part for part in parts if part not in text] == []


@pytest.mark.parametrize(
    ("metadata", "plan"),
    [
        ({"todo": [{"content": "a", "status": "completed"}]}, [("a", "completed")]),
        ({"todo": []}, []),
        ({"todo": "odd"}, None),
        ({}, None),
    ],
)
def test_the_steps_of_a_plan_are_read_from_the_call_that_wrote_it(metadata: dict[str, Any], plan: Any) -> None:
    found = plan_entries(_record("todo_write", {}, metadata=metadata))

    assert (found if found is None else [(one["content"], one["status"]) for one in found]) == plan
