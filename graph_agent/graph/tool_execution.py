"""The node that runs one call: the only place in the graph that has effects.

The order makes a kill at any instant safe: fencing check, barrier, claim, run, finish, update. Each step before
the run makes sure that a later run will know about it; each step after it makes the outcome known before anyone
acts on it. The user's hooks run before the claim and after the finish: no kill within one leaves an outcome
unknown.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from graph_agent.calls import FINAL, ToolCallInfo
from graph_agent.errors import Paused, StaleOwner
from graph_agent.events import EventBus, ToolCallStarted
from graph_agent.graph.history import PAUSED, change_of, ended_event, moved
from graph_agent.graph.run_context import GraphPosition, RunContext, Step
from graph_agent.graph.state import CallTask
from graph_agent.ports import Barrier, Clock, Journal, JournalRow, Outcome, Scope, Toolbox
from graph_agent.ports.toolbox import NO_HOOKS, Hooks

__all__ = ["ToolExecution"]

_TOLD_TO_THE_STATE = ("cwd", "todo", "loaded_tools")
"""Channels that a tool writes by way of its metadata."""


@dataclass(frozen=True, slots=True)
class ToolExecution:
    """Runs a call that routing marked, at most once per attempt, whatever happened before."""

    toolbox: Toolbox
    journal: Journal
    barrier: Barrier
    clock: Clock
    bus: EventBus
    hooks: Hooks = NO_HOOKS

    async def __call__(self, task: CallTask, run: RunContext, here: GraphPosition) -> Step:
        """Outcomes: ended, settled.

        Raises:
            StaleOwner: another run took the call over while it ran; this run must write nothing more.
        """
        call = task["call"]
        after = await self._settle(task, run, here)
        self.bus.publish(ended_event(after))
        update: dict[str, Any] = {"calls": {call["call_id"]: change_of(call, after)}}
        told = after.get("metadata", {})
        update |= {channel: told[channel] for channel in _TOLD_TO_THE_STATE if told.get(channel) is not None}
        # One of a batch never knows how the others ended: then routing sees to what is left.
        is_settled = task.get("is_last", False) and after["status"] in FINAL
        return Step("settled" if is_settled else "ended", update)

    async def _settle(self, task: CallTask, run: RunContext, here: GraphPosition) -> ToolCallInfo:
        call = task["call"]
        scope = Scope(
            here.thread_id,
            task["mode"],
            task["cwd"],
            task["todo"],
            shown=task.get("shown", ()),
            calls_in_message=task.get("calls_in_message", 1),
        )
        rows = await self.journal.rows(here.thread_id, call["call_id"])
        for row in rows:
            if row.outcome is not None and row.is_finished:
                if run.stop:
                    return _ended(call, row.outcome, row)
                # Nobody knows whether the run that finished it came to the hooks that follow.
                return await self._remarked(_ended(call, row.outcome, row), row.outcome, scope)
        # The fencing check: a row of this attempt, or the mark of another run: the call may have started.
        is_foreign = call.get("owner_token") != run.owner_token or run.stop
        if is_foreign or any(row.attempt == call.get("attempt", 1) for row in rows):
            return await self._broken_off(call, rows, scope, run)
        # The barrier: mark, approval and model message must be on disk before anything happens in the world.
        if not await self.barrier.wait(here.thread_id, here.checkpoint_id):
            return await self._broken_off(call, rows, scope, run)
        if objection := await self.hooks.before(call, scope):
            return moved(call, "error", error_msg=objection, ended_at=self.clock.now())
        return await self._claim_and_run(call, run, scope, rows)

    async def _claim_and_run(
        self, call: ToolCallInfo, run: RunContext, scope: Scope, rows: Sequence[JournalRow]
    ) -> ToolCallInfo:
        key = (scope.thread_id, call["call_id"], call.get("attempt", 1), run.owner_token)
        intent = await self.toolbox.record_intent(call, scope)
        started_at = self.clock.now()
        try:
            claim = await self.journal.claim(*key, intent)
        except asyncio.CancelledError:
            await asyncio.shield(self.journal.record_interruption(*key, "not_started"))
            raise
        if claim.finished is not None and claim.finished.outcome is not None:
            ended = _ended(call, claim.finished.outcome, claim.finished)
            return await self._remarked(ended, claim.finished.outcome, scope)
        if not claim.won:
            known = await self.journal.rows(scope.thread_id, call["call_id"]) or rows
            return await self._broken_off(call, known, scope, run)
        self.bus.publish(
            ToolCallStarted(call["call_id"], call["tool_name"], call.get("summary", ""), call.get("attempt", 1))
        )
        outcome = await self._run(call, scope, key)
        if outcome is None:
            return _paused(call, started_at)
        if not await self.journal.finish(*key, outcome):
            raise StaleOwner(f"call {call['call_id']} was taken over by another process")
        times = {"started_at": started_at, "ended_at": self.clock.now()}
        ended = moved(call, outcome.status, **_fields(outcome), started=True, **times)
        return await self._remarked(ended, outcome, scope)

    async def _remarked(self, ended: ToolCallInfo, outcome: Outcome, scope: Scope) -> ToolCallInfo:
        """The record of a finished call with what hooks say of its result, which is in the journal already."""
        remark = await self.hooks.after(ended, outcome, scope)
        return cast("ToolCallInfo", {**ended, "hook_feedback": remark}) if remark else ended

    async def _run(self, call: ToolCallInfo, scope: Scope, key: tuple[str, str, int, str]) -> Outcome | None:
        """What came of it; None of a call that rests where it stands."""
        try:
            return await self.toolbox.run(call, scope)
        except Paused:
            await self.journal.record_interruption(*key, "interrupted")
            return None
        except asyncio.CancelledError:
            await asyncio.shield(self.journal.record_interruption(*key, "interrupted"))
            raise

    async def _broken_off(
        self, call: ToolCallInfo, rows: Sequence[JournalRow], scope: Scope, run: RunContext
    ) -> ToolCallInfo:
        """The record of a call that is not run; of one that may have begun with what it had written until then."""
        begun = [row for row in rows if row.may_have_started]
        if not begun:
            # A rewind may have undone an attempt without knowing what that one had changed.
            may_have = call["call_id"] in run.started_calls
            reason = "outcome_unknown" if may_have else "never_started"
            return moved(call, "interrupted", started=may_have, reason=reason)
        output = await self.toolbox.partial_output(call, begun[-1].attempt, scope)
        return moved(
            call,
            "interrupted",
            started=True,
            reason="outcome_unknown",
            started_at=begun[-1].started_at,
            result=output or None,
        )


def _paused(call: ToolCallInfo, started_at: str) -> ToolCallInfo:
    return moved(call, "interrupted", started=True, reason=PAUSED, started_at=started_at)


def _ended(call: ToolCallInfo, outcome: Outcome, row: JournalRow) -> ToolCallInfo:
    """The record with the result that the journal holds."""
    return moved(
        call,
        outcome.status,
        **_fields(outcome),
        attempt=max(row.attempt, call.get("attempt", 1)),
        started=True,
        started_at=row.started_at,
        ended_at=row.ended_at or "",
    )


def _fields(outcome: Outcome) -> dict[str, Any]:
    shown = {"summary": outcome.summary} if outcome.summary else {}
    return {"result": outcome.output, "error_msg": outcome.error, "metadata": outcome.metadata, **shown}
