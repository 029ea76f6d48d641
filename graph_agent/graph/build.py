"""Build the compiled graph from the nodes and the edge table."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langgraph.graph import END as GRAPH_END
from langgraph.graph import START as GRAPH_START
from langgraph.graph import StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, Send, interrupt

from graph_agent.events import EventBus
from graph_agent.graph import edges
from graph_agent.graph.auto_mode import CallReviewer
from graph_agent.graph.compaction import Compaction
from graph_agent.graph.human_approval import HumanApproval
from graph_agent.graph.observation import Observation
from graph_agent.graph.reasoning import Reasoning
from graph_agent.graph.run_context import GraphPosition, RunContext, Step
from graph_agent.graph.state import AgentState, CallTask
from graph_agent.graph.tool_execution import ToolExecution
from graph_agent.graph.tool_routing import ToolRouting
from graph_agent.ports import Barrier, Blobs, ChatModel, Clock, Journal, Toolbox
from graph_agent.ports.background import BackgroundShells, NoShells
from graph_agent.ports.model import FindContextWindow, assumed_context_window
from graph_agent.ports.toolbox import NO_EARLY_READS, EarlyReads, Hooks
from graph_agent.ports.usage import UNPRICED, Meter

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver
    from langgraph.graph.state import CompiledStateGraph

__all__ = ["GraphDependencies", "build_graph"]


_Node = Callable[[Any, RunContext, GraphPosition], Awaitable[Step]]
_FRAMEWORK_NAMES = {edges.END: GRAPH_END}


@dataclass(frozen=True, slots=True)
class GraphDependencies:
    """The implementations of the ports that the nodes need."""

    model: ChatModel
    toolbox: Toolbox
    journal: Journal
    barrier: Barrier
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
    has_auto_mode: bool = False
    """Whether the model reviews calls in mode auto; else they need approval."""
    is_sub_agent: bool = False
    """See `Reasoning`."""
    shells: BackgroundShells = field(default_factory=NoShells)
    hooks: Hooks | None = None


def build_graph(
    parts: GraphDependencies, checkpointer: "BaseCheckpointSaver[str] | None" = None
) -> "CompiledStateGraph[AgentState, RunContext, Any, Any]":
    """Compile the graph. Without a checkpointer it takes the one of its runner, as LangGraph's server needs it."""
    model, toolbox, journal, bus = parts.model, parts.toolbox, parts.journal, parts.bus
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
            reviewer=CallReviewer(model, toolbox, parts.meter) if parts.has_auto_mode else None,
            shells=parts.shells,
            is_sub_agent=parts.is_sub_agent,
        ),
        "tool_routing": ToolRouting(toolbox, parts.clock, bus, parts.hooks),
        "human_approval": HumanApproval(toolbox, parts.clock, bus, interrupt, parts.hooks),
        "tool_execution": ToolExecution(toolbox, journal, parts.barrier, parts.clock, bus, parts.hooks),
        "observation": Observation(),
    }
    builder = StateGraph(AgentState, context_schema=RunContext)
    for name in edges.NODES:
        builder.add_node(
            name,
            _graph_node(name, nodes[name], parts.ensure_lock),
            input_schema=CallTask if name == "tool_execution" else AgentState,
            destinations=tuple(_FRAMEWORK_NAMES.get(target, target) for target in edges.targets_of(name)),
        )
    for target in edges.targets_of(edges.START):
        builder.add_edge(GRAPH_START, target)
    return builder.compile(checkpointer=checkpointer)


def _graph_node(
    name: str, node: _Node, ensure_lock: Callable[[str], Awaitable[None]] | None
) -> Callable[..., Awaitable[Command[Any]]]:
    async def run(state: Any, runtime: Runtime[RunContext]) -> Command[Any]:
        info = runtime.execution_info
        here = GraphPosition(info.thread_id or "", info.checkpoint_id) if info else GraphPosition("", "")
        context: RunContext | None = runtime.context  # None under LangGraph's own server
        if ensure_lock is not None:
            await ensure_lock(here.thread_id)
        step = await node(state, context or RunContext(), here)
        target = edges.TARGETS[name, step.outcome]
        sends = [Send(target, dict(task)) for task in step.tasks]
        return Command(update=step.update, goto=sends or _FRAMEWORK_NAMES.get(target, target))

    run.__name__ = name
    return run
