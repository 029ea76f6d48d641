"""The node that waits for a person. No effects: when it is resumed it starts again from its first line.

It holds the graph's only interrupt, behind `ask`, and applies only answers that fit what was shown.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never, cast

from graph_agent.calls import FINAL, ToolCallInfo, allowed_answers, args_digest, ended_event, mode_after_plan
from graph_agent.events import AnswerKind, EventBus, WarningIssued
from graph_agent.graph.clients import describe_questions, read_answers, unusable_reason
from graph_agent.graph.history import change_of, moved
from graph_agent.graph.run_context import GraphPosition, RunContext, Step, scope_of
from graph_agent.ports import Answer, Clock, Decisions, Question, Scope, Toolbox
from graph_agent.ports.storage import QuestionKind
from graph_agent.ports.toolbox import Hooks

if TYPE_CHECKING:
    from graph_agent.graph.state import AgentState


__all__ = ["HumanApproval", "answer_to_json", "question_of", "questions_in"]

Ask = Callable[[dict[str, Any]], Any]
"""Puts the question and returns the envelope `{by, at, answers: {call_id: answer}}`; LangGraph's `interrupt`.

`by` is the token of the run that applies the answers, which the question names. A client of a server may send
anything: what does not answer the question is ignored, and the question is put again.

The envelope is never a bare map of call ids: ids of 32 hex digits, or an empty map, are taken for a map of
interrupt ids and silently dropped. An answer is `{kind, attempt, args_digest, decided_by, reason?, arguments?,
outside_sandbox?, owner_token?}`; a token means that the call has run already, and its result is in the journal.
"""


@dataclass(frozen=True, slots=True)
class HumanApproval:
    """Asks every open question of the message as one list and writes down the answers."""

    toolbox: Toolbox
    clock: Clock
    bus: EventBus
    ask: Ask
    hooks: Hooks | None = None
    decisions: Decisions | None = None
    """Where a run without a session finds answers that were given elsewhere, and records those of its client."""

    async def __call__(self, state: "AgentState", run: RunContext, here: GraphPosition) -> Step:
        """Outcomes: answered, stopped."""
        if run.stop:
            return Step("stopped", {})
        calls = state["calls"]
        envelope = await self._ask(calls, run, here.thread_id)
        given = envelope.get("answers")
        answers: Mapping[str, Any] = given if isinstance(given, Mapping) else {}
        scope = scope_of(state, run, here)
        update: dict[str, Any] = {}
        chosen = ""
        """The mode that replaces plan mode, where a plan was accepted."""
        for call_id, answer in answers.items():
            call = calls.get(call_id)
            if call is None or not _fits(answer, call, run):
                continue
            known = _with_run_facts(call, answer["kind"], run)
            granted = {
                "approved_at": str(envelope.get("at") or self.clock.now()),
                # The token is the one of the run that applied the answer, not of the run that runs this line: the
                # framework stores the resume value before this node's result, and a later run replays it.
                "owner_token": answer.get("owner_token", str(envelope.get("by", ""))),
            }
            after = await self._apply(known, answer, granted, scope)
            if after is not known:
                update[call_id] = change_of(call, after)
                mode = mode_after_plan(call, str(answer.get("reason", ""))) if answer["kind"] == "answer" else None
                chosen = mode if mode and scope.mode == "plan" else chosen
                if after["status"] in FINAL:
                    self.bus.publish(ended_event(after))
                if self.hooks is not None and call["status"] == "awaiting_approval":
                    await self.hooks.approval_answered(after, answer, scope)
        if self.decisions is not None and not run.has_session and (unused := answers.keys() - update.keys()):
            # An answer that could not be used does not count any more, or nobody could give another one.
            await self.decisions.supersede(here.thread_id, sorted(unused), self.clock.now())
        changed: dict[str, Any] = {"calls": update} if update else {}
        return Step("answered", {**changed, "mode": chosen} if chosen else changed)

    async def _ask(self, calls: Mapping[str, ToolCallInfo], run: RunContext, thread_id: str) -> Mapping[str, Any]:
        question = {"by": run.owner_token, **question_of(calls, run.started_calls)}
        if run.has_session:
            envelope = self.ask(question)
            return envelope if isinstance(envelope, Mapping) else {}
        asked = questions_in(question)
        found = await self.decisions.find_answers(thread_id, asked) if self.decisions is not None else {}
        if known := [one for one in asked if one.call_id in found]:
            answers = {one.call_id: answer_to_json(one, found[one.call_id]) for one in known}
            return {"by": run.owner_token, "answers": answers}
        shown = describe_questions(question, calls)
        answer = self.ask(shown)
        # An error raised here would come back at each later answer, because LangGraph keeps what was sent before.
        while problem := unusable_reason(answer, question, calls):
            answer = self.ask({**shown, "error": problem})
        envelope = read_answers(answer, question, calls)
        return envelope if self.decisions is None else await self._record(envelope, asked, calls, run, thread_id)

    async def _record(
        self,
        envelope: Mapping[str, Any],
        asked: Sequence[Question],
        calls: Mapping[str, ToolCallInfo],
        run: RunContext,
        thread_id: str,
    ) -> Mapping[str, Any]:
        """Record the client's answers, as the first one counts wherever it was given; returns those that count.

        Recording an answer again, when the node is resumed, changes nothing.
        """
        answers = dict(envelope["answers"])
        for question in asked:
            answer = answers.get(question.call_id)
            if self.decisions is None or answer is None or not _fits(answer, calls[question.call_id], run):
                continue
            arguments = dict(answer["arguments"]) if answer["kind"] == "edit" else None
            by, reason = str(answer.get("decided_by", "")), str(answer.get("reason", ""))
            given = Answer(answer["kind"], by, self.clock.now(), arguments, reason)
            standing = await self.decisions.insert(thread_id, question, given)
            if standing != given and (standing.kind, standing.arguments) != (given.kind, given.arguments):
                earlier = f"{standing.by} had already answered it ({standing.kind})"
                text = f"Your answer to call {question.call_id} was not used: {earlier}."
                self.bus.publish(WarningIssued(text))
            answers[question.call_id] = {**answer, **answer_to_json(question, standing)}
        return {**envelope, "answers": answers}

    async def _apply(
        self, call: ToolCallInfo, answer: Mapping[str, Any], granted: dict[str, Any], scope: Scope
    ) -> ToolCallInfo:
        kind, reason = cast("AnswerKind", answer["kind"]), str(answer.get("reason", ""))
        decided = {"decision": kind, "decided_by": str(answer.get("decided_by", ""))}
        outside = _OUTSIDE_SANDBOX if answer.get("outside_sandbox") else {}
        granted = {**decided, **granted, **outside}
        now = self.clock.now()
        match kind:
            case "approve" | "answer" | "retry":
                words = {"answer": reason} if kind == "answer" else {"result": None} if kind == "retry" else {}
                return moved(call, "pending", **granted, **words)
            case "edit":
                return await self._edit(call, answer, granted, scope)
            case "reject" | "cancel":
                # Why it was asked about is no reason to refuse it: the model gets that as the user's words.
                kept = "" if kind == "reject" else call.get("reason", "")
                return moved(call, "cancelled", **decided, reason=reason or kept, ended_at=now)
            case "done":
                return moved(call, "success", **decided, result=reason or "Done.", ended_at=now)
            case _ as never:
                assert_never(never)

    async def _edit(
        self, call: ToolCallInfo, answer: Mapping[str, Any], granted: dict[str, Any], scope: Scope
    ) -> ToolCallInfo:
        """The call with the edited arguments; unchanged, so the question stays open, where they may not run."""
        call_id, tool_name, attempt = call["call_id"], call["tool_name"], call.get("attempt", 1)
        arguments = dict(answer["arguments"])
        if "owner_token" not in answer:  # Otherwise it has run with them already.
            plan = await self.toolbox.prepare(tool_name, arguments, scope, call_id, attempt)
            if plan.verdict in ("unusable", "deny"):
                self.bus.publish(
                    WarningIssued(f"The edited arguments of {call_id} were not accepted: {plan.reason}")
                )
                return call
            preview = {} if plan.preview is None else {"preview": plan.preview}
            shown = {"summary": plan.summary, "risk": plan.risk, "risk_reason": plan.risk_reason}
            granted = {**shown, **granted, **preview, "paths": list(plan.paths)}
            arguments = plan.arguments
        digest = args_digest(call_id, tool_name, attempt, arguments)
        return moved(call, "pending", **granted, arguments=arguments, args_digest=digest, edited=True)


_OUTSIDE_SANDBOX: Mapping[str, Any] = {
    "outside_sandbox": True,
    "risk": "high",
    "risk_reason": "runs outside the sandbox",
}


def _fits(answer: Any, call: ToolCallInfo, run: RunContext) -> bool:
    """Whether the answer is of the right kind and was given to exactly this call with exactly these arguments."""
    # With this run's own token a call would pass for one that has run, and would run without approval.
    if not isinstance(answer, Mapping) or answer.get("owner_token") == run.owner_token:
        return False
    if answer.get("kind") == "edit" and not isinstance(answer.get("arguments"), Mapping):
        return False
    shown = (answer.get("attempt"), answer.get("args_digest"))
    return answer.get("kind") in allowed_answers(call) and shown == (
        call.get("attempt", 1),
        call.get("args_digest", ""),
    )


def _with_run_facts(call: ToolCallInfo, kind: str, run: RunContext) -> ToolCallInfo:
    """The call with what this run knows of it, under the number that a new attempt at it gets."""
    known: ToolCallInfo = {**call, "started": True} if call["call_id"] in run.started_calls else call
    if kind not in ("approve", "edit", "answer", "retry"):
        return known
    attempt = known.get("attempt", 1)
    number = max(attempt + (kind == "retry"), run.reverted_attempts.get(call["call_id"], 0) + 1)
    if number == attempt:
        return known
    digest = args_digest(call["call_id"], call["tool_name"], number, call["arguments"])
    return {**known, "attempt": number, "args_digest": digest}


def question_of(calls: Mapping[str, ToolCallInfo], started: Collection[str] = ()) -> dict[str, Any]:
    """Every open question, in the model's order: `{approve: [...], recover: [...]}`, JSON values.

    The reason of an interrupted call among the `started` ones, on another branch or before a rewind, is always
    outcome_unknown.
    """
    question: dict[str, Any] = {"approve": [], "recover": []}
    for call_id, call in calls.items():
        status, reason = call["status"], call.get("reason", "")
        if status not in ("awaiting_approval", "interrupted"):
            continue
        item = {
            "call_id": call["call_id"],
            "attempt": call.get("attempt", 1),
            "args_digest": call.get("args_digest", ""),
            "reason": "outcome_unknown" if status == "interrupted" and call_id in started else reason,
        }
        question["recover" if status == "interrupted" else "approve"].append(item)
    return question


_KINDS: tuple[tuple[QuestionKind, str], ...] = (("approval", "approve"), ("recovery", "recover"))


def questions_in(interrupt: Mapping[str, Any]) -> list[Question]:
    """The questions in the value that human_approval waits with: approvals, then recoveries."""
    return [
        Question(kind, asked["call_id"], asked["attempt"], asked["args_digest"], asked["reason"])
        for kind, key in _KINDS
        for asked in interrupt[key]
    ]


def answer_to_json(question: Question, answer: Answer) -> dict[str, Any]:
    """The answer as the envelope has it."""
    return {
        "kind": answer.kind,
        "attempt": question.attempt,
        "args_digest": question.args_digest,
        "decided_by": answer.by,
        "reason": answer.reason,
        **({"outside_sandbox": True} if answer.outside_sandbox else {}),
        **({} if answer.arguments is None else {"arguments": dict(answer.arguments)}),
    }
