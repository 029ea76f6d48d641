"""What can be found out about a call that was broken off, to help whoever decides. Finds, never decides."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graph_agent.calls import ToolCallInfo
from graph_agent.ports import Finding, JournalRow, Question, Scope
from graph_agent.session.api import OpenQuestion
from graph_agent.session.parts import SessionParts, Thread

__all__ = ["gather"]

_OUTPUT_BYTES = 4_000
"""How much of a broken-off command's output is shown: its end."""


async def gather(
    question: Question, call: ToolCallInfo, thread: Thread, parts: SessionParts, values: Mapping[str, Any]
) -> OpenQuestion:
    """The question with its record and, for a call that may have begun, its partial output and a finding."""
    if question.kind == "approval" or not call.get("begun"):
        return OpenQuestion(question, call)
    rows = await parts.journal.rows(thread.thread_id, call["call_id"])
    begun = [row for row in rows if row.may_have_begun]
    finding = await _finding(
        call, begun[-1] if begun else None, parts, Scope(thread.thread_id, thread.mode, values.get("cwd", ""))
    )
    spool = parts.blobs.spool(thread.thread_id, call["call_id"], begun[-1].attempt if begun else question.attempt)
    return OpenQuestion(question, call, _tail(spool), finding.detail, finding.verdict)


async def _finding(call: ToolCallInfo, row: JournalRow | None, parts: SessionParts, scope: Scope) -> Finding:
    return await parts.toolbox.reconcile(call, row.intent if row else None, scope)


def _tail(path: Path) -> str:
    if not path.exists():
        return ""
    with path.open("rb") as spool:
        size = spool.seek(0, 2)
        spool.seek(max(0, size - _OUTPUT_BYTES))
        return spool.read().decode("utf-8", "replace")
