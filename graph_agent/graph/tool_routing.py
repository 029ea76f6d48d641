"""The node that decides what happens to the calls of a message. It has no effects."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from graph_agent.calls import FINAL, FULL_RESULTS, NEW_MESSAGE, SHORTENED, ToolCallInfo, args_digest
from graph_agent.events import EventBus, ToolCallCreated
from graph_agent.graph.auto_mode import with_verdict
from graph_agent.graph.history import change_of, ended_event, moved, newest_calls
from graph_agent.graph.limits import HELD_BACK, tripped
from graph_agent.graph.run_context import GraphPosition, RunContext, Step, scope_of
from graph_agent.ports import Clock, PreparedCall, Scope, Toolbox

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import AnyMessage

    from graph_agent.graph.state import AgentState


__all__ = ["TODO_READER", "ToolRouting", "shown_before", "shown_by"]

_SHOWN, _PATH = "shown", "path"


def shown_by(call: ToolCallInfo) -> dict[str, Any]:
    """What the message with a call's result notes of it; nothing where the model got a part of the output only."""
    metadata = call.get("metadata", {})
    shown = metadata.get(_SHOWN)
    is_whole = call["status"] == "success" and not metadata.get("truncated")
    return {_SHOWN: shown} if is_whole and isinstance(shown, dict) else {}


def shown_before(messages: "Sequence[AnyMessage]", call: ToolCallInfo) -> list[dict[str, Any]]:
    """What results before this call show of the paths it names, each once; nothing for a model that looks not back.

    Where a call says of what it reads another part than a result showed, that result is left out: with the task all
    this is stored, and a file may be read in hundreds of parts.
    """
    paths = call.get("paths", ())
    part = {key: value for key, value in call["arguments"].items() if key != _PATH}
    if call.get("kind") != "readonly" or not paths or messages[-1].response_metadata.get(FULL_RESULTS):
        return []
    noted = [
        message.additional_kwargs[_SHOWN]
        for message in messages
        if _SHOWN in message.additional_kwargs and not message.response_metadata.get(SHORTENED)
    ]
    kept: list[dict[str, Any]] = []
    for shown in noted:
        # A conversation may have been brought from elsewhere: then anything can stand there.
        is_of_it = isinstance(shown, dict) and shown.get(_PATH) in paths
        if is_of_it and shown not in kept and all(shown.get(key, value) == value for key, value in part.items()):
            kept.append(shown)
    return kept


TODO_READER = "todo_read"
"""Name of the tool that is given the plan."""

_Calls = dict[str, ToolCallInfo]


@dataclass(frozen=True, slots=True)
class ToolRouting:
    """Creates the records, sends interrupted ones to the fencing check, cancels after a stop, marks the batch."""

    toolbox: Toolbox
    clock: Clock
    bus: EventBus

    async def __call__(self, state: "AgentState", run: RunContext, here: GraphPosition) -> Step:
        """Outcomes: marked (tasks are given), asked, settled."""
        scope = scope_of(state, run, here)
        before: _Calls = dict(state.get("calls") or {})
        asked = newest_calls(state["messages"])
        is_new = bool(asked) and asked[0][0] not in before
        calls = await self._create(asked, state.get("turn") or {}, scope, run) if is_new else before
        if is_new:
            calls = self._hold_back(calls, state, run)
        calls = self._stop(calls, run) if run.stop else await self._advance(calls, run, None if is_new else scope)
        update: dict[str, Any] = {NEW_MESSAGE: {}} if is_new else {}
        update |= {
            key: change_of(before.get(key), call) for key, call in calls.items() if call is not before.get(key)
        }
        self._tell(before, calls)
        return _step(calls, {"calls": update} if update else {}, scope, state["messages"])

    async def _create(
        self,
        asked: list[tuple[str, str, dict[str, Any], str]],
        turn: Mapping[str, Any],
        scope: Scope,
        run: RunContext,
    ) -> _Calls:
        calls: _Calls = {}
        for call_id, tool_name, arguments, complaint in asked:
            scope = replace(scope, follows_change=any(map(_may_change, calls.values())))
            plan = await self._planned(call_id, tool_name, arguments, complaint, scope, run)
            if call_id in run.finished_in_journal and plan.verdict in ("deny", "unusable"):
                # It has run: a refusal now would tell the model that it has not. Its question answers itself.
                plan = replace(plan, verdict="ask")
            plan, verdict = with_verdict(plan, turn, scope)
            record = self._record(call_id, plan, run.next_attempt(call_id, 1))
            calls[call_id] = {**record, "started": call_id in run.started_calls}
            if verdict:
                calls[call_id]["verdict"] = dict(verdict)
            self.bus.publish(ToolCallCreated(dict(calls[call_id])))
        return calls

    async def _planned(
        self,
        call_id: str,
        tool_name: str,
        arguments: dict[str, Any],
        complaint: str,
        scope: Scope,
        run: RunContext,
    ) -> PreparedCall:
        if complaint:
            return PreparedCall(tool_name, {}, "unusable", complaint)
        if run.stop:
            # It is about to be cancelled: who stops the turn waits for no tool that thinks about a call.
            return PreparedCall(tool_name, dict(arguments), "ask", "the turn was stopped")
        return await self.toolbox.prepare(tool_name, arguments, scope, call_id, run.next_attempt(call_id, 1))

    def _hold_back(self, calls: _Calls, state: "AgentState", run: RunContext) -> _Calls:
        """Let none of a message's calls through where one of them has gone wrong too often in this turn."""
        why = tripped((state.get("turn") or {}).get("consecutive_failures") or {}, calls.values())
        if not why or not run.finished_in_journal.isdisjoint(calls):
            return calls
        now = self.clock.now()
        return {
            key: call
            if call["status"] in FINAL
            else moved(call, "cancelled", decision=HELD_BACK, reason=why, ended_at=now)
            for key, call in calls.items()
        }

    def _record(self, call_id: str, plan: PreparedCall, attempt: int) -> ToolCallInfo:
        call: ToolCallInfo = {
            "call_id": call_id,
            "tool_name": plan.tool_name,
            "arguments": plan.arguments,
            "status": "pending",
            "result": None,
            "error_msg": None,
            "attempt": attempt,
            "risk": plan.risk,
            "kind": plan.kind,
            "concurrency_safe": plan.concurrency_safe,
            "requires_input": plan.requires_input,
            "args_digest": args_digest(call_id, plan.tool_name, attempt, plan.arguments),
            "started": False,
            "rule": plan.rule,
            "reason": plan.reason,
            "summary": plan.summary,
        }
        if plan.resumable:
            call["resumable"] = True
        if plan.paths:
            call["paths"] = list(plan.paths)
        if plan.preview is not None:
            call["preview"] = plan.preview
        now = self.clock.now()
        match plan.verdict:
            case "unusable":
                return moved(call, "error", error_msg=plan.reason, ended_at=now)
            case "deny":
                return moved(call, "cancelled", decision="deny", decided_by="policy", ended_at=now)
            case "ask":
                return moved(call, "awaiting_approval", asked_at=now)
            case "allow":
                return cast("ToolCallInfo", {**call, "decision": "allow", "decided_by": "policy"})

    def _stop(self, calls: _Calls, run: RunContext) -> _Calls:
        """Cancel what is open. What is executing goes through the fencing check first."""
        now = self.clock.now()
        stopped: _Calls = {}
        for key, call in calls.items():
            stopped[key] = call
            if call["status"] in ("pending", "awaiting_approval", "interrupted"):
                begun = bool(call.get("started")) or key in run.started_calls
                reason = "stopped by user, may have partly run" if begun else "stopped by user"
                stopped[key] = moved(call, "cancelled", decision="stop", started=begun, reason=reason, ended_at=now)
        return stopped

    async def _advance(self, calls: _Calls, run: RunContext, judge_in: Scope | None) -> _Calls:
        """Settle what an earlier run left first, then ask, and only then mark the next batch.

        Records that were created in this very superstep have just been judged; others are judged again (judge_in).
        """
        advanced = {
            key: moved(call, "executing") if _is_left_behind(call, run) else call for key, call in calls.items()
        }
        if any(call["status"] in ("executing", "awaiting_approval", "interrupted") for call in advanced.values()):
            return advanced
        while batch := _next_batch(advanced.values()):
            judged = [await self._judge_again(call, judge_in, run) for call in batch] if judge_in else batch
            advanced |= {call["call_id"]: call for call in judged}
            allowed = [call for call in judged if call["status"] == "pending"]
            if allowed:
                return advanced | {
                    c["call_id"]: moved(c, "executing", owner_token=run.owner_token) for c in allowed
                }
        return advanced

    async def _judge_again(self, call: ToolCallInfo, scope: Scope, run: RunContext) -> ToolCallInfo:
        """Rules may have become stricter since the question was asked; they are never applied more loosely.

        What a person approved is not taken back because nobody can be asked now, which is what dontAsk says; and
        what has run is not refused, because its result is taken.
        """
        if call["call_id"] in run.finished_in_journal:
            return call
        if "approved_at" in call and scope.mode == "dontAsk":
            scope = replace(scope, mode="default")
        plan = await self.toolbox.prepare(
            call["tool_name"], call["arguments"], scope, call["call_id"], call.get("attempt", 1)
        )
        if plan.verdict != "deny":
            return call
        return moved(
            call,
            "cancelled",
            decision="deny",
            decided_by="policy",
            started=bool(call.get("started")) or call["call_id"] in run.started_calls,
            rule=plan.rule,
            reason=plan.reason,
            ended_at=self.clock.now(),
        )

    def _tell(self, before: _Calls, after: _Calls) -> None:
        for key, call in after.items():
            if call["status"] in FINAL and call is not before.get(key):
                self.bus.publish(ended_event(call))


def _may_change(call: ToolCallInfo) -> bool:
    return call["status"] not in FINAL and call.get("kind") != "readonly"


def _is_left_behind(call: ToolCallInfo, run: RunContext) -> bool:
    """Whether a person let the call through in a run that ended before it was marked.

    Its token stays the old one: the fencing check in tool_execution finds it and reads in the journal whether the
    call never started.
    """
    return call["status"] == "pending" and "approved_at" in call and call.get("owner_token") != run.owner_token


def _next_batch(calls: Iterable[ToolCallInfo]) -> list[ToolCallInfo]:
    """The first pending call, with the pending neighbours after it where all of them may run at once."""
    batch: list[ToolCallInfo] = []
    for call in calls:
        if call["status"] != "pending":
            continue
        if batch and not call.get("concurrency_safe"):
            break
        batch.append(call)
        if not call.get("concurrency_safe"):
            break
    return batch


def _step(calls: _Calls, update: dict[str, Any], scope: Scope, messages: "Sequence[AnyMessage]") -> Step:
    executing = [call for call in calls.values() if call["status"] == "executing"]
    if executing:
        is_last = all(call["status"] in FINAL for call in calls.values() if call is not executing[0])
        tasks = (
            _task(
                call,
                replace(scope, shown=shown_before(messages, call), calls_in_message=len(calls)),
                is_last=is_last,
            )
            for call in executing
        )
        return Step("marked", update, tuple(tasks))
    is_open = any(call["status"] in ("awaiting_approval", "interrupted") for call in calls.values())
    return Step("asked" if is_open else "settled", update)


def _task(call: ToolCallInfo, scope: Scope, *, is_last: bool) -> dict[str, Any]:
    return {
        "call": _task_view(call),
        "mode": scope.mode,
        "cwd": scope.cwd,
        "todo": list(scope.todo) if call["tool_name"] == TODO_READER else [],
        "shown": list(scope.shown),
        "calls_in_message": scope.calls_in_message,
        "is_last": is_last,
    }


def _task_view(call: ToolCallInfo) -> ToolCallInfo:
    """The record as a task needs it: of the preview only what the file looked like, for the task is stored too."""
    if "preview" not in call:
        return call
    return cast("ToolCallInfo", {**call, "preview": {"observed": call["preview"].get("observed")}})
