"""A graph for LangGraph Studio: `langgraph dev` shows its questions, and takes the answers of its own forms.

Needs: pip install graph-agent 'langgraph-cli[inmem]'
"""

import os
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph

from graph_agent.durable import DurableTools, Journal, ToolPolicy

FOLDER = Path(os.environ.get("LIGHTS_FOLDER", "."))


@tool
def switch(room: str, on: bool) -> str:
    """Switch the light of a room."""
    with (FOLDER / "switched.txt").open("a") as file:
        file.write(f"{room} {'on' if on else 'off'}\n")
    return f"{room} is {'on' if on else 'off'}"


def model(state: MessagesState) -> dict[str, Any]:
    """Stands in for a chat model with bound tools: it switches on the light of the room that a message names."""
    last = state["messages"][-1]
    if not isinstance(last, HumanMessage):
        return {"messages": [AIMessage(f"Done: {last.text}")]}
    call = {"name": "switch", "args": {"room": last.text, "on": True}, "id": f"call_{len(state['messages'])}"}
    return {"messages": [AIMessage("", tool_calls=[call])]}


def route(state: MessagesState) -> str:
    """Whether the model asks for tools."""
    last = state["messages"][-1]
    return "tools" if isinstance(last, AIMessage) and last.tool_calls else END


tools = DurableTools(
    [switch], journal=Journal(FOLDER / "journal.sqlite"), policies={"switch": ToolPolicy(approve=True)}
)
builder = StateGraph(MessagesState)
builder.add_node("model", model)
builder.add_node("tools", tools)
builder.add_edge(START, "model")
builder.add_conditional_edges("model", route, ["tools", END])
builder.add_edge("tools", "model")
graph = builder.compile()  # Without a checkpointer: the server brings its own.
