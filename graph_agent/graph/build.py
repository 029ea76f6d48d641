"""Build the compiled graph from the nodes and the edge table."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any
from weakref import WeakSet

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import END as GRAPH_END
from langgraph.graph import START as GRAPH_START
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, Send, interrupt

from graph_agent.errors import UsageError
from graph_agent.events import EventBus, WarningIssued
from graph_agent.graph import edges
from graph_agent.graph.auto_mode import CallReviewer
from graph_agent.graph.clients import ObservedModel, stream_events_to
from graph_agent.graph.compaction import Compaction
from graph_agent.graph.human_approval import HumanApproval
from graph_agent.graph.observation import Observation
from graph_agent.graph.reasoning import Reasoning
from graph_agent.graph.run_context import GraphPosition, RunContext, Step
from graph_agent.graph.state import AgentState, CallTask
from graph_agent.graph.tool_execution import ToolExecution
from graph_agent.graph.tool_routing import ToolRouting
from graph_agent.ports import Barrier, Blobs, ChatModel, Clock, Decisions, Journal, Toolbox
from graph_agent.ports.background import BackgroundShells, NoShells
from graph_agent.ports.model import (
    FindContextWindow,
    FindUnusedRequests,
    assumed_context_window,
    no_unused_requests,
)
from graph_agent.ports.toolbox import NO_EARLY_READS, EarlyReads, Hooks
from graph_agent.ports.usage import UNPRICED, Meter

__all__ = ["AgentGraph", "GraphDependencies", "Saver", "SaverBarrier", "build_graph"]


AgentGraph = CompiledStateGraph[AgentState, RunContext, Any, Any]
Saver = BaseCheckpointSaver[Any]
_Node = Callable[[Any, RunContext, GraphPosition], Awaitable[Step]]
_FRAMEWORK_NAMES = {edges.END: GRAPH_END}


@dataclass(frozen=True, slots=True)
class GraphDependencies:
    """The implementations of the ports that the nodes need."""

    model: ChatModel
    toolbox: Toolbox
    journal: Journal
    barrier: Barrier
    """Of the program's own saver; a run on another one asks that one."""
    clock: Clock
    bus: EventBus
    instructions: Callable[[], str]
    find_context_window: FindContextWindow = assumed_context_window
    blobs: Blobs | None = None
    """Where results are kept that leave the context."""
    ensure_lock: Callable[[str], Awaitable[None]] | None = None
    """Awaited with the thread's id before each node; raises where another process has the thread.

    None: a session locks its thread before it runs the graph.
    """
    meter: Meter = UNPRICED
    early_reads: EarlyReads = NO_EARLY_READS
    unused_requests: FindUnusedRequests = no_unused_requests
    has_auto_mode: bool = False
    """Whether the model reviews calls in mode auto; else they need approval."""
    is_sub_agent: bool = False
    """See `Reasoning`."""
    shells: BackgroundShells = field(default_factory=NoShells)
    hooks: Hooks | None = None
    decisions: Decisions | None = None
    """Answers from other processes, for runs without a session, which finds them itself."""


def build_graph(parts: GraphDependencies, checkpointer: Saver | None = None) -> AgentGraph:
    """Compile the graph. Without a checkpointer it takes the one of its runner, as LangGraph's server needs it."""
    model, toolbox, journal, bus = ObservedModel(parts.model), parts.toolbox, parts.journal, parts.bus
    compaction = Compaction(model, journal, bus, parts.find_context_window, parts.blobs, parts.meter)
    nodes: dict[str, _Node] = {
        "reasoning": Reasoning(
            model=model,
            toolbox=toolbox,
            journal=journal,
            bus=bus,
            instructions=parts.instructions,
            compaction=compaction,
            meter=parts.meter,
            early_reads=parts.early_reads,
            unused_requests=parts.unused_requests,
            reviewer=CallReviewer(model, toolbox, parts.meter, parts.find_context_window)
            if parts.has_auto_mode
            else None,
            shells=parts.shells,
            is_sub_agent=parts.is_sub_agent,
        ),
        "tool_routing": ToolRouting(toolbox, parts.clock, bus, parts.hooks),
        "human_approval": HumanApproval(toolbox, parts.clock, bus, interrupt, parts.hooks, parts.decisions),
        "tool_execution": ToolExecution(toolbox, journal, parts.clock, bus, parts.hooks),
        "observation": Observation(),
    }
    builder = StateGraph(AgentState, context_schema=RunContext)
    for name in edges.NODES:
        builder.add_node(
            name,
            _graph_node(name, nodes[name], parts),
            input_schema=CallTask if name == "tool_execution" else AgentState,
            destinations=tuple(_FRAMEWORK_NAMES.get(target, target) for target in edges.targets_of(name)),
        )
    for target in edges.targets_of(edges.START):
        builder.add_edge(GRAPH_START, target)
    return builder.compile(checkpointer=checkpointer)


def _graph_node(name: str, node: _Node, parts: GraphDependencies) -> Callable[..., Awaitable[Command[Any]]]:
    async def run(state: Any, runtime: Runtime[RunContext], config: RunnableConfig) -> Command[Any]:
        context: RunContext | None = runtime.context
        here = _position(runtime, config, parts)
        if context is None or not context.has_session:
            # LangGraph's server sends a context, and so may its clients: nothing in it comes from a session.
            context = RunContext()
            stream_events_to(runtime.stream_writer, parts.bus)
        if parts.ensure_lock is not None:
            await parts.ensure_lock(here.thread_id)
        step = await node(state, context, here)
        target = edges.TARGETS[name, step.outcome]
        sends = [Send(target, dict(task)) for task in step.tasks]
        return Command(update=step.update, goto=sends or _FRAMEWORK_NAMES.get(target, target))

    run.__name__ = name
    return run


def _position(runtime: Runtime[RunContext], config: RunnableConfig, parts: GraphDependencies) -> GraphPosition:
    """Where a node runs, and how to find out whether the checkpoint of it is on disk.

    Raises:
        UsageError: the run has no thread id.
    """
    info = runtime.execution_info
    thread_id = (info.thread_id if info else None) or ""
    if info is None or not thread_id:
        raise UsageError(
            "The run has no thread id, under which its calls are recorded. Give it one: "
            'graph.ainvoke(..., {"configurable": {"thread_id": "..."}}).'
        )
    namespace = info.checkpoint_ns.rpartition("|")[0]  # The last part is that of the node.
    inner = config["configurable"]
    saver = inner.get(_SAVER)
    key = f"{thread_id}-{sha256(namespace.encode()).hexdigest()[:12]}" if namespace else thread_id
    if isinstance(saver, BaseCheckpointSaver) and inner.get(_DURABILITY) != "exit":
        barrier = parts.barrier if parts.barrier.proves(saver) else SaverBarrier(saver)
        is_stored = partial(barrier.wait, thread_id, info.checkpoint_id, namespace)
        return GraphPosition(key, info.checkpoint_id, is_stored)
    _warn_of_missing_proof(parts.bus, has_saver=isinstance(saver, BaseCheckpointSaver))
    return GraphPosition(key, info.checkpoint_id)


_SAVER, _DURABILITY = "__pregel_checkpointer", "__pregel_durability"
"""Where LangGraph keeps the saver and the durability of a run for its nodes; it has no public name for them."""
_POLL_S = 0.02
_warned: "WeakSet[EventBus]" = WeakSet()


@dataclass(frozen=True, slots=True)
class SaverBarrier:
    """The port `Barrier` for any saver: a checkpoint is stored as soon as the saver gives it back."""

    saver: Saver
    timeout_s: float = 5.0

    def proves(self, saver: object) -> bool:
        """See the port."""
        return saver is self.saver

    async def wait(self, thread_id: str, checkpoint_id: str, namespace: str = "") -> bool:
        """See the port."""
        names = {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}
        give_up = time.monotonic() + self.timeout_s
        while await self.saver.aget_tuple({"configurable": names}) is None:
            if time.monotonic() >= give_up:
                return False
            await asyncio.sleep(_POLL_S)
        return True


def _warn_of_missing_proof(bus: EventBus, *, has_saver: bool) -> None:
    if bus in _warned:
        return
    _warned.add(bus)
    why = 'durability="exit" saves checkpoints only at the end' if has_saver else "the graph has no checkpointer"
    text = (
        f"This run cannot be resumed after a crash: {why}. Compile the graph with a checkpointer and use "
        'durability="sync". The journal still prevents a call with the same id from running twice.'
    )
    bus.publish(WarningIssued(text))
