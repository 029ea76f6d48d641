"""A tool call as the protocol shows it: title, kind, locations, stored diff, output; the same after a restart."""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypedDict

from graph_agent.calls import PLAN_TOOL, outcome_of, question_and_options
from graph_agent.config.paths import own_command
from graph_agent.inspect.calls import describe_end
from graph_agent.ports.stored_text import Hunk, parse_diff, plain_text
from graph_agent.session.turn_result import OpenQuestion
from graph_agent.wording import escape, mixed_alphabets

__all__ = [
    "Content",
    "Status",
    "ToolCall",
    "call_update",
    "diff_content",
    "output_content",
    "plan_entries",
    "question_content",
    "text_content",
    "tool_call",
    "tool_call_id",
]

Status = Literal["pending", "in_progress", "completed", "failed"]
Content = Mapping[str, Any]

_KINDS: Mapping[str, str] = {
    **dict.fromkeys(("read_file", "ls", "bash_output", "bash_list", "skill"), "read"),
    **dict.fromkeys(("grep", "glob", "tool_search"), "search"),
    **dict.fromkeys(("write_file", "edit_file"), "edit"),
    **dict.fromkeys(("bash", "powershell", "bash_kill"), "execute"),
    **dict.fromkeys(("web_fetch", "web_search"), "fetch"),
    **dict.fromkeys(("todo_write", "todo_read", "ask_user", "save_memory", "attempt_completion", "task"), "think"),
    PLAN_TOOL: "switch_mode",
}
"""By tool; every other one by what its record says it does."""
_RECORD_KINDS: Mapping[str, str] = {"readonly": "read", "write": "edit", "execute": "execute"}
_STATUSES: Mapping[str, Status] = {
    "pending": "pending",
    "awaiting_approval": "pending",
    "interrupted": "pending",
    "executing": "in_progress",
    "success": "completed",
    "error": "failed",
    "cancelled": "failed",
}
_PRIORITY = "medium"
"""Of every step of a plan: the protocol wants one, and the tool has none."""
_MAX_OUTPUT = 30_000
_FENCE = re.compile(r"`{3,}")


class ToolCall(TypedDict, total=False):
    """The fields of a `tool_call` and of a `tool_call_update`."""

    toolCallId: str
    title: str
    kind: str
    status: Status
    content: Sequence[Content]
    locations: Sequence[Mapping[str, Any]]
    rawInput: Any
    rawOutput: Any


def tool_call_id(call_id: str, thread_id: str = "") -> str:
    """The id of a call for the client; one of a sub-agent as the `approvals` command names it, THREAD:CALL."""
    return f"{thread_id}:{call_id}" if thread_id else call_id


def tool_call(record: Mapping[str, Any], workspace: Path, thread_id: str = "") -> ToolCall:
    """Everything that is known of a call, from its record.

    Args:
        thread_id: the thread of the sub-agent whose call it is.
    """
    shown = call_update(record, thread_id)
    shown["title"] = _title(record)
    shown["kind"] = _KINDS.get(record["tool_name"]) or _RECORD_KINDS.get(str(record.get("kind")), "other")
    shown["rawInput"] = record["arguments"]
    if locations := [*_locations(record, workspace)]:
        shown["locations"] = locations
    return shown


def call_update(record: Mapping[str, Any], thread_id: str = "") -> ToolCall:
    """What changes of a call while it runs: status and content."""
    content = [*diff_content(record), *output_content(record)]
    shown: ToolCall = {
        "toolCallId": tool_call_id(record["call_id"], thread_id),
        "status": _STATUSES.get(record["status"], "pending"),
    }
    if content:
        shown["content"] = content
    if record.get("result") is not None:
        shown["rawOutput"] = {"output": _shortened(str(record["result"]))}
    return shown


def diff_content(record: Mapping[str, Any]) -> Iterator[Content]:
    """The stored preview of a change, piece by piece; a new file is one piece."""
    preview = record.get("preview") or {}
    if preview.get("kind") != "diff":
        return
    head, hunks = parse_diff(str(preview.get("text", "")))
    path = next((line.removeprefix("+++ ") for line in head if line.startswith("+++ ")), "")
    is_new = bool(head) and head[0] == "--- /dev/null"
    content = record["arguments"].get("content")
    if is_new and isinstance(content, str) and "full" in preview:
        yield _diff(path, None, content)  # The stored diff is cut; a new file is its content.
        return
    for hunk in hunks if path else ():
        yield _diff(path, None if is_new else hunk.side("-"), hunk.side("+"))


def _diff(path: str, old: str | None, new: str) -> Content:
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


def output_content(record: Mapping[str, Any]) -> Iterator[Content]:
    """What a call that has ended says; the text of a change is its diff."""
    if (error := record.get("error_msg")) is not None:
        yield text_content(str(error))
    result = record.get("result")
    has_diff = (record.get("preview") or {}).get("kind") == "diff"
    if result and not (has_diff and record["status"] == "success"):
        yield text_content(_fenced(_shortened(str(result))))
    if record["status"] == "cancelled":
        by, reason = str(record.get("decided_by") or ""), str(record.get("reason") or "")
        end = describe_end("cancelled", record.get("outcome") or outcome_of(record), by, reason)
        yield text_content(": ".join(filter(None, (end.phrase, end.reason))))


def text_content(text: str) -> Content:
    """A piece of text in a tool call."""
    return {"type": "content", "content": {"type": "text", "text": text}}


def plan_entries(record: Mapping[str, Any]) -> list[Mapping[str, str]] | None:
    """The steps of the plan that a finished call has written; None if it wrote none."""
    steps = (record.get("metadata") or {}).get("todo")
    if not isinstance(steps, list) or record.get("tool_name") != "todo_write":
        return None
    found = [step for step in steps if isinstance(step, Mapping)]
    return [
        {"content": str(step.get("content")), "priority": _PRIORITY, "status": str(step.get("status", "pending"))}
        for step in found
    ]


def question_content(item: OpenQuestion, sandbox: str) -> list[Content]:
    """What a person sees before answering: the change, why it is asked, and what is known of an interrupted call.

    Args:
        sandbox: what a command may do where it runs.
    """
    call, lines = item.call, list[str]()
    if item.sub_agent:
        lines.append(f"Sub-agent {item.sub_agent!r} asks.")
    if item.question.kind == "recovery":
        lines += _recovery_lines(item)
    elif call.get("requires_input"):
        lines.append(question_and_options(call)[0])
        return [text_content("\n\n".join(lines))]
    else:
        lines += _approval_lines(item, sandbox)
    command = call["arguments"].get("command")
    if isinstance(command, str):
        lines.append(_fenced(escape(command, multiline=True), "sh"))
    found = list(diff_content(call))
    preview = call.get("preview") or {}
    if "full" in preview and len(found) != 1:
        lines.append(f"The change is longer than this. All of it: `{own_command()} calls {call['call_id']}`")
    if not found and not isinstance(command, str) and preview.get("text"):
        lines.append(_fenced(escape(str(preview["text"]), multiline=True)))
    if item.partial_output:
        lines.append(f"Output so far:\n{_fenced(_shortened(item.partial_output))}")
    return [*found, text_content("\n\n".join(filter(None, lines)))]


def _approval_lines(item: OpenQuestion, sandbox: str) -> Iterator[str]:
    call = item.call
    what = call.get("risk_reason") or ""
    yield f"{str(call.get('risk') or 'medium').upper()} risk{f': it {what}' if what else ''}"
    reason = str(item.question.reason or call.get("reason") or "")
    if not reason.startswith(f"{call['tool_name']} has "):  # That is about the risk, which was said.
        yield reason
    for word, letters in mixed_alphabets(call["arguments"]):
        yield f"⚠ {word} mixes alphabets: {letters}"
    if "command" in call["arguments"] and sandbox:
        yield sandbox


def _recovery_lines(item: OpenQuestion) -> Iterator[str]:
    reason = item.question.reason or item.call.get("reason") or "outcome_unknown"
    if reason == "never_started":
        yield "Interrupted: it was approved and never started. A retry is safe."
    else:
        yield f"Interrupted during attempt {item.question.attempt}: it may have run in part or in full."
    if item.finding:
        yield item.finding
    if item.processes:
        pids = ", ".join(map(str, item.processes))
        yield f"Still running: pid {pids}. A retry ends what still runs first."


def _title(record: Mapping[str, Any]) -> str:
    name, summary = str(record["tool_name"]), escape(" ".join(str(record.get("summary") or "").split()))
    if not summary:
        return name
    return summary if summary.startswith((name, "$ ", "PS> ")) or name in _KINDS else f"{name} {summary}"


def _locations(record: Mapping[str, Any], workspace: Path) -> Iterator[Mapping[str, Any]]:
    """The files of a call, as absolute paths, with the line that it begins at."""
    arguments = record["arguments"]
    _, hunks = parse_diff(str((record.get("preview") or {}).get("text", "")))
    start = hunks[0].new + _unchanged(hunks[0]) if hunks else arguments.get("offset")
    given = arguments.get("file_path") or arguments.get("path")
    paths = list(record.get("paths") or ()) or ([given] if isinstance(given, str) else [])
    if record["tool_name"] in ("bash", "powershell"):
        return  # What a command touches is a guess.
    for path in paths:
        place: dict[str, Any] = {"path": str(workspace / str(path))}
        if isinstance(start, int) and start > 0:
            place["line"] = start
        yield place


def _unchanged(hunk: Hunk) -> int:
    """How many lines of a piece precede its first change."""
    return next((number for number, line in enumerate(hunk.lines) if line[:1] != " "), 0)


def _shortened(text: str) -> str:
    if len(text) <= _MAX_OUTPUT:
        return text
    half = _MAX_OUTPUT // 2
    return f"{text[:half]}\n… {len(text) - _MAX_OUTPUT:,} characters …\n{text[-half:]}"


def _fenced(text: str, language: str = "") -> str:
    """A block of code, whatever the text contains."""
    fence = "`" * max(3, *(len(found) + 1 for found in _FENCE.findall(text)), 3)
    return f"{fence}{language}\n{plain_text(text).removesuffix(chr(10))}\n{fence}"
