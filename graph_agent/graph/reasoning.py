"""The node that asks the model. It decides nothing else and has no effect but the request."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from langchain_core.messages import AIMessage, SystemMessage

from graph_agent.events import CallArrived, EventBus, ModelReplied, StepStarted, TextArrived, Warned
from graph_agent.graph.budgets import passed
from graph_agent.graph.history import printable, require_valid
from graph_agent.graph.life import Here, Life, Step, scope_of
from graph_agent.ports import ChatModel, Delta, Journal, ModelRequest, Scope, Toolbox
from graph_agent.ports.early import NOTHING_EARLY, EarlyReads
from graph_agent.ports.meter import UNPRICED, Meter
from graph_agent.ports.spending import UNLIMITED, summed

if TYPE_CHECKING:
    from graph_agent.graph.state import AgentState

__all__ = ["Reasoning"]

_USABLE_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")


@dataclass(frozen=True, slots=True)
class Reasoning:
    """One model request, answered by one message with ids of our own where the model's cannot be kept."""

    model: ChatModel
    toolbox: Toolbox
    journal: Journal
    bus: EventBus
    instructions: Callable[[], str]
    """System prompt for threads whose history does not begin with one."""
    meter: Meter = UNPRICED
    early: EarlyReads = NOTHING_EARLY

    async def __call__(self, state: "AgentState", life: Life, here: Here) -> Step:
        """Outcomes: called, answered, stopped, limit.

        Raises:
            ModelError: the request failed for good; the state stays as it was, so asking again is possible.
            InvalidHistory: the request would not be a valid conversation.
        """
        turn = state.get("turn") or {}
        if life.stop:
            return Step("stopped", {"turn": {**turn, "outcome": "stopped"}})
        if turn.get("outcome"):
            turn = {}  # Of the turn before: a server begins the next with the message alone.
        messages = state["messages"]
        require_valid(messages)
        request = self._request(state, scope_of(state, life, here).mode)
        label = self.model.label
        if life.budget != UNLIMITED and (
            pause := passed(life.budget, (turn, state), self.meter.least(request, label))
        ):
            return Step("limit", {"turn": {**turn, "outcome": "limit", **pause}})
        step = int(turn.get("steps", 0)) + 1
        self.bus.publish(StepStarted(step))
        reply = await self._reply(request, scope_of(state, life, here))
        usage = self.meter.usage_of(request, reply, label)
        message = await self._adopt(reply, here.thread_id)
        call_ids = tuple(str(call["id"]) for call in message.tool_calls)
        self.bus.publish(ModelReplied(message.text, call_ids, usage))
        update = {
            "messages": [message],
            "turn": {
                **turn,
                "steps": step,
                "outcome": "" if call_ids else "done",
                "usage": summed(turn.get("usage"), usage),
            },
            "usage": summed(state.get("usage"), usage),
        }
        return Step("called" if call_ids else "answered", update)

    async def _reply(self, request: ModelRequest, scope: Scope) -> AIMessage:
        """The reply; reads that it asks for may begin while it arrives."""
        self.early.begin(scope)
        calls: list[tuple[str, dict[str, Any]]] = []
        try:
            reply = await self.model.reply(request, self._show)
            calls = [(call["name"], call["args"]) for call in reply.tool_calls]
        finally:
            self.early.settle(calls)
        return reply

    def _request(self, state: "AgentState", mode: str) -> ModelRequest:
        messages = state["messages"]
        begins = bool(messages) and messages[0].type == "system"
        system = [] if begins else [SystemMessage(self.instructions())]
        return ModelRequest([*system, *messages], self.toolbox.declarations(mode, state.get("loaded_tools", ())))

    def _show(self, delta: Delta) -> None:
        self.early.arrive(delta)
        match delta.kind:
            case "text" | "reasoning":
                self.bus.publish(TextArrived(delta.text, delta.kind))
            case "tool_call":
                self.bus.publish(CallArrived(delta.index, delta.tool_name, delta.text))
            case "retry" | "note":
                self.bus.publish(Warned(delta.text))

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
            keeps = call_id not in taken and _USABLE_ID.fullmatch(call_id)
            own_id = call_id if keeps else f"call_{uuid4().hex[:12]}"
            taken.add(own_id)
            calls.append({**call, "id": own_id})
        kept = ("model_name", "finish_reason", "unusable_arguments", "reasoning", "extra_content")
        return AIMessage(
            content=printable(reply.text),
            tool_calls=calls,
            id=f"ai-{uuid4().hex}",
            usage_metadata=reply.usage_metadata,
            response_metadata={key: reply.response_metadata[key] for key in kept if key in reply.response_metadata},
        )
