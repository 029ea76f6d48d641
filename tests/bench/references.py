"""The references, as programs that play one turn.

python -m tests.bench.references plain BASE_URL DATABASE WORKSPACE     LangChain's create_agent with approvals and
                                                                       SqliteSaver, on the same tools
python -m tests.bench.references start BASE_URL DATABASE WORKSPACE     the same for one streamed reply, whose tokens
                                                                       are printed as `text_delta TOKEN`
python -m tests.bench.references bare BASE_URL RECORDED                no agent: ChatOpenAI sends requests that an
                                                                       agent sent before, one body a line
"""

import importlib
import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.sqlite import SqliteSaver

from tools import create_default_tools
from tools.base import BaseTool

__all__: list[str] = []

_MOST_STEPS = 5_000


def _as_langchain(tool: BaseTool, workspace: Path) -> StructuredTool:
    def run(**arguments: Any) -> str:
        if tool.name != "read_file":
            return "done"
        lines = (workspace / arguments["file_path"]).read_text(encoding="utf-8").splitlines()
        first = int(arguments.get("offset", 1))
        chosen = lines[first - 1 : first - 1 + int(arguments.get("limit", 2000))]
        return "\n".join(f"{number:6}\t{line}" for number, line in enumerate(chosen, first))

    return StructuredTool.from_function(
        func=run, name=tool.name, description=str(tool.description), args_schema=tool.args_schema
    )


def _plain_agent(base_url: str, database: Path, workspace: Path) -> Any:
    # Not a dependency of the project: an import statement would fail the type checker where it is missing.
    agents = importlib.import_module("langchain.agents")
    middleware = importlib.import_module("langchain.agents.middleware")
    tools = [_as_langchain(tool, workspace) for tool in create_default_tools(workspace=workspace)]
    asks = middleware.HumanInTheLoopMiddleware(interrupt_on={"bash": True, "write_file": True, "edit_file": True})
    saver = SqliteSaver(sqlite3.connect(database, check_same_thread=False))
    model = ChatOpenAI(model="fake-model", base_url=base_url, api_key=lambda: "any")
    return agents.create_agent(model, tools, middleware=[asks], checkpointer=saver, system_prompt="Work.")


_INPUT = {"messages": [{"role": "user", "content": "go"}]}
_CONFIG = {"configurable": {"thread_id": "plain"}, "recursion_limit": _MOST_STEPS}


def _play_plain(base_url: str, database: Path, workspace: Path) -> None:
    """Play until the scripted model says a text."""
    _plain_agent(base_url, database, workspace).invoke(_INPUT, _CONFIG, durability="sync")


def _start_plain(base_url: str, database: Path, workspace: Path) -> None:
    """Print each token as it arrives."""
    agent = _plain_agent(base_url, database, workspace)
    for chunk, _ in agent.stream(_INPUT, _CONFIG, durability="sync", stream_mode="messages"):
        if chunk.text:
            sys.stdout.write(f"text_delta {chunk.text}\n")
            sys.stdout.flush()


def _play_bare(base_url: str, recorded: Path) -> None:
    """Send each body's messages and tools, streamed where it was."""
    bodies = [json.loads(line) for line in recorded.read_text(encoding="utf-8").splitlines()]
    messages = [convert_to_messages(body["messages"]) for body in bodies]
    model = ChatOpenAI(model="fake-model", base_url=base_url, api_key=lambda: "any").bind(tools=bodies[0]["tools"])
    for body, conversation in zip(bodies, messages, strict=True):
        _ask(model, conversation, streams=bool(body.get("stream")))


def _ask(model: Any, conversation: list[BaseMessage], *, streams: bool) -> None:
    if not streams:
        model.invoke(conversation)
        return
    for _ in model.stream(conversation):
        pass


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["plain", base_url, database, workspace]:
            _play_plain(base_url, Path(database), Path(workspace))
        case ["start", base_url, database, workspace]:
            _start_plain(base_url, Path(database), Path(workspace))
        case ["bare", base_url, recorded]:
            _play_bare(base_url, Path(recorded))
