"""Graphs of other people, built with LangGraph and LangChain alone, with and without durable tool calls."""

import asyncio
import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal, get_args

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Interrupt

from graph_agent.durable import DurableToolMiddleware, DurableTools, Journal, ToolPolicy, durable
from tests.fakes.postgres_server import PostgresServer

__all__ = [
    "KINDS",
    "START_MESSAGE",
    "Kind",
    "ScriptedChat",
    "ask_for",
    "charge_tool",
    "empty_journal",
    "foreign_graph",
    "history_faults",
    "open_saver",
    "questions_of",
    "two_routers",
]


Kind = Literal["tool node", "agent", "sub-graph"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Point = Callable[[str], None]


def empty_journal(server: PostgresServer) -> str:
    """The URL of a new database with the tables of a journal."""
    url = server.create_database()
    journal = Journal(url)
    journal.rounds("")
    journal.close()
    return url


def ask_for(*calls: tuple[str, Mapping[str, Any], str]) -> AIMessage:
    """A message of the model that asks for calls, each a tool, its arguments and an id."""
    return AIMessage(
        "", tool_calls=[{"name": name, "args": dict(args), "id": call_id} for name, args, call_id in calls]
    )


class ScriptedChat(BaseChatModel):
    """Says the next message of a script that the conversation does not hold yet."""

    script: list[AIMessage]
    point: Any = None

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def next(self, messages: Sequence[Any]) -> AIMessage:
        """The reply to a conversation."""
        said = sum(isinstance(message, AIMessage) for message in messages)
        return self.script[said] if said < len(self.script) else AIMessage("done")

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        if self.point:
            self.point("model")
        return ChatResult(generations=[ChatGeneration(message=self.next(messages))])


def charge_tool(effects: Path, point: Point = lambda _: None) -> BaseTool:
    """A tool with an effect that can be counted from outside: one line in a file."""

    def charge(card: str) -> str:
        """Charge a card."""
        point("before effect")
        line = os.open(effects, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(line, f"{card}\n".encode())
        os.close(line)
        point("after effect")
        return f"charged {card}"

    async def acharge(card: str) -> str:
        await asyncio.sleep(0)  # So that the calls of one message run at the same time.
        return charge(card)

    return StructuredTool.from_function(charge, acharge)


def open_saver(path: Path, kind: type[SqliteSaver] = SqliteSaver) -> SqliteSaver:
    """LangGraph's own saver over a file."""
    return kind(sqlite3.connect(path, check_same_thread=False))


def foreign_graph(
    kind: Kind,
    script: list[AIMessage],
    tools: list[BaseTool],
    saver: Any,
    journal: Journal | None,
    policy: ToolPolicy | None = None,
    *,
    middleware: Sequence[AgentMiddleware[Any, Any, Any]] = (),
) -> Any:
    """A compiled graph; without a journal as it is written today. An agent may have middleware of its own."""
    model = ScriptedChat(script=script)
    policies = {one.name: policy or ToolPolicy() for one in tools}
    if kind == "agent":
        ours = [DurableToolMiddleware(journal, policies=policies)] if journal else []
        return create_agent(model, tools, middleware=[*ours, *middleware], checkpointer=saver)
    if journal is None:
        node: Any = ToolNode(tools)
    elif kind == "tool node":
        node = DurableTools(tools, journal=journal, policies=policies)
    else:
        node = ToolNode([durable(one, journal, policy) for one in tools])
    builder = StateGraph(MessagesState)
    builder.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    builder.add_node("tools", node)
    builder.add_edge(START, "model")
    builder.add_conditional_edges(
        "model", lambda state: "tools" if state["messages"][-1].tool_calls else END, ["tools", END]
    )
    builder.add_edge("tools", "model")
    if kind == "tool node":
        return builder.compile(checkpointer=saver)
    parent = StateGraph(MessagesState)
    parent.add_node("worker", builder.compile())
    parent.add_edge(START, "worker")
    return parent.compile(checkpointer=saver)


def two_routers(
    tools: ToolNode, saver: Any, *, fails_after: Literal["model", "tools"], is_part: bool
) -> tuple[Any, list[str]]:
    """A graph, alone or as part of another, with an edge that raises once; and what ran, in order.

    Its model counts the ids of its calls up, as a real one never repeats an id.
    """
    ran: list[str] = []
    ids, failures = count(1), iter([ConnectionError("the edge has no network")])

    def model(state: MessagesState) -> dict[str, Any]:
        ran.append("model")
        said = isinstance(state["messages"][-1], ToolMessage)
        return {"messages": [AIMessage("done") if said else ask_for(("charge", {"card": "a"}, f"c{next(ids)}"))]}

    def route(node: str, state: MessagesState) -> str:
        ran.append(f"after {node}")
        if node == fails_after and (failure := next(failures, None)):
            raise failure
        asks = isinstance(one := state["messages"][-1], AIMessage) and one.tool_calls
        return "model" if node == "tools" else "tools" if asks else END

    builder = StateGraph(MessagesState)
    builder.add_node("model", model)
    builder.add_node("tools", tools)
    builder.add_edge(START, "model")
    for node in ("model", "tools"):
        builder.add_conditional_edges(node, partial(route, node), ["model", "tools", END])
    if not is_part:
        return builder.compile(checkpointer=saver), ran
    parent = StateGraph(MessagesState)
    parent.add_node("worker", builder.compile())
    parent.add_edge(START, "worker")
    return parent.compile(checkpointer=saver), ran


def history_faults(messages: Sequence[AnyMessage]) -> list[str]:
    """What a strict model server would refuse: a call without exactly one result directly behind it."""
    faults: list[str] = []
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id in waiting:
                waiting.remove(message.tool_call_id)
            else:
                faults.append(f"a result of {message.tool_call_id} that nobody waits for")
            continue
        faults += [f"no result of {call_id}" for call_id in waiting]
        waiting = [str(call["id"]) for call in message.tool_calls] if isinstance(message, AIMessage) else []
    return [*faults, *(f"no result of {call_id}" for call_id in waiting)]


def questions_of(interrupts: Iterable[Interrupt]) -> dict[str, str]:
    """The open questions by call id, with their kind."""
    asked = [question for one in interrupts for question in one.value["questions"]]
    return {question["call_id"]: question["kind"] for question in asked}


START_MESSAGE: dict[str, Any] = {"messages": [HumanMessage("go")]}
