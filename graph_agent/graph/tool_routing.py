"""The node that decides what happens to the calls of a message. Only the user's hooks may have effects here."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Any, assert_never, cast

from graph_agent.calls import (
    FINAL,
    FULL_RESULTS,
    NEW_MESSAGE,
    SHORTENED,
    STOPPED_BY_USER,
    ToolCallInfo,
    args_digest,
    ended_event,
)
from graph_agent.events import EventBus, ToolCallCreated
from graph_agent.graph.auto_mode import with_verdict
from graph_agent.graph.history import change_of, moved, newest_calls
from graph_agent.graph.limits import LIMIT_DECISION, too_many_failures
from graph_agent.graph.run_context import GraphPosition, RunContext, Step, scope_of
from graph_agent.ports import Clock, PreparedCall, Scope, Toolbox
from graph_agent.ports.toolbox import Hooks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import AnyMessage

    from graph_agent.graph.state import AgentState


__all__ = ["TODO_READER", "ToolRouting", "shown_before", "shown_by"]

_SHOWN, _PATH = "shown", "path"


def shown_by(call: ToolCallInfo) -> dict[str, Any]:
    """What the result of a call shows of a file; nothing if the model received only part of the output."""
    metadata = call.get("metadata", {})
    shown = metadata.get(_SHOWN)
    is_whole = call["status"] == "success" and not metadata.get("truncated")
    return {_SHOWN: shown} if is_whole and isinstance(shown, dict) else {}


def shown_before(messages: "Sequence[AnyMessage]", call: ToolCallInfo) -> list[dict[str, Any]]:
    """What earlier results show of the paths that a call names, each once.

    A result that showed another part of a file than the call reads is left out: all this is stored with the task,
    and a file may be read in hundreds of parts. For a call that writes, shortened results count too.
    """
    paths, is_read = call.get("paths", ()), call.get("kind") == "readonly"
    if not (is_read or call.get("kind") == "write") or not paths:
        return []
    if is_read and messages[-1].response_metadata.get(FULL_RESULTS):
        return []
    part = {key: value for key, value in call["arguments"].items() if key != _PATH}
    kept: list[dict[str, Any]] = []
    for message in messages:
        shown = message.additional_kwargs.get(_SHOWN)
        # An imported conversation can hold anything there.
        if not isinstance(shown, dict) or shown.get(_PATH) not in paths:
            continue
        if is_read and message.response_metadata.get(SHORTENED):
            continue
        if shown not in kept and all(shown.get(key, value) == value for key, value in part.items()):
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
    hooks: Hooks | None = None

    async def __call__(self, state: "AgentState", run: RunContext, here: GraphPosition) -> Step:
        """Outcomes: marked (tasks are given), asked, settled."""
        scope = scope_of(state, run, here)
        before: _Calls = dict(state.get("calls") or {})
        requested = newest_calls(state["messages"])
        is_new = bool(requested) and requested[0][0] not in before
        calls = await self._create(requested, state.get("turn") or {}, scope, run) if is_new else before
        calls = self._stop(calls, run) if run.stop else await self._advance(calls, run, None if is_new else scope)
        changes: dict[str, Any] = {NEW_MESSAGE: {}} if is_new else {}
        for key, call in calls.items():
            if call is not before.get(key):
                changes[key] = change_of(before.get(key), call)
                if call["status"] in FINAL:
                    self.bus.publish(ended_event(call))
        update = {"calls": changes} if changes else {}
        if tasks := _tasks(calls, scope, state["messages"]):
            return Step("marked", update, tasks)
        is_open = any(call["status"] in ("awaiting_approval", "interrupted") for call in calls.values())
        return Step("asked" if is_open else "settled", update)

    async def _create(
        self,
        requested: list[tuple[str, str, dict[str, Any], str]],
        turn: Mapping[str, Any],
        scope: Scope,
        run: RunContext,
    ) -> _Calls:
        """The records of a new message."""
        calls: _Calls = {}
        for call_id, tool_name, arguments, complaint in requested:
            attempt, change = run.reverted_attempts.get(call_id, 0) + 1, dict[str, Any]()
            if complaint:
                plan = PreparedCall(tool_name, {}, "unusable", complaint)
            elif run.stop:
                # It is about to be cancelled: a stop does not wait for a tool that works on its preview.
                plan = PreparedCall(tool_name, dict(arguments), "ask", "the turn was stopped")
            else:
                plan = await self.toolbox.prepare(tool_name, arguments, scope, call_id, attempt)
                plan, change = await self._apply_hooks(plan, scope, call_id, attempt)
            plan, verdict = _for_run(call_id, plan, scope, turn, run)
            record = {**self._record(call_id, plan, attempt), **change, "started": call_id in run.started_calls}
            calls[call_id] = cast("ToolCallInfo", {**record, "verdict": dict(verdict)} if verdict else record)
            is_change = record.get("kind") != "readonly" and record["status"] not in FINAL
            scope = replace(scope, follows_change=scope.follows_change or is_change)
            self.bus.publish(ToolCallCreated(dict(calls[call_id])))
        # Where one of them has gone wrong too often in this turn, none of them runs.
        reason = too_many_failures(turn.get("consecutive_failures") or {}, calls.values())
        if reason and run.finished_in_journal.isdisjoint(calls):
            now = self.clock.now()
            for key, call in calls.items():
                if call["status"] not in FINAL:
                    decided = {"decision": LIMIT_DECISION, "decided_by": LIMIT_DECISION}
                    calls[key] = moved(call, "cancelled", **decided, reason=reason, ended_at=now)
        return calls

    async def _apply_hooks(
        self, plan: PreparedCall, scope: Scope, call_id: str, attempt: int
    ) -> tuple[PreparedCall, dict[str, Any]]:
        """The call with the arguments that hooks give it, evaluated like any other, and the record fields for that.

        After a kill before the record is stored, hooks run again, and the call is evaluated again.
        """
        if self.hooks is None or plan.verdict == "unusable":
            return plan, {}
        hooked = await self.hooks.call_requested(plan, scope, call_id, attempt)
        if hooked.objection:
            return replace(plan, verdict="unusable", reason=hooked.objection), {}
        if not hooked.changed_by:
            return plan, {}
        changed = await self.toolbox.prepare(plan.tool_name, hooked.arguments, scope, call_id, attempt)
        reason = f"The arguments were changed by {hooked.changed_by}. {changed.reason}".rstrip()
        named = {"changed_by": hooked.changed_by, "requested_arguments": plan.arguments}
        return replace(changed, reason=reason), named

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
        if plan.risk_reason:
            call["risk_reason"] = plan.risk_reason
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
            case _ as never:
                assert_never(never)

    def _stop(self, calls: _Calls, run: RunContext) -> _Calls:
        """Cancel what is open. What is executing goes through the fencing check first."""
        now = self.clock.now()
        stopped = dict(calls)
        for key, call in calls.items():
            if call["status"] in ("pending", "awaiting_approval", "interrupted"):
                started = bool(call.get("started")) or key in run.started_calls
                reason = f"{STOPPED_BY_USER}, may have partly run" if started else STOPPED_BY_USER
                decided = {"decision": "stop", "decided_by": "user", "started": started}
                stopped[key] = moved(call, "cancelled", **decided, reason=reason, ended_at=now)
        return stopped

    async def _advance(self, calls: _Calls, run: RunContext, scope: Scope | None) -> _Calls:
        """Resolve what an earlier run left first, then ask, and only then mark the next batch.

        A scope is given for records that were not created in this very superstep: policy evaluates them again.
        """
        advanced = dict(calls)
        for key, call in calls.items():
            if "approved_at" not in call or not _was_approved_in_earlier_run(call, run):
                continue
            if call["call_id"] in run.started_calls or not _follows_sub_agent(call, calls.values(), run):
                advanced[key] = moved(call, "executing")
        if any(call["status"] in ("executing", "awaiting_approval", "interrupted") for call in advanced.values()):
            return advanced
        while batch := _next_batch(advanced.values()):
            checked = [await self._evaluate_again(call, scope, run) if scope else call for call in batch]
            is_asked = any(call["status"] == "awaiting_approval" for call in checked)
            for call in checked:
                is_next = call["status"] == "pending" and not is_asked
                advanced[call["call_id"]] = (
                    moved(call, "executing", owner_token=run.owner_token) if is_next else call
                )
            if is_asked or any(advanced[call["call_id"]]["status"] == "executing" for call in batch):
                break
        return advanced

    async def _evaluate_again(self, call: ToolCallInfo, scope: Scope, run: RunContext) -> ToolCallInfo:
        """Rules may have become stricter since policy decided; they are never applied more loosely.

        What a person approved is not denied because nobody can be asked now, which is what dontAsk says; and what
        has run is not refused, because its result is taken.
        """
        if call["call_id"] in run.finished_in_journal:
            return call
        if "approved_at" in call and scope.mode == "dontAsk":
            scope = replace(scope, mode="default")
        plan = await self.toolbox.prepare(
            call["tool_name"], call["arguments"], scope, call["call_id"], call.get("attempt", 1)
        )
        is_approved = "approved_at" in call or (call.get("verdict") or {}).get("allow") is True
        if plan.verdict == "ask" and not is_approved and not plan.requires_input:
            # Policy allowed it when it was created, in another mode, in a sandbox, or under other rules.
            now = self.clock.now()
            why = {"rule": plan.rule, "reason": plan.reason, "risk": plan.risk, "risk_reason": plan.risk_reason}
            shown = {} if plan.preview is None else {"preview": plan.preview}
            return moved(call, "awaiting_approval", **why, **shown, decision="", decided_by="", asked_at=now)
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


def _for_run(
    call_id: str, plan: PreparedCall, scope: Scope, turn: Mapping[str, Any], run: RunContext
) -> tuple[PreparedCall, Mapping[str, Any]]:
    """The plan as it counts in this run, and the verdict of mode auto, if there is one."""
    if call_id in run.finished_in_journal and plan.verdict in ("deny", "unusable"):
        # It has run: a refusal now would tell the model that it has not. Its question answers itself.
        plan = replace(plan, verdict="ask")
    # A sub-agent that has begun came with the file: its own calls are asked about instead.
    if call_id in run.imported_calls and not (plan.resumable and call_id in run.started_calls):
        reason = "The file that this thread was imported from requests it."
        if plan.verdict == "allow" and scope.mode == "dontAsk":
            reason = f"{reason} This mode never asks."
            plan = replace(plan, verdict="deny", rule="dontAsk: imported call", reason=reason)
        elif plan.verdict == "allow":
            plan = replace(plan, verdict="ask", rule="imported call", reason=reason)
        return plan, {}
    return with_verdict(plan, turn) if scope.mode == "auto" else (plan, {})


def _was_approved_in_earlier_run(call: ToolCallInfo, run: RunContext) -> bool:
    """Whether a person let the call through in a run that ended before it was marked.

    Its token stays the old one: the fencing check in tool_execution finds it and reads in the journal whether the
    call never started.
    """
    return call["status"] == "pending" and call.get("owner_token") != run.owner_token


def _follows_sub_agent(call: ToolCallInfo, calls: Iterable[ToolCallInfo], run: RunContext) -> bool:
    """Whether it comes after a sub-agent that has not ended, or that ended in this run.

    Calls run in order, so no earlier run can have reached it. That the sub-agent had to ask, which ends a run, is
    no reason to ask about it once more.
    """
    for earlier in takewhile(lambda one: one is not call, calls):
        if earlier.get("resumable") and (
            earlier["status"] not in FINAL or earlier.get("owner_token") == run.owner_token
        ):
            return True
    return False


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


def _tasks(calls: _Calls, scope: Scope, messages: "Sequence[AnyMessage]") -> tuple[Mapping[str, Any], ...]:
    """A `CallTask` for each call that is marked executing."""
    tasks = []
    for call in calls.values():
        if call["status"] != "executing":
            continue
        stored: dict[str, Any] = {**call}
        if "preview" in call:
            # The task is stored too: of the preview it needs only the state of the file that was shown.
            stored["preview"] = {"observed": call["preview"].get("observed")}
        tasks.append(
            {
                "call": stored,
                "mode": scope.mode,
                "cwd": scope.cwd,
                "todo": list(scope.todo) if call["tool_name"] == TODO_READER else [],
                "shown": shown_before(messages, call),
                "calls_in_message": len(calls),
                "is_last": all(other is call or other["status"] in FINAL for other in calls.values()),
            }
        )
    return tuple(tasks)
