"""The reference: LangChain's create_agent with approvals and SqliteSaver, on the same tools, as a program.

python -m tests.bench.plain_agent BASE_URL DATABASE WORKSPACE      plays one turn
"""

import importlib
import sqlite3
import sys
from pathlib import Path
from typing import Any

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


def main(base_url: str, database: Path, workspace: Path) -> None:
    """Play until the scripted model says a text."""
    # Not a dependency of the project: an import statement would fail the type checker where it is missing.
    agents = importlib.import_module("langchain.agents")
    middleware = importlib.import_module("langchain.agents.middleware")
    tools = [_as_langchain(tool, workspace) for tool in create_default_tools(workspace=workspace)]
    asks = middleware.HumanInTheLoopMiddleware(interrupt_on={"bash": True, "write_file": True, "edit_file": True})
    saver = SqliteSaver(sqlite3.connect(database, check_same_thread=False))
    model = ChatOpenAI(model="fake-model", base_url=base_url, api_key=lambda: "any")
    agent = agents.create_agent(model, tools, middleware=[asks], checkpointer=saver, system_prompt="Work.")
    agent.invoke(
        {"messages": [{"role": "user", "content": "go"}]},
        {"configurable": {"thread_id": "plain"}, "recursion_limit": _MOST_STEPS},
        durability="sync",
    )


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
