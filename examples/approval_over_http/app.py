"""Approve tool calls over HTTP: `uvicorn app:app`. The server may be killed at any time; no question is lost.

Needs: pip install graph-agent fastapi uvicorn langgraph-checkpoint-sqlite
"""

import asyncio
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, HTTPException
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from pydantic import BaseModel

from graph_agent.durable import DurableTools, Journal, ToolPolicy, answer
from graph_agent.errors import AgentError

TRANSFERS = Path("transfers.txt")


class Work(BaseModel):
    """What a run begins with; neither of the two continues what a killed server left."""

    text: str = ""
    answers: dict[str, Any] = {}


@tool
def transfer(to: str, amount: int) -> str:
    """Transfer money."""
    with TRANSFERS.open("a") as file:
        file.write(f"{to} {amount}\n")
    time.sleep(1)
    return f"transferred {amount} to {to}"


def model(state: MessagesState) -> dict[str, Any]:
    """Stands in for a chat model with bound tools: "pay NAME AMOUNT" becomes a call."""
    last = state["messages"][-1]
    if not isinstance(last, HumanMessage):
        return {"messages": [AIMessage(f"Done: {last.text}")]}
    _, name, amount = last.text.split()
    call = {"name": "transfer", "args": {"to": name, "amount": int(amount)}, "id": f"call_{len(state['messages'])}"}
    return {"messages": [AIMessage("", tool_calls=[call])]}


def route(state: MessagesState) -> str:
    """Whether the model asks for tools."""
    last = state["messages"][-1]
    return "tools" if isinstance(last, AIMessage) and last.tool_calls else END


def build(saver: AsyncSqliteSaver) -> Any:
    """The graph; every transfer needs an approval."""
    tools = DurableTools(
        [transfer], journal=Journal("journal.sqlite"), policies={"transfer": ToolPolicy(approve=True)}
    )
    builder = StateGraph(MessagesState)
    builder.add_node("model", model)
    builder.add_node("tools", tools)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", route, ["tools", END])
    builder.add_edge("tools", "model")
    return builder.compile(checkpointer=saver)


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Open the checkpoints while the server runs."""
    async with AsyncSqliteSaver.from_conn_string("checkpoints.sqlite") as saver:
        app.state.graph, app.state.locks = build(saver), defaultdict(asyncio.Lock)
        yield


app = FastAPI(lifespan=lifespan)


@app.get("/threads/{thread}")
async def show(thread: str) -> dict[str, Any]:
    """The conversation, and what waits for an answer."""
    state = await app.state.graph.aget_state(_config(thread))
    questions = [question for one in state.interrupts for question in one.value["questions"]]
    return {
        "status": "waiting" if questions else "unfinished" if state.tasks else "idle",
        "questions": questions,
        "messages": [f"{one.type}: {one.text}" for one in state.values.get("messages", []) if one.text],
    }


@app.post("/threads/{thread}/run")
async def run(thread: str, work: Work) -> dict[str, Any]:
    """Start a turn, answer questions by call id, or continue."""
    graph, config = app.state.graph, _config(thread)
    async with app.state.locks[thread]:
        state = await graph.aget_state(config)
        if work.text and state.tasks:
            raise HTTPException(409, "This thread is not idle. Answer its questions, or send {} to continue it.")
        try:
            begun = {"messages": [HumanMessage(work.text)]} if work.text else None
            begun_or_answered = answer(state, work.answers, by="http") if work.answers else begun
            if begun_or_answered is not None or state.tasks:
                await graph.ainvoke(begun_or_answered, config, durability="sync")
        except AgentError as error:
            raise HTTPException(409, str(error)) from error
    return await show(thread)


def _config(thread: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread}}
