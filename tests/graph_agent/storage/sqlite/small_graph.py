"""A small graph over the product's own state: a question, two parallel calls, a join; for tests of the saver."""

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Send, interrupt

from graph_agent.calls import NEW_MESSAGE
from graph_agent.graph.state import AgentState, CallTask
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver

__all__ = ["Graph", "compile_graph", "config_of", "empty_checkpoint", "play_turn", "put_checkpoint"]

Graph = CompiledStateGraph[Any, Any, Any, Any]


def ask_model(state: AgentState) -> dict[str, Any]:
    turn = sum(message.type == "human" for message in state["messages"])
    ids = [f"call-{turn}-{name}" for name in "zyx"]
    message = AIMessage(
        "", id=f"reply-{turn}", tool_calls=[{"id": call_id, "name": "read_file", "args": {}} for call_id in ids]
    )
    records: dict[str, Any] = {
        call_id: {
            "call_id": call_id,
            "tool_name": "read_file",
            "arguments": {},
            "status": "awaiting_approval",
            "result": None,
            "error_msg": None,
            "attempt": 1,
            "risk": "low",
        }
        for call_id in ids
    }
    return {"messages": message, "calls": {NEW_MESSAGE: {}, **records}, "turn": {"steps": 1}}


def ask_person(state: AgentState) -> dict[str, Any]:
    interrupt({"ids": list(state["calls"])})
    return {"calls": {call_id: {"status": "pending"} for call_id in state["calls"]}}


def mark(state: AgentState) -> dict[str, Any]:
    return {"calls": {call_id: {"status": "executing"} for call_id in state["calls"]}}


def send(state: AgentState) -> list[Send]:
    return [Send("run", {"call": call}) for call in state["calls"].values()]


def run(state: CallTask) -> dict[str, Any]:
    return {"calls": {state["call"]["call_id"]: {"status": "success", "result": "read"}}}


def observe(state: AgentState) -> dict[str, Any]:
    answers = [
        ToolMessage("read", tool_call_id=call_id, id=f"answer-{call_id}", name="read_file")
        for call_id in state["calls"]
    ]
    return {"messages": answers, "turn": {"steps": 1, "outcome": "done"}}


def compile_graph(saver: CheckpointSaver) -> Graph:
    """The graph, checkpointed by the saver."""
    graph = StateGraph(AgentState)
    for node in (ask_model, ask_person, mark, observe):
        graph.add_node(node.__name__, node)
    graph.add_node("run", run, input_schema=CallTask)
    graph.add_edge(START, "ask_model")
    graph.add_edge("ask_model", "ask_person")
    graph.add_edge("ask_person", "mark")
    graph.add_conditional_edges("mark", send, ["run"])
    graph.add_edge("run", "observe")
    graph.add_edge("observe", END)
    return graph.compile(checkpointer=saver)


def config_of(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id}}


async def play_turn(graph: Graph, thread_id: str, text: str, *, answer: bool = True) -> None:
    """Send a message, and answer the question that comes of it."""
    config = config_of(thread_id)
    message = HumanMessage(text, id=f"message {text}")
    await graph.ainvoke({"messages": [message]}, config, durability="sync")
    if answer:
        await graph.ainvoke(Command(resume={"by": "test"}), config, durability="sync")


def empty_checkpoint(number: int) -> Any:
    """A checkpoint of nothing, which sorts by its number."""
    maps: Any = {"channel_values": {}, "channel_versions": {}, "versions_seen": {}}
    return {"v": 4, "id": str(number), "ts": "2026-01-01T00:00:00+00:00", **maps}


async def put_checkpoint(saver: CheckpointSaver, parent: Any = None) -> Any:
    """Store an empty one behind its parent, the first of thread `t` without one; returns its configuration."""
    number = 1 if parent is None else int(parent["configurable"]["checkpoint_id"]) + 1
    metadata: Any = {"source": "loop", "step": number}
    return await saver.aput(parent or config_of("t"), empty_checkpoint(number), metadata, {})
