"""Two sub-graphs order at once, are killed and resumed: `python orders.py start`, then `resume`, then `done`.

Needs: pip install graph-agent langgraph-checkpoint-sqlite
"""

import operator
import os
import signal
import sqlite3
import sys
import time
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import Send

from graph_agent.durable import DurableTools, Journal, answer

CONFIG: RunnableConfig = {"configurable": {"thread_id": "orders"}}
ORDERS = Path("orders.txt")
SHOPS = ("bakery", "dairy")


@tool
def order(shop: str) -> str:
    """Order breakfast."""
    with ORDERS.open("a") as file:
        file.write(f"{shop}\n")
    if shop == SHOPS[-1] and not Path("killed").exists():
        Path("killed").touch()
        time.sleep(1)  # The other shop is done by now.
        os.kill(os.getpid(), signal.SIGKILL)  # The worst moment: ordered, and nobody knows.
    return f"the {shop} delivers at 7"


class Breakfast(TypedDict):
    """The state of the whole graph."""

    answers: Annotated[list[str], operator.add]


def model(state: MessagesState) -> dict[str, Any]:
    """Stands in for a chat model with bound tools."""
    last = state["messages"][-1]
    if not isinstance(last, HumanMessage):
        return {"messages": [AIMessage(last.text)]}
    call = {"name": "order", "args": {"shop": last.text}, "id": f"order_{last.text}"}
    return {"messages": [AIMessage("", tool_calls=[call])]}


def route(state: MessagesState) -> str:
    """Whether the model asks for tools."""
    last = state["messages"][-1]
    return "tools" if isinstance(last, AIMessage) and last.tool_calls else END


def build(saver: SqliteSaver) -> Any:
    """A graph that runs the same sub-graph once for each shop, at the same time."""
    shop = StateGraph(MessagesState)
    shop.add_node("model", model)
    shop.add_node("tools", DurableTools([order], journal=Journal("journal.sqlite")))
    shop.add_edge(START, "model")
    shop.add_conditional_edges("model", route, ["tools", END])
    shop.add_edge("tools", "model")
    agent = shop.compile()

    def ask(state: MessagesState) -> dict[str, Any]:
        messages: list[AnyMessage] = agent.invoke(state)["messages"]
        return {"answers": [messages[-1].text]}

    whole = StateGraph(Breakfast)
    whole.add_node("ask", ask)
    whole.add_conditional_edges(
        START, lambda _: [Send("ask", {"messages": [HumanMessage(name)]}) for name in SHOPS], ["ask"]
    )
    whole.add_edge("ask", END)
    return whole.compile(checkpointer=saver)


def main(command: str) -> None:
    """Start the thread, resume it, or answer every open question in the same way."""
    graph = build(SqliteSaver(sqlite3.connect("checkpoints.sqlite", check_same_thread=False)))
    work: Any = {"answers": []} if command == "start" else None
    if command in ("retry", "done", "cancel"):
        asked = graph.get_state(CONFIG)
        ids = [question["call_id"] for one in asked.interrupts for question in one.value["questions"]]
        work = answer(asked, dict.fromkeys(ids, command), by="me")
    state = graph.invoke(work, CONFIG, durability="sync")
    for interrupt in state.get("__interrupt__", ()):
        print("\n".join(question["text"] for question in interrupt.value["questions"]))
    if "__interrupt__" not in state:
        print("\n".join(state["answers"]))
    print(f"orders: {', '.join(sorted(ORDERS.read_text().split()))}")


if __name__ == "__main__":
    main(sys.argv[1])
