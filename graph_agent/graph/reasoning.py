"""The node that sends the model request, or compacts the conversation first where the request would be too long.

The request also reports background shells that ended since the last one. They are recorded in the same step as the
reply, so that after a kill or a rewind they are reported again.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from langchain_core.messages import AIMessage, SystemMessage

from graph_agent.calls import FULL_RESULTS
from graph_agent.errors import ContextOverflow
from graph_agent.events import EventBus, ModelMessage, StepStarted, TextDelta, ToolCallDelta, WarningIssued
from graph_agent.graph.auto_mode import Judge, Judged
from graph_agent.graph.compaction import Compaction, Smaller, Weighed
from graph_agent.graph.history import printable, require_valid
from graph_agent.graph.limits import drawn, passed
from graph_agent.graph.run_context import GraphPosition, RunContext, Step, scope_of
from graph_agent.ports import ChatModel, Delta, Journal, ModelRequest, Scope, Toolbox
from graph_agent.ports.background import NoShells, ShellNotices
from graph_agent.ports.model import UNFULFILLED
from graph_agent.ports.toolbox import NO_EARLY_READS, EarlyReads
from graph_agent.ports.usage import UNLIMITED, UNPRICED, Meter, UsageTotals, add_usage

if TYPE_CHECKING:
    from graph_agent.graph.state import AgentState, TurnState


__all__ = ["COMPACT_ONLY", "NOTHING_NEW", "News", "Reasoning", "news_of"]

_MOST = 10
_COMMAND_CHARS = 300


@dataclass(frozen=True, slots=True)
class News:
    """What is new for one request."""

    lines: tuple[str, ...] = ()
    told: tuple[str, ...] = ()

    @property
    def update(self) -> dict[str, Any]:
        """For the state, once the model has replied to it."""
        return {"reported_shells": list(self.told)} if self.told else {}


NOTHING_NEW = News()


async def news_of(shells: ShellNotices, state: "AgentState", thread_id: str) -> News:
    """What ended and was not told; behind a message of the model there is no place to tell it."""
    messages = state["messages"]
    if not messages or messages[-1].type not in ("human", "tool"):
        return NOTHING_NEW
    told = state.get("reported_shells", ())
    ended = {name: how for name, how in (await shells.ended(thread_id)).items() if name not in told}
    return News(_lines(ended), tuple(ended)) if ended else NOTHING_NEW


def _lines(ended: Mapping[str, str]) -> tuple[str, ...]:
    newest = list(ended.items())[-_MOST:]
    more = len(ended) - len(newest)
    counted = [f"{more} more; bash_list names them"] if more else []
    return tuple(map(printable, [*counted, *(f"{name}: {_cut(how)}" for name, how in newest)]))


def _cut(how: str) -> str:
    line = " ".join(how.split())
    return line if len(line) <= _COMMAND_CHARS else f"{line[:_COMMAND_CHARS]}…"


_USABLE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
COMPACT_ONLY = "compact_only"
"""Key of a turn that is for a compaction alone; it holds the turn that the thread came to rest with."""
_SINCE_REPLY = ("compactions", "overflowed")
"""What a turn notes until the next reply: how often the conversation was made shorter, and that it was refused."""


@dataclass(frozen=True, slots=True)
class Reasoning:
    """One model request, answered by one message with ids of our own where the model's cannot be kept."""

    model: ChatModel
    toolbox: Toolbox
    journal: Journal
    bus: EventBus
    instructions: Callable[[], str]
    """System prompt for threads whose history does not begin with one."""
    compaction: Compaction
    meter: Meter = UNPRICED
    early_reads: EarlyReads = NO_EARLY_READS
    judge: Judge | None = None
    """Judges calls in mode auto; without one they all ask."""
    shells: ShellNotices = field(default_factory=NoShells)
    is_sub_agent: bool = False
    """Whether a model gave the task. Its calls do not keep the ids they came with, as its parent is asked about
    them beside its own; and its turns are parts of one of the user's."""

    async def __call__(self, state: "AgentState", run: RunContext, here: GraphPosition) -> Step:
        """Outcomes: called, answered, compacted, shortened, stopped, limit.

        Raises:
            ModelError: the request failed for good; the state stays as it was, so asking again is possible.
            InvalidHistory: the request would not be a valid conversation.
        """
        turn: TurnState = state.get("turn") or {}
        if run.stop:
            return Step("stopped", {"turn": turn.get("compact_only") or {**turn, "outcome": "stopped"}})
        if turn.get("outcome"):
            turn = {}  # Of the turn before: a server begins the next with the message alone.
        messages = state["messages"]
        require_valid(messages)
        scope = scope_of(state, run, here)
        request = self._request(state, scope.mode)
        if "compact_only" in turn:
            smaller = await self.compaction.by_hand(state, here.thread_id, request)
            if smaller is None:
                self.bus.publish(WarningIssued("nothing was compacted: the conversation is short already"))
            update = {} if smaller is None else _smaller(state, {}, smaller)
            return Step("shortened", {**update, "turn": turn["compact_only"]})
        if pause := self._used_up(state, turn, request, run, here):
            return Step("limit", {"turn": {**turn, "outcome": "limit", **pause}})
        shared_budget = run.shared_budget
        try:
            step = await self._fitted(state, turn, request, scope)
        finally:
            if shared_budget is not None:
                shared_budget.end_request(here.thread_id)
        if shared_budget is not None and "usage" in step.update:
            shared_budget.set_sub_agent_usage(
                here.thread_id, UsageTotals(step.update["turn"].get("usage") or {}, step.update["usage"])
            )
        return step

    def _used_up(
        self,
        state: "AgentState",
        turn: "TurnState",
        request: ModelRequest,
        run: RunContext,
        here: GraphPosition,
    ) -> "TurnState":
        """Why the request is not made, as part of the turn; empty when it may be."""
        budget = run.budget if run.shared_budget is None else run.shared_budget.budget
        known = self.compaction.known
        least = (0, None) if budget == UNLIMITED else self.meter.minimum_usage(request, self.model.label, known)
        if run.shared_budget is not None:
            return drawn(run.shared_budget, here.thread_id, least)
        return passed(budget, (turn, state), least)

    async def _fitted(self, state: "AgentState", turn: "TurnState", request: ModelRequest, scope: Scope) -> Step:
        """The request, or the step to take instead of one that would be too long."""
        done = int(turn.get("compactions", 0))
        weighed = await self.compaction.weigh(state, request)
        smaller = await self.compaction.before(state, scope.thread_id, request, weighed, done)
        if smaller is not None:
            return Step("compacted", _smaller(state, {**turn, "compactions": done + 1}, smaller))
        if not weighed.is_hopeless(done):
            return await self._ask(state, turn, request, scope, weighed)
        tokens = weighed.window.tokens
        why = (
            f"even compacted, the conversation is longer than the {tokens:,} tokens that the model takes: "
            "choose a larger model, raise context_window under [model] if it takes more, or start a new thread"
        )
        return Step("limit", {"turn": {**turn, "outcome": "limit", "reason": why}})

    async def _ask(
        self, state: "AgentState", turn: "TurnState", request: ModelRequest, scope: Scope, weighed: Weighed
    ) -> Step:
        step = int(turn.get("steps", 0)) + 1
        self.bus.publish(StepStarted(step))
        try:
            news = await news_of(self.shells, state, scope.thread_id)
            begins = step == 1 and not self.is_sub_agent and not turn.get("overflowed")
            reply = await self._reply(replace(request, notices=news.lines, starts_turn=begins), scope)
        except ContextOverflow as overflow:
            if turn.get("overflowed"):
                raise
            smaller = await self.compaction.after(state, scope.thread_id, request, overflow)
            if smaller is None:
                raise
            return Step("compacted", _smaller(state, {**turn, "overflowed": True}, smaller))
        usage = self.meter.usage_of(request, reply, self.model.label, self.compaction.known)
        message = await self._adopt(reply, scope.thread_id)
        call_ids = tuple(str(call["id"]) for call in message.tool_calls)
        self.bus.publish(ModelMessage(message.text, call_ids, usage))
        judged = await self._judged(message, state, turn, scope)
        spent = add_usage(usage, judged.spent)
        update = {
            "messages": [message],
            "turn": {
                **{key: value for key, value in turn.items() if key not in _SINCE_REPLY},
                "steps": step,
                "outcome": "" if call_ids else "done",
                "usage": add_usage(turn.get("usage"), spent),
                **({"verdicts": dict(judged.verdicts)} if judged.verdicts else {}),
            },
            "usage": add_usage(state.get("usage"), spent),
            **news.update,
        }
        if (context := self.compaction.relearned(state, weighed.size.total)) is not None:
            update["context"] = context
        return Step("called" if call_ids else "answered", update)

    async def _judged(self, message: AIMessage, state: "AgentState", turn: "TurnState", scope: Scope) -> Judged:
        known = turn.get("verdicts") or {}
        if self.judge is None:
            return Judged(known)
        return await self.judge.verdicts(message, state["messages"], known, scope)

    async def _reply(self, request: ModelRequest, scope: Scope) -> AIMessage:
        """The reply; reads that it asks for may begin while it arrives."""
        self.early_reads.begin(scope)
        calls: list[tuple[str, dict[str, Any]]] = []
        try:
            reply = await self.model.reply(request, self._show)
            calls = [(call["name"], call["args"]) for call in reply.tool_calls]
        finally:
            self.early_reads.finish(calls)
        return reply

    def _request(self, state: "AgentState", mode: str) -> ModelRequest:
        messages = state["messages"]
        begins = bool(messages) and messages[0].type == "system"
        system = [] if begins else [SystemMessage(self.instructions())]
        return ModelRequest([*system, *messages], self.toolbox.declarations(mode, state.get("loaded_tools", ())))

    def _show(self, delta: Delta) -> None:
        self.early_reads.add_delta(delta)
        match delta.kind:
            case "text" | "reasoning":
                self.bus.publish(TextDelta(delta.text, delta.kind))
            case "tool_call":
                self.bus.publish(ToolCallDelta(delta.index, delta.tool_name, delta.text))
            case "retry" | "note":
                self.bus.publish(WarningIssued(delta.text, delta.wait_s))

    async def _adopt(self, reply: AIMessage, thread_id: str) -> AIMessage:
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
        told = ("model_name", "finish_reason", "unusable_arguments", "reasoning", "extra_content")
        kept = (*told, UNFULFILLED, FULL_RESULTS)
        return AIMessage(
            content=printable(reply.text),
            tool_calls=calls,
            id=f"ai-{uuid4().hex}",
            usage_metadata=reply.usage_metadata,
            response_metadata={key: reply.response_metadata[key] for key in kept if key in reply.response_metadata},
        )


def _smaller(state: "AgentState", turn: "TurnState", smaller: Smaller) -> dict[str, Any]:
    update: dict[str, Any] = {
        "messages": list(smaller.messages),
        "context": dict(smaller.context),
        "turn": dict(turn),
    }
    if smaller.spent:
        update["usage"] = add_usage(state.get("usage"), smaller.spent)
        update["turn"]["usage"] = add_usage(turn.get("usage"), smaller.spent)
    return update
