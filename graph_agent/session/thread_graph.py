"""One thread on the compiled graph: read its state, and run it until it ends or asks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langgraph.errors import GraphDrained
from langgraph.runtime import RunControl
from langgraph.types import Command

from graph_agent.calls import FINAL
from graph_agent.graph.observation import COMPLETION_TOOL
from graph_agent.graph.run_context import RunContext
from graph_agent.ports import normalize_time
from graph_agent.ports.model import UNFULFILLED

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph


__all__ = [
    "RunOutput",
    "ThreadGraph",
    "ThreadSnapshot",
    "has_no_records",
    "last_answer",
    "last_unmet",
    "newest_call_ids",
    "open_calls",
    "turn_id_of",
]

_RECURSION_LIMIT = 1_000_000
"""Effectively none: turns are limited by their steps."""


@dataclass(frozen=True, slots=True)
class ThreadSnapshot:
    """The stored state of a thread at one checkpoint."""

    exists: bool
    checkpoint_id: str = ""
    open_nodes: tuple[str, ...] = ()
    """Nodes with a task that has no result yet. If none and not `is_idle`, only results are still to be applied."""
    is_idle: bool = True
    values: Mapping[str, Any] = field(default_factory=dict)
    parent_id: str = ""
    """The previous checkpoint; empty for the first one."""
    created_at: str = ""
    """In the form of `Clock.now`."""

    @property
    def waits_for_model(self) -> bool:
        """Whether only the model request is pending (failed, killed, or not sent yet)."""
        return bool(self.open_nodes) and set(self.open_nodes) <= {"__start__", "reasoning"}


@dataclass(frozen=True, slots=True)
class RunOutput:
    """What one run of the graph returned."""

    values: Mapping[str, Any]
    question: Mapping[str, Any] | None = None
    """The question list of human_approval, if the graph waits for answers."""
    drained: bool = False
    """The run ended between two supersteps because it was asked to."""


class ThreadGraph:
    """The compiled graph, bound to one thread."""

    def __init__(self, graph: "CompiledStateGraph[Any, RunContext, Any, Any]", thread_id: str) -> None:
        self._graph = graph
        self._config: RunnableConfig = {
            "configurable": {"thread_id": thread_id},
            "recursion_limit": _RECURSION_LIMIT,
        }
        self._control = RunControl()
        self._is_draining = False

    def of(self, thread_id: str) -> "ThreadGraph":
        """The same graph, bound to another thread."""
        return ThreadGraph(self._graph, thread_id)

    async def snapshot(self, checkpoint_id: str | None = None) -> ThreadSnapshot:
        """Read the thread at its newest checkpoint, or at an older one."""
        stored = await self._graph.aget_state(self._config if checkpoint_id is None else self._at(checkpoint_id))
        if stored.created_at is None:
            return ThreadSnapshot(exists=False)
        return ThreadSnapshot(
            exists=True,
            checkpoint_id=stored.config["configurable"]["checkpoint_id"],
            open_nodes=tuple(task.name for task in stored.tasks if task.result is None),
            is_idle=stored.tasks == (),
            values=stored.values,
            parent_id=(stored.parent_config or {}).get("configurable", {}).get("checkpoint_id", ""),
            created_at=normalize_time(stored.created_at),
        )

    async def snapshot_at(self, time: str) -> ThreadSnapshot:
        """The thread at a time, on the way to its head; its first checkpoint if it began later."""
        snapshot = await self.snapshot()
        while snapshot.created_at > time and snapshot.parent_id:
            parent = await self.snapshot(snapshot.parent_id)
            if not parent.exists:
                break
            snapshot = parent
        return snapshot

    async def last_before(self, checkpoint_id: str) -> ThreadSnapshot:
        """The thread at the newest of its checkpoints, on any branch, that is older than this id of any thread."""
        async for stored in self._graph.aget_state_history(self._config, before=self._at(checkpoint_id), limit=1):
            return await self.snapshot(stored.config["configurable"]["checkpoint_id"])
        return ThreadSnapshot(exists=False)

    async def branch(self, checkpoint_id: str) -> None:
        """Make a copy of an older checkpoint the head, without anything that ran after it."""
        await self._graph.aupdate_state(self._at(checkpoint_id), None, as_node="__copy__")

    async def begin(self, update: Mapping[str, Any], context: RunContext) -> RunOutput:
        """Start a turn on an idle thread."""
        return await self._run(dict(update), context)

    async def resume(self, context: RunContext) -> RunOutput:
        """Run the pending tasks."""
        return await self._run(None, context)

    async def answer(self, envelope: Mapping[str, Any], context: RunContext) -> RunOutput:
        """Resume the graph with the answers to its questions."""
        return await self._run(Command(resume=dict(envelope)), context)

    def drain(self) -> None:
        """End the run before its next superstep."""
        self._is_draining = True
        self._control.request_drain("suspended")

    def _at(self, checkpoint_id: str) -> "RunnableConfig":
        return {"configurable": {**self._config["configurable"], "checkpoint_id": checkpoint_id}}

    async def _run(self, work: dict[str, Any] | Command[Any] | None, context: RunContext) -> RunOutput:
        self._control = RunControl()
        if self._is_draining:
            self._control.request_drain("suspended")
        try:
            values: dict[str, Any] = await self._graph.ainvoke(
                work,
                self._config,
                context=context,
                durability="sync",
                control=self._control,
            )
        except GraphDrained:
            return RunOutput({}, drained=True)
        interrupts = values.pop("__interrupt__", ())
        return RunOutput(values, interrupts[0].value if interrupts else None)


def last_answer(values: Mapping[str, Any]) -> str:
    """The answer of the turn: the result of its completion call, otherwise the model's newest text in it."""
    messages: list[BaseMessage] = values.get("messages") or []
    for message in reversed(messages):
        # Other calls of the same message may follow the completion call.
        if message.type == "tool" and message.name == COMPLETION_TOOL:
            return message.text
        if message.type != "tool":
            break
    for message in reversed(messages):
        if message.type == "ai" and message.text:
            return message.text
        if message.type == "human":
            break
    return ""


def turn_id_of(values: Mapping[str, Any]) -> str:
    """The id of the message that began the turn: the user's newest that was not added to a running turn."""
    messages: list[BaseMessage] = values.get("messages") or []
    for position in range(len(messages) - 1, -1, -1):
        is_first = position == 0 or messages[position - 1].type in ("ai", "system")
        if messages[position].type == "human" and is_first:
            return messages[position].id or ""
    return ""


def last_unmet(values: Mapping[str, Any]) -> str:
    """Why the request was not fulfilled, if the last reply of the turn says so."""
    messages: list[BaseMessage] = values.get("messages") or []
    return str(messages[-1].response_metadata.get(UNFULFILLED) or "") if messages else ""


def newest_call_ids(values: Mapping[str, Any]) -> list[str]:
    """The calls of the newest message in the model's order; none if that message is not the model's."""
    messages = values.get("messages") or []
    return [str(call["id"]) for call in messages[-1].tool_calls] if messages and messages[-1].type == "ai" else []


def open_calls(values: Mapping[str, Any]) -> list[str]:
    """The calls that are not final, including those of the newest message that have no record yet."""
    records = values.get("calls") or {}
    still_open = [call_id for call_id, call in records.items() if call["status"] not in FINAL]
    return [*still_open, *(call_id for call_id in newest_call_ids(values) if call_id not in records)]


def has_no_records(values: Mapping[str, Any]) -> bool:
    """Whether neither an open call nor any call of the newest message has a record yet."""
    records = values.get("calls") or {}
    return records.keys().isdisjoint([*open_calls(values), *newest_call_ids(values)])
