"""A question seen with other arguments, and the answer "always". Lets the toolbox judge, records nothing."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from graph_agent.calls import ToolCallInfo, allowed_answers
from graph_agent.errors import AnswerRefused
from graph_agent.ports import AlwaysAllow, Answer, Grant, Scope, Toolbox
from graph_agent.session.turn_result import OpenQuestion

__all__ = ["WHERE", "attach_grant", "require_valid_answer", "reviewed"]

WHERE = {"thread": "in this thread", "project": "in this project", "user": "everywhere"}
"""The scope of a grant, in words."""


def require_valid_answer(call: Mapping[str, object], kind: str) -> None:
    """Refuse an answer of a kind that the call does not wait for.

    Raises:
        AnswerRefused: it says which kinds would do.
    """
    fitting = allowed_answers(call)
    if kind in fitting:
        return
    call_id = call["call_id"]
    if "answer" in fitting:
        raise AnswerRefused(
            f"call {call_id!r} asks a question, which needs words: `graph-agent approvals answer {call_id} TEXT`, "
            f"or `approvals reject {call_id}` to leave it unanswered"
        )
    if kind == "answer":
        raise AnswerRefused(f"call {call_id!r} asks no question; choose one of {', '.join(fitting)}")
    raise AnswerRefused(f"{kind!r} does not answer call {call_id!r}; choose one of {', '.join(fitting)}")


async def reviewed(
    item: OpenQuestion, arguments: Mapping[str, Any], toolbox: Toolbox, scope: Scope
) -> OpenQuestion:
    """The question as it reads with these arguments: judged, and with the change they would make.

    Raises:
        AnswerRefused: the call may not run with them.
    """
    plan = await toolbox.prepare(item.call["tool_name"], arguments, scope)
    if plan.verdict in ("unusable", "deny"):
        raise AnswerRefused(f"the edited arguments were not taken: {plan.reason}")
    shown = {"arguments": plan.arguments, "summary": plan.summary, "risk": plan.risk, "preview": plan.preview}
    call = cast("ToolCallInfo", {**item.call, **shown})
    return replace(item, call=call, question=replace(item.question, reason=plan.reason))


def attach_grant(answer: Answer, always: AlwaysAllow, call_id: str, scope: Scope, workspace: str) -> Answer:
    """The answer with what it allows for later calls; its reason tells others, who see no grant."""
    grant = Grant(
        scope=always.scope,
        rules=always.rules,
        mode=scope.mode,
        thread_id=scope.thread_id,
        workspace=workspace,
        call_id=call_id,
        by=answer.by,
        at=answer.at,
        folder=always.folder,
    )
    told = f"always {WHERE[always.scope]}: {', '.join(always.rules)}"
    return replace(answer, grant=grant, reason=told)
