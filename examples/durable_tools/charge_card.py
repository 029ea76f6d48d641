"""Charge a card, be killed, resume: `python charge_card.py pay`, then `resume`, then `done "receipt 4711"`.

Needs: pip install graph-agent langgraph-checkpoint-sqlite
"""

import os
import signal
import sqlite3
import sys
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph

from graph_agent.durable import DurableTools, Journal, ToolPolicy, answer

CONFIG: RunnableConfig = {"configurable": {"thread_id": "order-7"}}
CHARGES = Path("charges.txt")


@tool
def charge_card(order: int, amount: str) -> str:
    """Charge the card of an order."""
    with CHARGES.open("a") as file:
        file.write(f"order {order}: {amount}\n")
    if not Path("killed").exists():
        Path("killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)  # The worst moment: charged, and nobody knows.
    return f"charged {amount}"


@tool
def look_up(order: int) -> str:
    """Look up what an order costs."""
    return f"order {order}: 49.00"


def model(state: MessagesState) -> dict[str, Any]:
    """Stands in for a chat model with bound tools."""
    said = sum(isinstance(message, AIMessage) for message in state["messages"])
    calls = [("look_up", {"order": 7}), ("charge_card", {"order": 7, "amount": "49.00"})][said : said + 1]
    asked: list[Any] = [{"name": name, "args": arguments, "id": f"call_{said}"} for name, arguments in calls]
    return {"messages": [AIMessage("" if asked else "The order is paid.", tool_calls=asked)]}


def route(state: MessagesState) -> str:
    """Whether the model asks for tools."""
    last = state["messages"][-1]
    return "tools" if isinstance(last, AIMessage) and last.tool_calls else END


def build(saver: SqliteSaver) -> Any:
    """The graph; `tools` is the only node that differs from a graph with ToolNode."""
    tools = DurableTools(
        [charge_card, look_up],
        journal=Journal("journal.sqlite"),
        policies={"look_up": ToolPolicy(read_only=True), "charge_card": ToolPolicy(on_unknown="ask")},
    )
    builder = StateGraph(MessagesState)
    builder.add_node("model", model)
    builder.add_node("tools", tools)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", route, ["tools", END])
    builder.add_edge("tools", "model")
    return builder.compile(checkpointer=saver)


def main(command: str, result: str = "") -> None:
    """Start the thread, resume it, or answer the question about the call."""
    graph = build(SqliteSaver(sqlite3.connect("checkpoints.sqlite", check_same_thread=False)))
    work: Any = {"messages": [HumanMessage("Pay order 7.")]} if command == "pay" else None
    if command in ("retry", "done", "cancel"):
        asked = graph.get_state(CONFIG)
        work = answer(asked, {"call_1": {"kind": command, "result": result}}, by="me")
    state = graph.invoke(work, CONFIG, durability="sync")
    for interrupt in state.get("__interrupt__", ()):
        print("\n".join(question["text"] for question in interrupt.value["questions"]))
    if "__interrupt__" not in state:
        print("\n".join(f"{message.type}: {message.text}" for message in state["messages"] if message.text))
    print(f"charges: {len(CHARGES.read_text().splitlines())}")


if __name__ == "__main__":
    main(*sys.argv[1:])
