"""The node that waits for a person. No effects: when it is resumed it starts again from its first line.

It holds the graph's only interrupt, behind `ask`, and applies only answers that fit what was shown.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from graph_agent.calls import FINAL, ToolCallInfo, allowed_answers, args_digest
from graph_agent.events import EventBus, WarningIssued
from graph_agent.graph.history import change_of, ended_event, moved
from graph_agent.graph.run_context import GraphPosition, RunContext, Step, scope_of
from graph_agent.ports import Clock, Scope, Toolbox

if TYPE_CHECKING:
    from graph_agent.graph.state import AgentState


__all__ = ["HumanApproval", "question_of"]

Ask = Callable[[dict[str, Any]], Any]
"""Puts the question and returns the envelope `{by, at, answers: {call_id: answer}}`; LangGraph's `interrupt`.

`by` is the token of the run that applies the answers, which the question names. A client of a server may send
anything: what is no answer to what was asked is passed over, and the question is put again.

The envelope is never a bare map of call ids: ids of 32 hex digits, or an empty map, are taken for a map of
interrupt ids and silently dropped. An answer is `{kind, attempt, digest, who, reason?, arguments?, outside?,
token?}`; a token stands for a call that has run already, and whose result the journal gives.
"""


@dataclass(frozen=True, slots=True)
class HumanApproval:
    """Asks every open question of the message as one list and writes down the answers."""

    toolbox: Toolbox
    clock: Clock
    bus: EventBus
    ask: Ask

    async def __call__(self, state: "AgentState", run: RunContext, here: GraphPosition) -> Step:
        """Outcomes: answered, stopped."""
        if run.stop:
            return Step("stopped", {})
        calls = state["calls"]
        envelope = _envelope(
            self.ask({"by": run.owner_token, **question_of(calls, run.started_calls)}), run, self.clock.now()
        )
        scope = scope_of(state, run, here)
        update: dict[str, Any] = {}
        for call_id, answer in envelope["answers"].items():
            call = calls.get(call_id)
            if call is None or not _fits(answer, call):
                continue
            known = _known(call, answer["kind"], run)
            after = await self._apply(known, answer, envelope, scope)
            if after is not known:
                update[call_id] = change_of(call, after)
                if after["status"] in FINAL:
                    self.bus.publish(ended_event(after))
        return Step("answered", {"calls": update} if update else {})

    async def _apply(
        self, call: ToolCallInfo, answer: Mapping[str, Any], envelope: Mapping[str, Any], scope: Scope
    ) -> ToolCallInfo:
        kind, reason = answer["kind"], answer.get("reason", "")
        decided = {"decision": kind, "decided_by": answer.get("decided_by", "")}
        # The token is the one of the run that applied the answer, not of the run that runs this line: the
        # framework stores the resume value before this node's result, and a later run replays it.
        granted = {
            **decided,
            "approved_at": envelope["at"],
            "owner_token": answer.get("owner_token", envelope["by"]),
        }
        if answer.get("outside_sandbox"):
            granted["outside_sandbox"] = True
        now = self.clock.now()
        match kind:
            case "approve" | "answer":
                words = {"answer": reason} if kind == "answer" else {}
                return moved(call, "pending", **granted, **words)
            case "edit":
                return await self._edit(call, answer, granted, scope)
            case "retry":
                return moved(call, "pending", **granted, result=None)
            case "reject" | "cancel":
                # Why it was asked about is no reason to refuse it: the model is told that as the user's words.
                kept = "" if kind == "reject" else call.get("reason", "")
                return moved(call, "cancelled", **decided, reason=reason or kept, ended_at=now)
            case "done":
                return moved(call, "success", **decided, result=reason or "Done.", ended_at=now)
        return call

    async def _edit(
        self, call: ToolCallInfo, answer: Mapping[str, Any], granted: Mapping[str, Any], scope: Scope
    ) -> ToolCallInfo:
        """The call with the edited arguments; unchanged, so the question stays open, where they may not run."""
        if "owner_token" in answer:
            # It has run with them already: there is nothing left to judge.
            return self._edited(call, answer["arguments"], granted)
        plan = await self.toolbox.prepare(
            call["tool_name"], answer["arguments"], scope, call["call_id"], call.get("attempt", 1)
        )
        if plan.verdict in ("unusable", "deny"):
            self.bus.publish(
                WarningIssued(f"the edited arguments of {call['call_id']} were not taken: {plan.reason}")
            )
            return call
        preview = {} if plan.preview is None else {"preview": plan.preview}
        shown = {**granted, **preview, "paths": list(plan.paths), "summary": plan.summary}
        return self._edited(call, plan.arguments, shown)

    @staticmethod
    def _edited(call: ToolCallInfo, arguments: Mapping[str, Any], fields: Mapping[str, Any]) -> ToolCallInfo:
        digest = args_digest(call["call_id"], call["tool_name"], call.get("attempt", 1), arguments)
        return moved(call, "pending", **fields, arguments=dict(arguments), args_digest=digest, edited=True)


def _known(call: ToolCallInfo, kind: str, run: RunContext) -> ToolCallInfo:
    """The call with what this run knows of it, under the number that a new attempt at it gets."""
    known: ToolCallInfo = {**call, "started": True} if call["call_id"] in run.started_calls else call
    if kind not in ("approve", "edit", "answer", "retry"):
        return known
    attempt = known.get("attempt", 1)
    number = run.next_attempt(call["call_id"], attempt + 1 if kind == "retry" else attempt)
    if number == attempt:
        return known
    digest = args_digest(call["call_id"], call["tool_name"], number, call["arguments"])
    return {**known, "attempt": number, "args_digest": digest}


def question_of(calls: Mapping[str, ToolCallInfo], begun: Collection[str] = ()) -> dict[str, Any]:
    """Every open question, in the model's order: `{approve: [...], recover: [...]}`, JSON values.

    A call that is known to have begun, on another branch or before a rewind, is not said never to have started.
    """

    def reason(call: ToolCallInfo) -> str:
        is_known = call["status"] == "interrupted" and call["call_id"] in begun
        return "outcome_unknown" if is_known else call.get("reason", "")

    def items(status: str) -> list[dict[str, Any]]:
        return [
            {
                "call_id": call["call_id"],
                "attempt": call.get("attempt", 1),
                "args_digest": call.get("args_digest", ""),
                "reason": reason(call),
            }
            for call in calls.values()
            if call["status"] == status
        ]

    return {"approve": items("awaiting_approval"), "recover": items("interrupted")}


def _envelope(given: Any, run: RunContext, now: str) -> dict[str, Any]:
    """The envelope with all that is read of it, holding only what can be an answer."""
    envelope = given if isinstance(given, Mapping) else {}
    answers = envelope.get("answers")
    usable = {
        call_id: {**answer, **{name: str(answer[name]) for name in ("reason", "decided_by") if name in answer}}
        for call_id, answer in (answers.items() if isinstance(answers, Mapping) else ())
        # With this run's own token a call would pass for one that has run, and would run unjudged.
        if isinstance(answer, Mapping) and answer.get("owner_token") != run.owner_token
    }
    return {"by": str(envelope.get("by", "")), "at": str(envelope.get("at") or now), "answers": usable}


def _fits(answer: Mapping[str, Any], call: ToolCallInfo) -> bool:
    """Whether the answer is of the right kind and was given to exactly this call with exactly these arguments."""
    kind, shown = answer.get("kind"), (answer.get("attempt"), answer.get("args_digest"))
    is_right_kind = kind in allowed_answers(call)
    if kind == "edit" and not isinstance(answer.get("arguments"), Mapping):
        return False
    return is_right_kind and shown == (call.get("attempt", 1), call.get("args_digest", ""))
