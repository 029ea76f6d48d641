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

from graph_agent.calls import FINAL, ToolCallInfo, ended_event
from graph_agent.errors import Paused, StaleOwner
from graph_agent.events import EventBus, ToolCallStarted
from graph_agent.graph.clients import observed_run
from graph_agent.graph.history import PAUSED, change_of, moved
from graph_agent.graph.run_context import GraphPosition, RunContext, Step
from graph_agent.graph.state import CallTask
from graph_agent.ports import Clock, Journal, JournalRow, Outcome, Scope, Toolbox
from graph_agent.ports.toolbox import Hooks

__all__ = ["ToolExecution"]

_STATE_CHANNELS = ("cwd", "todo", "loaded_tools")
"""Channels that a tool writes by way of its metadata."""


@dataclass(frozen=True, slots=True)
class ToolExecution:
    """Runs a call that routing marked, at most once per attempt, whatever happened before."""

    toolbox: Toolbox
    journal: Journal
    clock: Clock
    bus: EventBus
    hooks: Hooks | None = None

    async def __call__(self, task: CallTask, run: RunContext, here: GraphPosition) -> Step:
        """Outcomes: ended, settled.

        Raises:
            StaleOwner: another run took the call over while it ran; this run must write nothing more.
        """
        call = task["call"]
        scope = Scope(
            here.thread_id,
            task["mode"],
            task["cwd"],
            task["todo"],
            shown=task.get("shown", ()),
            calls_in_message=task.get("calls_in_message", 1),
        )
        after = await self._execute(call, scope, run, here)
        if not (run.stop and after["status"] == "interrupted"):
            # After a stop, routing cancels it next, and reports that as its one end.
            self.bus.publish(ended_event(after))
        update: dict[str, Any] = {"calls": {call["call_id"]: change_of(call, after)}}
        metadata = after.get("metadata", {})
        for channel in _STATE_CHANNELS:
            if metadata.get(channel) is not None:
                update[channel] = metadata[channel]
        # One of a batch never knows how the others ended: then routing sees to what is left.
        is_settled = task.get("is_last", False) and after["status"] in FINAL
        return Step("settled" if is_settled else "ended", update)

    async def _execute(
        self, call: ToolCallInfo, scope: Scope, run: RunContext, here: GraphPosition
    ) -> ToolCallInfo:
        """The record after the call ran, or after it turned out that it must not."""
        rows = await self.journal.rows(scope.thread_id, call["call_id"])
        for row in rows:
            if row.outcome is not None and row.is_finished:
                # It is unknown whether the run that finished it came to the hooks that follow.
                return await self._finished(call, row, row.outcome, scope, with_hooks=not run.stop)
        # The fencing check: a row of this attempt, or the mark of another run: the call may have started.
        is_foreign = call.get("owner_token") != run.owner_token or run.stop
        may_have_started = is_foreign or any(row.attempt == call.get("attempt", 1) for row in rows)
        # The barrier: mark, approval and model message must be on disk before anything happens outside.
        if may_have_started or not await here.is_stored():
            return await self._interrupted(call, rows, scope, run)
        if self.hooks and (objection := await self.hooks.before(call, scope)):
            return moved(call, "error", error_msg=objection, ended_at=self.clock.now())
        key = (scope.thread_id, call["call_id"], call.get("attempt", 1), run.owner_token)
        intent = await self.toolbox.record_intent(call, scope)
        started_at = self.clock.now()
        try:
            claim = await self.journal.claim(*key, intent)
        except asyncio.CancelledError:
            await asyncio.shield(self.journal.record_interruption(*key, "not_started"))
            raise
        if claim.finished is not None and claim.finished.outcome is not None:
            return await self._finished(call, claim.finished, claim.finished.outcome, scope)
        if not claim.won:
            rows = await self.journal.rows(scope.thread_id, call["call_id"]) or rows
            return await self._interrupted(call, rows, scope, run)
        return await self._run(call, scope, key, started_at)

    async def _run(
        self, call: ToolCallInfo, scope: Scope, key: tuple[str, str, int, str], started_at: str
    ) -> ToolCallInfo:
        """Run a call that this run has claimed, and record how it ended."""
        self.bus.publish(
            ToolCallStarted(call["call_id"], call["tool_name"], call.get("summary", ""), call.get("attempt", 1))
        )
        try:
            outcome = await observed_run(call, self.toolbox.run(call, scope))
        except Paused:
            await self.journal.record_interruption(*key, "interrupted")
            return moved(call, "interrupted", started=True, reason=PAUSED, started_at=started_at)
        except asyncio.CancelledError:
            await asyncio.shield(self.journal.record_interruption(*key, "interrupted"))
            raise
        if not await self.journal.finish(*key, outcome):
            raise StaleOwner(f"call {call['call_id']} was taken over by another process")
        row = JournalRow(key[1], key[2], key[3], outcome.status, started_at, self.clock.now())
        return await self._finished(call, row, outcome, scope)

    async def _finished(
        self, call: ToolCallInfo, row: JournalRow, outcome: Outcome, scope: Scope, *, with_hooks: bool = True
    ) -> ToolCallInfo:
        """The record with a result that the journal holds, and with what hooks say of it."""
        summary = {"summary": outcome.summary} if outcome.summary else {}
        ended = moved(
            call,
            outcome.status,
            result=outcome.output,
            error_msg=outcome.error,
            metadata=outcome.metadata,
            **summary,
            attempt=max(row.attempt, call.get("attempt", 1)),
            started=True,
            started_at=row.started_at,
            ended_at=row.ended_at or "",
        )
        feedback = await self.hooks.after(ended, outcome, scope) if self.hooks and with_hooks else ""
        return cast("ToolCallInfo", {**ended, "hook_feedback": feedback}) if feedback else ended

    async def _interrupted(
        self, call: ToolCallInfo, rows: Sequence[JournalRow], scope: Scope, run: RunContext
    ) -> ToolCallInfo:
        """The record of a call that does not run; if it may have started before, with its output until then."""
        started = [row for row in rows if row.may_have_started]
        if not started:
            # A rewind may have reverted an attempt without knowing what that one had changed.
            may_have = call["call_id"] in run.started_calls
            reason = "outcome_unknown" if may_have else "never_started"
            return moved(call, "interrupted", started=may_have, reason=reason)
        output = await self.toolbox.partial_output(call, started[-1].attempt, scope)
        return moved(
            call,
            "interrupted",
            started=True,
            reason="outcome_unknown",
            started_at=started[-1].started_at,
            result=output or None,
        )
