"""Checks an answer before it is recorded: whether its kind fits the call, edited arguments, and "always"."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from graph_agent.calls import ToolCallInfo, allowed_answers
from graph_agent.config.paths import own_command
from graph_agent.errors import AnswerRefused
from graph_agent.ports import AlwaysRules, Answer, Grant, GrantEffect, Scope, Toolbox
from graph_agent.session.turn_result import OpenQuestion

__all__ = ["attach_grant", "require_valid_answer", "review_edit"]

_GRANT_SCOPES = {"thread": "in this thread", "project": "in this project", "user": "everywhere"}
_EFFECTS: Mapping[GrantEffect, str] = {"allow": "always", "deny": "always denied"}


def require_valid_answer(call: Mapping[str, object], kind: str) -> None:
    """Reject an answer of a kind that the call does not wait for.

    Raises:
        AnswerRefused: the message names the kinds that fit.
    """
    fitting = allowed_answers(call)
    if kind in fitting:
        return
    call_id, choice = call["call_id"], ", ".join(fitting)
    if "answer" in fitting:
        raise AnswerRefused(
            f"Call {call_id!r} asks a question. Answer it: `{own_command()} approvals answer {call_id} TEXT`, "
            f"or leave it unanswered: `approvals reject {call_id}`."
        )
    if kind == "answer" and "approve" in fitting:
        raise AnswerRefused(
            f"Call {call_id!r} asks for approval, not for a text. Answer it: `{own_command()} approvals approve "
            f"{call_id}`, or `{own_command()} approvals reject {call_id} --reason TEXT`."
        )
    if kind == "answer":
        raise AnswerRefused(f"Call {call_id!r} asks no question. Choose one of {choice}.")
    raise AnswerRefused(f"{kind!r} does not answer call {call_id!r}. Choose one of {choice}.")


async def review_edit(
    item: OpenQuestion, arguments: Mapping[str, Any], toolbox: Toolbox, scope: Scope
) -> OpenQuestion:
    """The question with these arguments: validated, evaluated by policy, with the preview of their effect.

    Raises:
        AnswerRefused: the arguments are invalid or denied.
    """
    call_id, attempt = item.call["call_id"], item.call.get("attempt", 1)
    plan = await toolbox.prepare(item.call["tool_name"], arguments, scope, call_id, attempt)
    if plan.verdict in ("unusable", "deny"):
        raise AnswerRefused(f"The edited arguments were not accepted: {plan.reason}")
    shown = {
        "arguments": plan.arguments,
        "summary": plan.summary,
        "risk": plan.risk,
        "risk_reason": plan.risk_reason,
        "preview": plan.preview,
    }
    call = cast("ToolCallInfo", {**item.call, **shown})
    return replace(item, call=call, question=replace(item.question, reason=plan.reason))


def attach_grant(answer: Answer, always: AlwaysRules, call_id: str, scope: Scope, workspace: str) -> Answer:
    """The answer with the rules that it stores for later calls; its reason names them for readers of the record."""
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
        folders=always.folders,
        prefixes=always.prefixes,
        effect=always.effect,
    )
    stored = f"{_EFFECTS[always.effect]} {_GRANT_SCOPES[always.scope]}: {', '.join(always.rules)}"
    return replace(answer, grant=grant, reason=f"{stored}. {answer.reason}" if answer.reason else stored)
