"""Graphs of other people, and what LangGraph's own SQLite saver keeps of them."""

import dataclasses
import enum
import operator
from collections.abc import Sequence
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.channels import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel

if TYPE_CHECKING:
    from langgraph.checkpoint.base import BaseCheckpointSaver

__all__ = ["ASKED", "GRAPHS", "Graph", "config_of", "play_all"]

Graph = CompiledStateGraph[Any, Any, Any, Any]
ASKED = "user 42/ü"
"""Id of the thread that waits for two answers: ids need not be UUIDs, nor even plain."""


def _joined(state: list[Any], writes: Sequence[Any]) -> list[Any]:
    return [*state, *(item for write in writes for item in (write if isinstance(write, list) else [write]))]


class Mood(enum.Enum):
    GOOD = "good"


@dataclasses.dataclass
class Point:
    x: int
    y: int


class Order(BaseModel):
    name: str
    at: datetime


class Work(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    parts: Annotated[list[str], operator.add]
    blob: bytes
    point: Point
    order: Order
    mood: Mood
    ids: set[int]
    price: Decimal
    usage: str
    calls: list[str]


class Log(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], DeltaChannel(_joined, snapshot_frequency=5)]
    log: Annotated[list[str], DeltaChannel(_joined, snapshot_frequency=3)]


class Parts(TypedDict, total=False):
    parts: Annotated[list[Any], operator.add]


def config_of(thread_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id}}


def asking(saver: "BaseCheckpointSaver[Any]") -> Graph:
    """Two nodes at once, joined by two that each ask."""
    builder = StateGraph(Work)
    nodes: dict[str, Any] = {"plan": _plan, "tool": _tool, "ask": _ask, "ask2": _ask}
    nodes |= {name: _part(name) for name in ("side", "last")}
    for name, node in nodes.items():
        builder.add_node(name, node)
    builder.add_edge(START, "plan")
    for start, end in (("plan", "tool"), ("plan", "side"), ("ask", "last"), ("ask2", "last"), ("last", END)):
        builder.add_edge(start, end)
    builder.add_edge(["tool", "side"], "ask")
    builder.add_edge(["tool", "side"], "ask2")
    return builder.compile(checkpointer=saver)


def logging(saver: "BaseCheckpointSaver[Any]") -> Graph:
    """Channels stored as deltas, with a snapshot now and then."""
    builder = StateGraph(Log)
    builder.add_node("say", lambda _: {"messages": [AIMessage("hi")], "log": ["said"]})
    builder.add_node("more", _part("more", "log"))
    builder.add_edge(START, "say")
    builder.add_edge("say", "more")
    return builder.compile(checkpointer=saver)


def nested(saver: "BaseCheckpointSaver[Any]") -> Graph:
    """A subgraph that asks."""
    inner = StateGraph(Parts)
    inner.add_node("dig", _part("dug"))
    inner.add_node("check", _ask)
    inner.add_edge(START, "dig")
    inner.add_edge("dig", "check")
    builder = StateGraph(Parts)
    builder.add_node("child", inner.compile())
    builder.add_node("after", _part("after"))
    builder.add_edge(START, "child")
    builder.add_edge("child", "after")
    return builder.compile(checkpointer=saver)


def fanned(saver: "BaseCheckpointSaver[Any]") -> Graph:
    """Three packets sent, of which one makes its node fail."""
    builder = StateGraph(Parts)
    builder.add_node("split", lambda _: {})
    builder.add_node("work", _divide)
    builder.add_edge(START, "split")
    builder.add_conditional_edges("split", lambda _: [Send("work", {"n": n}) for n in (2, 0, 5)], ["work"])
    return builder.compile(checkpointer=saver)


GRAPHS = {ASKED: asking, "done": asking, "logged": logging, "nested": nested, "failed": fanned}
"""What made each thread."""


def play_all(saver: "BaseCheckpointSaver[Any]") -> None:
    """Every thread of `GRAPHS`."""
    ask = {"messages": [HumanMessage("find it", id="h1")]}
    asking(saver).invoke(ask, config_of(ASKED))
    graph = asking(saver)
    graph.invoke(ask, config_of("done"))
    asked = graph.get_state(config_of("done")).interrupts
    graph.invoke(Command(resume={question.id: "yes" for question in asked}), config_of("done"))
    for number in range(4):
        logging(saver).invoke({"messages": [HumanMessage(f"message {number}")]}, config_of("logged"))
    nested(saver).invoke({"parts": ["in"]}, config_of("nested"))
    try:
        fanned(saver).invoke({"parts": ["in"]}, config_of("failed"))
    except ZeroDivisionError:
        return


def _plan(_: Work) -> dict[str, Any]:
    call = {"name": "search", "args": {"q": "it"}, "id": "c1"}
    return {
        "messages": [AIMessage("looking", id="a1", tool_calls=[call])],
        "blob": b"\x00\x01",
        "point": Point(1, 2),
        "order": Order(name="o", at=datetime(2026, 1, 2)),  # noqa: DTZ001 - stored as it is
        "mood": Mood.GOOD,
        "ids": {7},
        "price": Decimal("1.5"),
        "usage": "heavy",
        "calls": ["mine"],
    }


def _tool(_: Work) -> dict[str, Any]:
    return {"messages": [ToolMessage("found", tool_call_id="c1", id="t1")], "parts": ["tool"]}


def _divide(state: Any) -> dict[str, Any]:
    return {"parts": [10 // state["n"]]}


def _ask(state: Any) -> dict[str, Any]:
    return {"parts": [interrupt({"question": "go on?"})]}


def _part(text: str, channel: str = "parts") -> Any:
    return lambda _: {channel: [text]}
