"""A terminal coding agent whose every tool call is a durable record.

`open_session` and `open_graph` are for programs that embed it; what they need is loaded only once they are called.
"""

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Generator, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from graph_agent.events import EventBus
    from graph_agent.graph.build import AgentGraph, Saver
    from graph_agent.session.session import Session
    from tools import BaseTool

__all__ = ["Opening", "open_graph", "open_session"]

# The graph framework reads this once, when it is first imported; without it a crafted checkpoint runs code.
os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"


class Opening:
    """A session that is still to be opened: await it, or enter it with `async with`, which also closes it."""

    def __init__(self, opening: "Coroutine[Any, Any, Session]") -> None:
        self._opening = opening
        self._session: Session | None = None

    def __await__(self) -> "Generator[Any, None, Session]":
        return self._opening.__await__()

    async def __aenter__(self) -> "Session":
        self._session = await self._opening
        return self._session

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: "TracebackType | None"
    ) -> None:
        if self._session is not None:
            await self._session.close()


def open_session(
    *,
    workspace: "Path | str",
    thread_id: str | None = None,
    flags: "Mapping[str, Any] | None" = None,
    bus: "EventBus | None" = None,
) -> Opening:
    """Open a thread in this process: `async with open_session(workspace="project") as session`.

    Without `async with`, `session = await open_session(...)` holds the thread until `await session.close()`.

    Args:
        workspace: the folder the thread works in; an existing thread moves there.
        thread_id: the whole id of the thread to continue; a new one if it is None or unknown.
        flags: the command line's options: `add_dirs`, `db`, `effort`, `mode`, `model`, `max_steps`, `max_tokens`,
            `max_cost`, `no_stream`, `trust`, and `checkpoint_id`, to continue from there as a new branch. The rest
            comes from environment and config files.
        bus: receives the session's events.

    Raises:
        ConfigError: a setting is wrong.
        ThreadHeld: another process holds the thread.
        StorageError: the database cannot be used.
        UsageError: the workspace is no folder, or no model is named and the endpoint has not exactly one.
    """
    return Opening(_open(workspace, thread_id, flags, bus))


async def _open(
    workspace: "Path | str", thread_id: str | None, flags: "Mapping[str, Any] | None", bus: "EventBus | None"
) -> "Session":
    # Loading the graph takes a second, in which the event loop is not blocked.
    from asyncio import to_thread  # noqa: PLC0415 - as above
    from importlib import import_module  # noqa: PLC0415 - as above
    from pathlib import Path  # noqa: PLC0415 - as above

    await to_thread(import_module, "graph_agent.app.opening")
    from graph_agent.app import opening  # noqa: PLC0415 - as above

    return await opening.open_session(workspace=Path(workspace), thread_id=thread_id, flags=flags, bus=bus)


@asynccontextmanager
async def open_graph(
    *,
    workspace: "Path | str",
    checkpointer: "Saver | Literal['own'] | None" = "own",
    settings: "Mapping[str, Any] | None" = None,
    tools: "Sequence[BaseTool]" = (),
    bus: "EventBus | None" = None,
) -> "AsyncIterator[AgentGraph]":
    """The compiled graph, for use with LangGraph's own API: `async with open_graph(workspace="project") as graph`.

    Its input is `{"messages": [...]}`; every run needs a `thread_id` in its config. A thread that it ran is held by
    this process until the block is left.

    Args:
        workspace: the folder that its threads work in.
        checkpointer: "own" for the database of the settings, any saver of LangGraph's, or None to use that of the
            graph that this one becomes a part of.
        settings: in place of those of environment and config files, named as in config.toml: `{"mode": "plan"}`.
        tools: further tools, besides the built-in ones and the user's plug-ins.
        bus: receives the events of all runs.

    Raises:
        ConfigError: a setting is wrong.
        StorageError: the database cannot be used.
        UsageError: the workspace is no folder, or no model is named and the endpoint has not exactly one.
    """
    from asyncio import to_thread  # noqa: PLC0415 - see above
    from importlib import import_module  # noqa: PLC0415 - as above
    from pathlib import Path  # noqa: PLC0415 - as above

    await to_thread(import_module, "graph_agent.app.langgraph_server")
    from graph_agent.app import langgraph_server  # noqa: PLC0415 - as above
    from graph_agent.events import EventBus  # noqa: PLC0415 - as above

    async with langgraph_server.open_graph(
        workspace=Path(workspace),
        checkpointer=checkpointer,
        settings=settings or {},
        tools=tools,
        bus=bus or EventBus(),
    ) as graph:
        yield graph
