"""What can be found out about a call that was broken off, to help whoever decides. Finds, never decides.

Loads no graph and no model: the commands that answer from outside look through the same eyes.
"""

from collections.abc import Sequence

from graph_agent.calls import ToolCallInfo
from graph_agent.ports import Blobs, JournalRow, Question, Scope, Toolbox
from graph_agent.session.api import OpenQuestion
from graph_agent.session.orphans import living, traces_of

__all__ = ["gather"]


async def gather(
    question: Question,
    call: ToolCallInfo,
    rows: Sequence[JournalRow],
    toolbox: Toolbox,
    blobs: Blobs,
    scope: Scope,
) -> OpenQuestion:
    """The question with its record and, for a call that may have begun, what it wrote, did, and left running."""
    begun = [row for row in rows if row.may_have_begun]
    if question.kind == "approval" or not begun:
        return OpenQuestion(question, call)
    finding = await toolbox.reconcile(call, begun[-1].intent, scope)
    return OpenQuestion(
        question,
        call,
        partial_output=await toolbox.partial_output(call, begun[-1].attempt, scope),
        finding=finding.detail,
        finding_verdict=finding.verdict,
        processes=living(traces_of(rows, scope.thread_id, blobs)),
    )
