"""Graphs of other people, built with LangGraph and LangChain alone, with and without durable tool calls."""

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import BaseTool, tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Interrupt

from graph_agent.durable import DurableToolMiddleware, DurableTools, Journal, ToolPolicy, durable

__all__ = [
    "KINDS",
    "START_MESSAGE",
    "Kind",
    "ScriptedChat",
    "ask_for",
    "charge_tool",
    "foreign_graph",
    "history_faults",
    "open_saver",
    "questions_of",
]

Kind = Literal["tool node", "agent", "sub-graph"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Point = Callable[[str], None]


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

    @tool
    def charge(card: str) -> str:
        """Charge a card."""
        point("before effect")
        line = os.open(effects, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.write(line, f"{card}\n".encode())
        os.close(line)
        point("after effect")
        return f"charged {card}"

    return charge


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
) -> Any:
    """A compiled graph; without a journal as it is written today."""
    model = ScriptedChat(script=script)
    policies = {one.name: policy or ToolPolicy() for one in tools}
    if kind == "agent":
        middleware = [DurableToolMiddleware(journal, policies=policies)] if journal else []
        return create_agent(model, tools, middleware=middleware, checkpointer=saver)
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


def questions_of(interrupts: Sequence[Interrupt]) -> dict[str, str]:
    """The open questions by call id, with their kind."""
    asked = [question for one in interrupts for question in one.value["questions"]]
    return {question["call_id"]: question["kind"] for question in asked}


START_MESSAGE: dict[str, Any] = {"messages": [HumanMessage("go")]}
