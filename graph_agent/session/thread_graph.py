"""One thread on the compiled graph: read where it stands, run it until it rests or asks. Decides nothing.

Which calls a stored state leaves open. Reads values only, whatever somebody may have written into them.
"""

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
]

_SUPERSTEPS = 1_000_000
"""The framework's own limit, out of the way: turns are limited by their steps."""


@dataclass(frozen=True, slots=True)
class ThreadSnapshot:
    """Where a thread stands on disk."""

    exists: bool
    checkpoint_id: str = ""
    open_nodes: tuple[str, ...] = ()
    """Nodes with a task that has no result yet; empty while `at_rest` is false means only results to take in."""
    at_rest: bool = True
    values: Mapping[str, Any] = field(default_factory=dict)
    parent_id: str = ""
    """The checkpoint before; empty for the first one."""
    created_at: str = ""
    """When the checkpoint was made, in the form of `Clock.now`."""

    @property
    def waits_for_model(self) -> bool:
        """Whether the only thing left open is the model request (failed, killed, or not sent yet)."""
        return bool(self.open_nodes) and set(self.open_nodes) <= {"__start__", "reasoning"}


@dataclass(frozen=True, slots=True)
class RunOutput:
    """What a run came back with."""

    values: Mapping[str, Any]
    question: Mapping[str, Any] | None = None
    """The question list of human_approval, where the run waits for answers."""
    drained: bool = False
    """The run was asked to end between two supersteps and did."""


class ThreadGraph:
    """The graph, bound to one thread."""

    def __init__(self, graph: "CompiledStateGraph[Any, RunContext, Any, Any]", thread_id: str) -> None:
        self._graph = graph
        self._config: RunnableConfig = {
            "configurable": {"thread_id": thread_id},
            "recursion_limit": _SUPERSTEPS,
        }
        self._control = RunControl()
        self._is_draining = False

    async def position(self, checkpoint_id: str | None = None) -> ThreadSnapshot:
        """Read where the thread stands, or stood at an older checkpoint."""
        snapshot = await self._graph.aget_state(self._config if checkpoint_id is None else self._at(checkpoint_id))
        if snapshot.created_at is None:
            return ThreadSnapshot(exists=False)
        return ThreadSnapshot(
            exists=True,
            checkpoint_id=snapshot.config["configurable"]["checkpoint_id"],
            open_nodes=tuple(task.name for task in snapshot.tasks if task.result is None),
            at_rest=snapshot.tasks == (),
            values=snapshot.values,
            parent_id=(snapshot.parent_config or {}).get("configurable", {}).get("checkpoint_id", ""),
            created_at=normalize_time(snapshot.created_at),
        )

    async def position_at(self, time: str) -> ThreadSnapshot:
        """Where the thread stood at a time, on the way to its head; where that began later, its beginning."""
        there = await self.position()
        while there.created_at > time and there.parent_id:
            before = await self.position(there.parent_id)
            if not before.exists:
                break
            there = before
        return there

    def of(self, thread_id: str) -> "ThreadGraph":
        """The same graph, bound to another thread."""
        return ThreadGraph(self._graph, thread_id)

    async def branch(self, checkpoint_id: str) -> None:
        """Make a copy of an older checkpoint the head; nothing that ran from there later is taken over."""
        await self._graph.aupdate_state(self._at(checkpoint_id), None, as_node="__copy__")

    async def begin(self, update: Mapping[str, Any], life: RunContext) -> RunOutput:
        """Start a turn on a thread at rest."""
        return await self._run(dict(update), life)

    async def resume(self, life: RunContext) -> RunOutput:
        """Run what is open."""
        return await self._run(None, life)

    async def answer(self, envelope: Mapping[str, Any], life: RunContext) -> RunOutput:
        """Hand the answers to the question the thread waits with."""
        return await self._run(Command(resume=dict(envelope)), life)

    def stop_new_work(self) -> None:
        """Let the run end before its next superstep."""
        self._is_draining = True
        self._control.request_drain("suspended")

    def _at(self, checkpoint_id: str) -> "RunnableConfig":
        return {"configurable": {**self._config["configurable"], "checkpoint_id": checkpoint_id}}

    async def _run(self, work: dict[str, Any] | Command[Any] | None, life: RunContext) -> RunOutput:
        self._control = RunControl()
        if self._is_draining:
            self._control.request_drain("suspended")
        try:
            values: dict[str, Any] = await self._graph.ainvoke(
                work,
                self._config,
                context=life,
                durability="sync",
                control=self._control,
            )
        except GraphDrained:
            return RunOutput({}, drained=True)
        interrupts = values.pop("__interrupt__", ())
        return RunOutput(values, interrupts[0].value if interrupts else None)


def last_answer(values: Mapping[str, Any]) -> str:
    """What the turn came to: the result declared with its completion, else the newest text of the model in it."""
    messages: list[BaseMessage] = values.get("messages") or []
    for message in reversed(messages):
        # Other calls of the same message may stand behind it.
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


def last_unmet(values: Mapping[str, Any]) -> str:
    """Why what was asked was not done, where the reply that the turn ended with knows."""
    messages: list[BaseMessage] = values.get("messages") or []
    return str(messages[-1].response_metadata.get(UNFULFILLED) or "") if messages else ""


def newest_call_ids(values: Mapping[str, Any]) -> list[str]:
    """The calls of the newest message, in the model's order; none where it is not the model's."""
    messages = values.get("messages") or []
    return [str(call["id"]) for call in messages[-1].tool_calls] if messages and messages[-1].type == "ai" else []


def open_calls(values: Mapping[str, Any]) -> list[str]:
    """The calls without an end, those of the newest message that have no record yet among them."""
    records = values.get("calls") or {}
    still_open = [call_id for call_id, call in records.items() if call["status"] not in FINAL]
    return [*still_open, *(call_id for call_id in newest_call_ids(values) if call_id not in records)]


def has_no_records(values: Mapping[str, Any]) -> bool:
    """Whether no open call has a record yet, nor any other of the newest message."""
    records = values.get("calls") or {}
    return records.keys().isdisjoint([*open_calls(values), *newest_call_ids(values)])
