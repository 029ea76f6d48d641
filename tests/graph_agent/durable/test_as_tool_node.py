"""What LangGraph's ToolNode does, DurableTools does too; and a replay gives the same without running a tool."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, InjectedToolCallId, ToolException, tool
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt import InjectedState, InjectedStore, ToolNode, ToolRuntime
from langgraph.runtime import Runtime
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command, Send
from pydantic import BaseModel

from graph_agent.durable import DurableTools, Journal
from tests.fakes.tool_graphs import ask_for

RAN: list[str] = []


@tool
def add(a: int, b: int) -> int:
    """Add."""
    RAN.append("add")
    return a + b


@tool
def fail(kind: str) -> str:
    """Fail."""
    RAN.append("fail")
    raise {"value": ValueError, "type": TypeError, "tool": ToolException}[kind](f"no {kind}")


@tool(response_format="content_and_artifact")
def draw(size: int) -> tuple[str, dict[str, int]]:
    """Draw."""
    RAN.append("draw")
    return f"a picture of {size}", {"size": size}


@tool
def blocks() -> list[dict[str, str]]:
    """Return content blocks."""
    RAN.append("blocks")
    return [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]


@tool
def facts() -> dict[str, Any]:
    """Return what is no text."""
    RAN.append("facts")
    return {"day": "Sunday", "count": [1, 2]}


@tool
def message(call_id: Annotated[str, InjectedToolCallId]) -> ToolMessage:
    """Return a message."""
    RAN.append("message")
    return ToolMessage("written by the tool", tool_call_id=call_id, additional_kwargs={"mine": 1})


@tool
def update(call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Update the state."""
    RAN.append("update")
    return Command(update={"mood": "good", "messages": [ToolMessage("noted", tool_call_id=call_id)]})


@tool
def move(call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
    """Move on to another node."""
    RAN.append("move")
    return Command(goto="other", update={"messages": [ToolMessage("moved", tool_call_id=call_id)]})


@tool
def delegate(name: str) -> Command[Any]:
    """Send to a node of the parent graph."""
    RAN.append("delegate")
    return Command(graph=Command.PARENT, goto=[Send(name, {"task": name})])


@tool
def forget() -> Command[Any]:
    """Remove all messages."""
    RAN.append("forget")
    return Command(update={"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES)]})


@tool
def mixed(call_id: Annotated[str, InjectedToolCallId]) -> list[Any]:
    """Return a command and a message."""
    RAN.append("mixed")
    return [Command(update={"mood": "mixed"}), ToolMessage("both", tool_call_id=call_id)]


@tool
def silent() -> Command[Any]:
    """Update the state without a message, which is refused."""
    RAN.append("silent")
    return Command(update={"mood": "silent"})


@tool
def whole(state: Annotated[Any, InjectedState]) -> str:
    """See the state."""
    RAN.append("whole")
    return str(len(state["messages"] if isinstance(state, dict) else state.messages))


@tool
def part(mood: Annotated[str, InjectedState("mood")]) -> str:
    """See a part of the state."""
    RAN.append("part")
    return mood


@tool
def store(key: str, kept: Annotated[Any, InjectedStore()]) -> str:
    """Read the store."""
    RAN.append("store")
    return str(kept.get(("notes",), key).value)


@tool
def runtime(x: int, runtime: ToolRuntime) -> str:
    """See the runtime."""
    RAN.append("runtime")
    return f"{x} {runtime.tool_call_id} {runtime.context} {sorted(one.name for one in runtime.tools)[:1]}"


@tool
def configured(config: RunnableConfig) -> str:
    """See the configuration."""
    RAN.append("configured")
    return str(config["configurable"]["thread_id"])


handled = tool("handled", description="Handles its own errors.")(
    lambda: (_ for _ in ()).throw(ToolException("mine"))
)
handled.handle_tool_error = True

TOOLS: list[BaseTool] = [
    add, fail, draw, blocks, facts, message, update, move, delegate, forget, mixed, silent, whole, part, store,
    runtime, configured, handled,
]  # fmt: skip


class State(BaseModel):
    """A state that is no mapping."""

    messages: list[Any]
    mood: str = "calm"


def on_value_error(error: ValueError) -> str:
    return f"handled: {error}"


def shorten(request: Any, execute: Callable[[Any], Any]) -> Any:
    return ToolMessage("without the tool", tool_call_id=request.tool_call["id"])


def double(request: Any, execute: Callable[[Any], Any]) -> Any:
    call = {**request.tool_call, "args": {"a": request.tool_call["args"]["a"] * 2, "b": 0}}
    return execute(request.override(tool_call=call))


def insist(request: Any, execute: Callable[[Any], Any]) -> Any:
    execute(request)
    return execute(request)


def refuse(request: Any, execute: Callable[[Any], Any]) -> Any:
    raise ValueError("the wrapper says no")


async def ashorten(request: Any, execute: Callable[[Any], Any]) -> Any:
    return ToolMessage("without the tool, later", tool_call_id=request.tool_call["id"])


@dataclass(frozen=True)
class Behaviour:
    name: str
    input: Any
    options: dict[str, Any] = field(default_factory=dict)
    replays: bool = True
    """Whether there is a result: what only a wrapper raised is none, and is asked about."""


def state(*calls: tuple[str, dict[str, Any]], **more: Any) -> dict[str, Any]:
    asked = ask_for(*((name, args, f"id{number}") for number, (name, args) in enumerate(calls)))
    return {"messages": [HumanMessage("go"), asked], **more}


SUM = ("add", {"a": 1, "b": 2})
BAD = ("fail", {"kind": "value"})
CALL = {"type": "tool_call", "name": "add", "args": {"a": 1, "b": 2}, "id": "id0"}
ERROR_FLAGS: dict[str, Any] = {
    "all handled": True,
    "none handled": False,
    "a text": "sorry",
    "one class": ValueError,
    "several classes": (ValueError, KeyError),
    "a function": on_value_error,
}
EMPTY: dict[str, Any] = {"messages": []}
BEHAVIOURS = [
    Behaviour("several calls in order", state(SUM, ("add", {"a": 3, "b": 4}))),
    Behaviour("a list of messages", state(SUM)["messages"]),
    Behaviour("calls themselves", [CALL]),
    Behaviour("a call with its state", {"__type": "tool_call_with_context", "tool_call": CALL, "state": EMPTY}),
    Behaviour("a state that is a model", State(messages=state(SUM)["messages"])),
    Behaviour("messages under another key", {"chat": state(SUM)["messages"]}, {"messages_key": "chat"}),
    Behaviour("no calls", {"messages": [AIMessage("nothing to do")]}),
    Behaviour("no message of a model", {"messages": [HumanMessage("go")]}),
    Behaviour("an unknown tool", state(("nothing", {}), SUM)),
    Behaviour("bad arguments", state(("add", {"a": "many", "b": 2}))),
    Behaviour("bad arguments, not handled", state(("add", {"a": "many", "b": 2})), {"handle_tool_errors": False}),
    Behaviour("an exception, by default", state(BAD)),
    *(
        Behaviour(f"{kind} error, {name}", state(("fail", {"kind": kind})), {"handle_tool_errors": flag})
        for kind in ("value", "type")
        for name, flag in ERROR_FLAGS.items()
    ),
    Behaviour("an exception that the tool handles", state(("handled", {}))),
    Behaviour("an artifact", state(("draw", {"size": 3}))),
    Behaviour("content blocks", state(("blocks", {}))),
    Behaviour("a result that is no text", state(("facts", {}))),
    Behaviour("a message of the tool's own", state(("message", {}))),
    Behaviour("a command with an update", state(("update", {}), SUM)),
    Behaviour("a command to another node", state(("move", {}))),
    Behaviour("commands to the parent become one", state(*(("delegate", {"name": name}) for name in "xy"))),
    Behaviour("a command that removes all messages", state(("forget", {}))),
    Behaviour("a list of command and message", state(("mixed", {}))),
    Behaviour("a command without a message", state(("silent", {}))),
    Behaviour("the whole state injected", state(("whole", {}))),
    Behaviour("a part of the state injected", state(("part", {}), mood="calm")),
    Behaviour("a part of the state is missing", state(("part", {}))),
    Behaviour("a forged injected argument", state(("part", {"mood": "forged"}), mood="calm")),
    Behaviour("the store injected", state(("store", {"key": "k"}))),
    Behaviour("the runtime injected", state(("runtime", {"x": 7}))),
    Behaviour("the configuration injected", state(("configured", {}))),
    Behaviour("a wrapper in place of the tool", state(SUM), {"wrap_tool_call": shorten}),
    Behaviour("a wrapper that changes the arguments", state(SUM), {"wrap_tool_call": double}),
    Behaviour("a wrapper that runs the tool twice", state(SUM), {"wrap_tool_call": insist}),
    Behaviour("a bad wrapper", state(SUM), {"wrap_tool_call": refuse, "handle_tool_errors": True}, replays=False),
    Behaviour("an asynchronous wrapper", state(SUM), {"awrap_tool_call": ashorten}),
]  # fmt: skip


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Journal:
    return Journal(tmp_path_factory.mktemp("journal") / "journal.sqlite")


def outcome(node: ToolNode, behaviour: Behaviour, thread: str, *, is_async: bool) -> Any:
    """What comes out, as a value: the output or the exception."""
    kept = InMemoryStore()
    kept.put(("notes",), "k", {"text": "kept"})
    surroundings = Runtime(context=None, store=kept, stream_writer=lambda _: None)
    config: Any = {"configurable": {"thread_id": thread, "__pregel_runtime": surroundings}}
    value = behaviour.input
    if not isinstance(value, State):
        value = [*value] if isinstance(value, list) else {**value}
    try:
        return asyncio.run(node.ainvoke(value, config)) if is_async else node.invoke(value, config)
    except (ValueError, TypeError, KeyError, ToolException) as error:
        return type(error), str(error)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("behaviour", BEHAVIOURS, ids=lambda one: one.name)
def test_it_does_what_a_tool_node_does_and_a_replay_gives_the_same(
    journal: Journal, behaviour: Behaviour, is_async: bool
) -> None:
    thread = f"{behaviour.name} {is_async}"
    expected = outcome(ToolNode(TOOLS, **behaviour.options), behaviour, thread, is_async=is_async)

    node = DurableTools(TOOLS, journal=journal, **behaviour.options)
    assert outcome(node, behaviour, thread, is_async=is_async) == expected

    if behaviour.replays and not isinstance(expected, tuple):
        RAN.clear()
        assert outcome(node, behaviour, thread, is_async=is_async) == expected
        assert RAN == []
