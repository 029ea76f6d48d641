"""Makes the next request smaller: what the live window loses, and what stands there instead.

Done between two model requests, where no call is open, and stored as one step: a kill before its checkpoint leaves
the window as it was, after it nothing is done or paid for again. Transcript, ledger and earlier checkpoints keep
everything.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from graph_agent.calls import SHORTENED
from graph_agent.errors import ContextOverflow, ModelError, StorageError
from graph_agent.events import Compacted, EventBus, Warned
from graph_agent.graph.learned_window import LearnedWindow, learned_from
from graph_agent.graph.shrinking import Shrinking, shrinking_of
from graph_agent.graph.sizing import Size, allowance_of, size_of
from graph_agent.graph.summary import Facts, outline, requests_in, summary_message, summary_request
from graph_agent.ports import Blobs, ChatModel, Delta, Journal, ModelRequest
from graph_agent.ports.meter import UNPRICED, Meter
from graph_agent.ports.tokens import Known, estimate_message_tokens
from graph_agent.ports.window import Window, WindowOf, assumed_window

if TYPE_CHECKING:
    from langchain_core.messages import AnyMessage

    from graph_agent.graph.state import AgentState

__all__ = ["Compaction", "Smaller", "Weighed"]

MOST_IN_A_ROW = 2
"""Compactions without a reply in between."""
_BY_HAND = 4
"""Asked for by the user, a compaction leaves one part in so many of the conversation."""
_OVERFLOWED = 0.9
"""What the model refused as too long is so much of it at most."""
_LEAST_WINDOW = 1_024
_BY_MUCH = 2
_EXCERPT = 1_200
"""Characters of a result of the newest step that is shortened all the same, at its beginning and at its end."""

_Way = Literal["references", "summary", "outline"]


class Weighed(NamedTuple):
    """A request, and the window that it should fit."""

    size: Size
    window: Window
    said: Window
    """Without regard to what the model refused."""

    def is_hopeless(self, done: int) -> bool:
        """Whether it is too long whatever is done, after so many compactions since the last reply.

        An estimate can be wrong: where nothing was compacted, only by much, and never against a window that nobody
        told. The model itself says then.
        """
        most = self.window.tokens if done else _BY_MUCH * self.window.tokens
        return self.window.source != "assumed" and self.size.total > most


@dataclass(frozen=True, slots=True)
class Smaller:
    """What a compaction writes to the state, and what it cost."""

    messages: "Sequence[AnyMessage]"
    context: Mapping[str, Any]
    spent: Mapping[str, Any]
    """What was used for it; see `ports.spending`."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """Judges sizes, and compacts."""

    model: ChatModel
    journal: Journal
    bus: EventBus
    window_of: WindowOf = assumed_window
    blobs: Blobs | None = None
    """Where results are kept that are shortened; without it they are only summed up."""
    meter: Meter = UNPRICED
    known: Known = field(default_factory=Known)

    async def weigh(self, state: "AgentState", request: ModelRequest) -> Weighed:
        """The next request, and the window it should fit."""
        context = state.get("context") or {}
        size = size_of(request.messages, request.tools, str(context.get("counted_from") or ""), self.known)
        said = await self.window_of(size.total)
        learned = learned_from(context, self.model.label)
        return Weighed(size, said if learned is None else learned.within(said), said)

    def relearned(self, state: "AgentState", taken: int) -> dict[str, Any] | None:
        """The state's `context` after a request of so many tokens was answered; None: it stays as it is."""
        context = state.get("context") or {}
        learned = learned_from(context, self.model.label)
        after = learned and learned.after_reply(taken)
        return None if after is None or after == learned else {**context, "learned": after.as_state()}

    async def before(
        self, state: "AgentState", thread_id: str, request: ModelRequest, weighed: Weighed, done: int
    ) -> Smaller | None:
        """What makes a request fit that would not, or None: it fits, or nothing more can be done.

        `done` is how many compactions there were since the last reply.
        """
        size, window, said = weighed
        allowed = allowance_of(size, window)
        if size.estimated <= allowed.limit or done >= MOST_IN_A_ROW:
            return None
        work = _Work(state, thread_id, request, size, window)
        smaller = await self._compact(work, allowed.goal // (done + 1), is_deep=done > 0)
        learned = learned_from(state.get("context") or {}, self.model.label)
        if smaller is None or learned is None or window == said:
            return smaller
        return replace(smaller, context={**smaller.context, "learned": learned.raised().as_state()})

    async def after(
        self, state: "AgentState", thread_id: str, request: ModelRequest, overflow: ContextOverflow
    ) -> Smaller | None:
        """What makes a request shorter that the model refused as too long; None where nothing makes it shorter."""
        size, window, said = await self.weigh(state, request)
        refused = int(size.total * _OVERFLOWED)
        tokens = max(min(refused, window.tokens, overflow.most_tokens or refused), _LEAST_WINDOW)
        window = replace(window, tokens=tokens, reserve=0)
        allowed = allowance_of(size, window)
        goal = min(allowed.goal, sum(size.messages) // 2)
        smaller = await self._compact(_Work(state, thread_id, request, size, window), goal, is_deep=True)
        if smaller is None:
            return None
        known = learned_from(smaller.context, self.model.label) or LearnedWindow(self.model.label, 0)
        learned = known.after_refusal(size.total, tokens, said, overflow.most_tokens)
        return replace(smaller, context={**smaller.context, "learned": learned.as_state()})

    async def by_hand(self, state: "AgentState", thread_id: str, request: ModelRequest) -> Smaller | None:
        """What the user asked for makes the conversation shorter; None where there is nothing to gain."""
        size, window, _ = await self.weigh(state, request)
        goal = min(allowance_of(size, window).goal, sum(size.messages) // _BY_HAND)
        return await self._compact(_Work(state, thread_id, request, size, window), goal)

    async def _compact(self, work: "_Work", goal: int, *, is_deep: bool = False) -> Smaller | None:
        size, talk = work.size, work.talk
        plan = shrinking_of(talk, size.messages, goal, is_deep=is_deep)
        if plan is None:
            return None
        context = {**(work.state.get("context") or {}), "counted_from": talk[-1].id}
        spent: dict[str, Any] = {}
        made = [(old, await self._stub(old, with_excerpt=is_deep)) for old in plan.shortened]
        gone = [old for old, stub in made if stub is not None]
        new = [stub for _, stub in made if stub is not None]
        way: _Way = "references"
        if plan.replaced:
            summary, spent, way = await self._summary(work, plan)
            gone, new = [*gone, *plan.replaced], [*new, summary]
        if not new:
            return None
        self.bus.publish(Compacted(size.total, work.left(gone, new), way))
        return Smaller(new, context, spent)

    async def _summary(self, work: "_Work", plan: Shrinking) -> "tuple[AnyMessage, dict[str, Any], _Way]":
        told, spent = await self._told_by_model(work, plan) if work.window.summarises else ("", {})
        files = await self.journal.written_files(work.thread_id)
        facts = Facts(requests_in(plan.replaced), files, work.state.get("todo") or ())
        message = summary_message(plan.replaced, told or outline(plan.replaced), facts, plan.summary_tokens)
        return message, spent, "summary" if told else "outline"

    async def _told_by_model(self, work: "_Work", plan: Shrinking) -> tuple[str, dict[str, Any]]:
        """What was done, in the model's words; empty where it has none."""
        ceiling = int(work.window.ceiling / work.size.scale)
        room = min(ceiling - 2 * plan.summary_tokens, work.size.estimated // 2)
        request = ModelRequest(summary_request(plan.replaced, room, plan.summary_tokens), ())
        try:
            reply = await self.model.reply(request, self._show)
        except ModelError as failure:
            self.bus.publish(
                Warned(f"the older part of the conversation was summed up without the model: {failure}")
            )
            return "", {}
        spent = self.meter.usage_of(request, reply, self.model.label)
        return "" if reply.tool_calls else reply.text.strip(), spent

    def _show(self, delta: Delta) -> None:
        if delta.kind == "retry":
            self.bus.publish(Warned(delta.text, delta.wait_s))

    async def _stub(self, message: "AnyMessage", *, with_excerpt: bool) -> "AnyMessage | None":
        """The result's reference in its place; None where it cannot be kept."""
        if self.blobs is None:
            return None
        text = message.text
        try:
            reference = await asyncio.to_thread(self.blobs.put, text.encode("utf-8", "replace"))
        except StorageError as failure:
            self.bus.publish(Warned(f"a result of {message.name} stays in the conversation: {failure}"))
            return None
        told = f"[result of {message.name}, {len(text):,} characters, kept as {reference}; read_file reads it]"
        if with_excerpt and len(text) > 2 * _EXCERPT:
            told = f"{text[:_EXCERPT]}\n{told}\n{text[-_EXCERPT:]}"
        return message.model_copy(
            update={"content": told, "response_metadata": {**message.response_metadata, SHORTENED: True}}
        )


@dataclass(frozen=True, slots=True)
class _Work:
    """What a compaction is made of."""

    state: "AgentState"
    thread_id: str
    request: ModelRequest
    size: Size
    window: Window

    @property
    def talk(self) -> "Sequence[AnyMessage]":
        """The conversation that was weighed, without the instructions before it."""
        begin = len(self.request.messages) - len(self.size.messages)
        return cast("Sequence[AnyMessage]", self.request.messages[begin:])

    def left(self, gone: "Sequence[AnyMessage]", new: "Sequence[AnyMessage]") -> int:
        """Tokens of the request afterwards, in the provider's count."""
        fewer = sum(map(estimate_message_tokens, gone)) - sum(map(estimate_message_tokens, new))
        return round((self.size.estimated - fewer) * self.size.scale)
