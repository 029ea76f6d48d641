"""The node that sends the model request, or first compacts the conversation if the request would be too long.

The request also reports background shells that ended since the last one. They are recorded in the same step as the
reply, so that after a kill or a rewind they are reported again.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, assert_never
from uuid import uuid4

from langchain_core.messages import AIMessage, SystemMessage

from graph_agent.calls import FULL_RESULTS
from graph_agent.errors import ContextOverflow
from graph_agent.events import EventBus, ModelMessage, StepStarted, TextDelta, ToolCallDelta, WarningIssued
from graph_agent.graph.auto_mode import CallReviewer, Review
from graph_agent.graph.compaction import CompactedContext, Compaction, RequestSize
from graph_agent.graph.history import require_valid
from graph_agent.graph.limits import budget_limit, reserve_request
from graph_agent.graph.run_context import GraphPosition, RunContext, Step, scope_of
from graph_agent.ports import ChatModel, Delta, Journal, ModelRequest, Scope, Toolbox
from graph_agent.ports.background import BackgroundShells, NoShells
from graph_agent.ports.model import UNFULFILLED, FindUnusedRequests, no_unused_requests
from graph_agent.ports.stored_text import storable
from graph_agent.ports.toolbox import NO_EARLY_READS, EarlyReads
from graph_agent.ports.usage import UNLIMITED, UNPRICED, Meter, UsageTotals, add_usage

if TYPE_CHECKING:
    from graph_agent.graph.state import AgentState, TurnState


__all__ = ["COMPACT_ONLY", "Reasoning", "ended_shells", "next_request", "shell_notices"]

COMPACT_ONLY = "compact_only"
"""Key of a turn that is for a compaction alone; it holds the turn that the thread had ended with."""
_UNTIL_REPLY = ("compactions", "overflowed")
"""What a turn counts until the next reply: compactions, and that the model refused a request as too long."""
_USABLE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_KEPT_METADATA = (
    "model_name",
    "finish_reason",
    "unusable_arguments",
    "reasoning",
    "extra_content",
    UNFULFILLED,
    FULL_RESULTS,
)


def next_request(
    state: "Mapping[str, Any] | AgentState", toolbox: Toolbox, mode: str, instructions: Callable[[], str]
) -> ModelRequest:
    """The request that the conversation needs next, in this mode."""
    messages = state.get("messages") or []
    has_system = bool(messages) and messages[0].type == "system"
    return ModelRequest(
        [*([] if has_system else [SystemMessage(instructions())]), *messages],
        toolbox.declarations(mode, state.get("loaded_tools", ())),
    )


@dataclass(frozen=True, slots=True)
class Reasoning:
    """Sends one model request and returns one message, with new call ids where the model's cannot be kept."""

    model: ChatModel
    toolbox: Toolbox
    journal: Journal
    bus: EventBus
    instructions: Callable[[], str]
    """System prompt for threads whose history does not begin with one."""
    compaction: Compaction
    meter: Meter = UNPRICED
    early_reads: EarlyReads = NO_EARLY_READS
    unused_requests: FindUnusedRequests = no_unused_requests
    reviewer: CallReviewer | None = None
    """Asked in mode auto only; without one all calls need approval there."""
    shells: BackgroundShells = field(default_factory=NoShells)
    is_sub_agent: bool = False
    """Whether a model gave the task. Its calls do not keep the ids they came with, as its parent is asked about
    them beside its own; and its turns are parts of one of the user's."""

    async def __call__(self, state: "AgentState", run: RunContext, here: GraphPosition) -> Step:
        """Outcomes: called, answered, compacted, shortened, steered, stopped, limit.

        Raises:
            ModelError: the request failed for good; the state stays as it was, so asking again is possible.
            InvalidHistory: the request would not be a valid conversation.
        """
        turn: TurnState = state.get("turn") or {}
        if run.stop:
            return Step("stopped", {"turn": turn.get("compact_only") or {**turn, "outcome": "stopped"}})
        if turn.get("outcome"):
            turn = {}  # Of the turn before: a server begins the next with the message alone.
        scope = scope_of(state, run, here)
        require_valid(state["messages"])
        is_compaction = "compact_only" in turn
        if run.take_messages is not None and not is_compaction and (new := await run.take_messages(scope)):
            return Step("steered", {"messages": list(new)})
        request = next_request(state, self.toolbox, scope.mode, self.instructions)
        if not is_compaction:
            request = replace(request, response_schema=run.response_schema)
            return await self._send_within_budget(state, turn, request, scope, run)
        compacted = await self.compaction.on_demand(state, here.thread_id, request)
        if compacted is None:
            self.bus.publish(WarningIssued("Nothing was compacted: the conversation is already short."))
        update = {} if compacted is None else _compaction_update(state, {}, compacted)
        return Step("shortened", {**update, "turn": turn["compact_only"]})

    async def _send_within_budget(
        self, state: "AgentState", turn: "TurnState", request: ModelRequest, scope: Scope, run: RunContext
    ) -> Step:
        shared = run.shared_budget
        budget, known = run.budget if shared is None else shared.budget, self.compaction.known
        minimum = (0, None) if budget == UNLIMITED else self.meter.minimum_usage(request, self.model.label, known)
        if shared is None:
            used = UsageTotals(turn.get("usage") or {}, state.get("usage") or {})
            limit = budget_limit(budget, used, minimum)
        else:
            limit = reserve_request(shared, scope.thread_id, minimum)
        if limit:
            return Step("limit", {"turn": {**turn, "outcome": "limit", **limit}})
        try:
            step = await self._send_or_compact(state, turn, request, scope)
        finally:
            if shared is not None:
                shared.end_request(scope.thread_id)
        if shared is not None and "usage" in step.update:
            used = UsageTotals(step.update["turn"].get("usage") or {}, step.update["usage"])
            shared.set_sub_agent_usage(scope.thread_id, used)
        return step

    async def _send_or_compact(
        self, state: "AgentState", turn: "TurnState", request: ModelRequest, scope: Scope
    ) -> Step:
        count = int(turn.get("compactions", 0))
        ended = await ended_shells(self.shells, state, scope.thread_id)
        request = replace(request, notices=shell_notices(ended) if ended else ())
        size = await self.compaction.measure(state, request)
        compacted = await self.compaction.before_request(state, scope.thread_id, request, size, count)
        if compacted is not None:
            return Step("compacted", _compaction_update(state, {**turn, "compactions": count + 1}, compacted))
        if reason := size.reason_against(count):
            return Step("limit", {"turn": {**turn, "outcome": "limit", "reason": reason}})
        return await self._send(state, turn, request, scope, size, ended)

    async def _send(
        self,
        state: "AgentState",
        turn: "TurnState",
        request: ModelRequest,
        scope: Scope,
        size: RequestSize,
        ended: Mapping[str, str],
    ) -> Step:
        number = int(turn.get("steps", 0)) + 1
        self.bus.publish(StepStarted(number, round(100 * size.size.total / size.window.tokens)))
        starts_turn = number == 1 and not self.is_sub_agent and not turn.get("overflowed")
        try:
            reply = await self._reply(replace(request, starts_turn=starts_turn), scope)
        except ContextOverflow as overflow:
            if turn.get("overflowed"):
                raise
            compacted = await self.compaction.after_overflow(state, scope.thread_id, request, overflow)
            if compacted is None:
                raise
            return Step("compacted", _compaction_update(state, {**turn, "overflowed": True}, compacted))
        usage = self.meter.usage_of(request, reply, self.model.label, self.compaction.known)
        message = await self._stored_message(reply, scope.thread_id)
        call_ids = tuple(str(call["id"]) for call in message.tool_calls)
        self.bus.publish(ModelMessage(message.text, call_ids, usage))
        review = Review(turn.get("verdicts") or {})
        if self.reviewer is not None and scope.mode == "auto":
            review = await self.reviewer.review(message, state["messages"], review.verdicts, scope)
        used = add_usage(usage, review.usage)
        if starts_turn:
            unused = await self.unused_requests(scope.thread_id)
            used = add_usage(used, self.meter.unused_usage(unused, state.get("usage"), self.model.label))
        next_turn: dict[str, Any] = {key: value for key, value in turn.items() if key not in _UNTIL_REPLY}
        next_turn |= {
            "steps": number,
            "outcome": "" if call_ids else "done",
            "usage": add_usage(turn.get("usage"), used),
        }
        if review.verdicts:
            next_turn["verdicts"] = dict(review.verdicts)
        update: dict[str, Any] = {
            "messages": [message],
            "turn": next_turn,
            "usage": add_usage(state.get("usage"), used),
        }
        if ended:
            update["reported_shells"] = list(ended)
        if (context := self.compaction.context_after_reply(state, size.size.total)) is not None:
            update["context"] = context
        return Step("called" if call_ids else "answered", update)

    async def _reply(self, request: ModelRequest, scope: Scope) -> AIMessage:
        """The reply; reads that it asks for may begin while it streams in."""
        self.early_reads.begin(scope)
        calls: list[tuple[str, dict[str, Any]]] = []
        try:
            reply = await self.model.reply(request, self._show)
            calls = [(call["name"], call["args"]) for call in reply.tool_calls]
        finally:
            self.early_reads.finish(calls)
        return reply

    def _show(self, delta: Delta) -> None:
        self.early_reads.add_delta(delta)
        match delta.kind:
            case "text" | "reasoning":
                self.bus.publish(TextDelta(delta.text, delta.kind))
            case "tool_call":
                self.bus.publish(ToolCallDelta(delta.index, delta.tool_name, delta.text))
            case "retry" | "note":
                self.bus.publish(WarningIssued(delta.text, delta.wait_s))
            case _ as never:
                assert_never(never)

    async def _stored_message(self, reply: AIMessage, thread_id: str) -> AIMessage:
        """The reply as it is stored: of the provider's only text, calls, usage, why it ended, and what it may
        want to see again.

        A call keeps the model's id where it is well-formed and new in the thread on every branch: a journal row
        of an earlier call with the same id would otherwise be taken for this call's result.
        """
        wanted = [str(call["id"] or "") for call in reply.tool_calls]
        taken = await self.journal.known_ids(thread_id, wanted) if wanted else set()
        calls = []
        for call, call_id in zip(reply.tool_calls, wanted, strict=True):
            keeps = not self.is_sub_agent and call_id not in taken and _USABLE_ID.fullmatch(call_id)
            own_id = call_id if keeps else f"call_{uuid4().hex[:12]}"
            taken.add(own_id)
            calls.append({**call, "id": own_id})
        metadata = reply.response_metadata
        return AIMessage(
            content=storable(reply.text),
            tool_calls=calls,
            id=reply.id or f"ai-{uuid4().hex}",
            usage_metadata=reply.usage_metadata,
            response_metadata={key: metadata[key] for key in _KEPT_METADATA if key in metadata},
        )


def _compaction_update(state: "AgentState", turn: "TurnState", compacted: CompactedContext) -> dict[str, Any]:
    update: dict[str, Any] = {
        "messages": list(compacted.messages),
        "context": dict(compacted.context),
        "turn": dict(turn),
    }
    if compacted.usage:
        update["usage"] = add_usage(state.get("usage"), compacted.usage)
        update["turn"]["usage"] = add_usage(turn.get("usage"), compacted.usage)
    return update


async def ended_shells(shells: BackgroundShells, state: "AgentState", thread_id: str) -> dict[str, str]:
    """Background shells whose end the model does not know yet, by id; none directly after a model message."""
    messages = state["messages"]
    if not messages or messages[-1].type not in ("human", "tool"):
        return {}
    reported = state.get("reported_shells", ())
    return {shell: how for shell, how in (await shells.ended(thread_id)).items() if shell not in reported}


_MAX_NOTICES = 10
_MAX_NOTICE_CHARS = 300


def shell_notices(ended: Mapping[str, str]) -> tuple[str, ...]:
    """A line about each of the newest shells that ended, and one that counts the others."""
    notices = []
    if len(ended) > _MAX_NOTICES:
        notices.append(f"{len(ended) - _MAX_NOTICES} more; bash_list names them")
    for shell, how in list(ended.items())[-_MAX_NOTICES:]:
        line = " ".join(how.split())
        line = line if len(line) <= _MAX_NOTICE_CHARS else f"{line[:_MAX_NOTICE_CHARS]}…"
        notices.append(storable(f"{shell}: {line}"))
    return tuple(notices)
