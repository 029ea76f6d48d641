"""A card is charged, the process is killed, the graph resumed: with `ToolNode` and with `DurableTools`, offline.

python -m graph_agent.durable.demo
"""

import argparse
import asyncio
import contextlib
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import BaseTool, tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from graph_agent.durable.answers import answer
from graph_agent.durable.journal import Journal
from graph_agent.durable.tools import DurableTools
from graph_agent.errors import AgentError
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database

__all__ = ["DemoFailed", "main"]

_CONFIG: Any = {"configurable": {"thread_id": "order 7"}}
_CHARGES, _JOURNAL = "charges.txt", "journal.sqlite"
_INTRODUCTION = """\
A model asks to charge a card. The process is killed (SIGKILL) right after the charge, before the result is in a
checkpoint. A second process then resumes the thread. Real processes, real files, no network.
"""


class DemoFailed(AgentError):
    """A process of the demo did not do what it is there to show."""


def _charge_tool(folder: Path, *, dies: bool) -> BaseTool:
    @tool
    def charge_card(order: int, amount: str) -> str:
        """Charge the card of an order."""
        with (folder / _CHARGES).open("a") as file:
            file.write(f"order {order}: {amount}\n")
        _say(f"  process {os.getpid()}: charge_card runs, {amount} is charged")
        if dies:
            _say(f"  process {os.getpid()}: killed before it can save the result")
            os.kill(os.getpid(), signal.SIGKILL)
        return f"charged {amount}"

    return charge_card


def _think(state: MessagesState) -> dict[str, Any]:
    """Stands in for a model: asks for one call, then ends."""
    if isinstance(state["messages"][-1], HumanMessage):
        call = {"name": "charge_card", "args": {"order": 7, "amount": "49.00"}, "id": "call_1"}
        return {"messages": [AIMessage("", tool_calls=[call])]}
    return {"messages": [AIMessage("The order is paid.")]}


async def _run(folder: Path, *, is_durable: bool, dies: bool, reply: str) -> None:
    """What each process of the demo does: start the thread, resume it, or answer its question."""
    tools = [_charge_tool(folder, dies=dies)]
    node: Any = DurableTools(tools, journal=Journal(folder / _JOURNAL)) if is_durable else ToolNode(tools)
    builder = StateGraph(MessagesState)
    builder.add_node("model", _think)
    builder.add_node("tools", node)
    builder.add_edge(START, "model")
    builder.add_conditional_edges("model", lambda state: "tools" if state["messages"][-1].tool_calls else END)
    builder.add_edge("tools", "model")
    async with await Database.open(folder / "checkpoints.sqlite") as database:
        graph = builder.compile(checkpointer=CheckpointSaver(database))
        work: Any = {"messages": [HumanMessage("Pay order 7.")]} if dies else None
        if reply:
            given = {"call_1": {"kind": "done", "result": reply}}
            work = answer(await graph.aget_state(_CONFIG), given, by="demo")
        ended = await graph.ainvoke(work, _CONFIG, durability="sync")
    for asked in ended.get("__interrupt__", ()):
        _say(f"  process {os.getpid()}: asks: {asked.value['questions'][0]['text']}")
    if not ended.get("__interrupt__"):
        _say(f"  process {os.getpid()}: the model receives {ended['messages'][-2].content!r}")


def _process(folder: Path, *, is_durable: bool, dies: bool = False, reply: str = "") -> None:
    """Run a process to its end. It is forked, which spares it loading everything again."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.run(_run(folder, is_durable=is_durable, dies=dies, reply=reply))
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code != (-signal.SIGKILL if dies else 0):
        raise DemoFailed(f"A process of the demo ended with {code}; please report this with what it printed.")


def _show(folder: Path) -> None:
    plain, durable = folder / "plain", folder / "durable"
    _say(f"{_INTRODUCTION}\nToolNode")
    plain.mkdir()
    _process(plain, is_durable=False, dies=True)
    _process(plain, is_durable=False)
    _say(f"  charges on the card: {_charges(plain)}\n\nDurableTools")
    durable.mkdir()
    _process(durable, is_durable=True, dies=True)
    _process(durable, is_durable=True)
    _say("  you look at the card, find the charge, and answer: done, receipt 4711")
    _process(durable, is_durable=True, reply="receipt 4711")
    _say(f"  charges on the card: {_charges(durable)}\n\nThe second line is the whole change:\n")
    _say('  builder.add_node("tools", ToolNode(tools))')
    _say('  builder.add_node("tools", DurableTools(tools, journal=Journal("journal.sqlite")))')


def _charges(folder: Path) -> int:
    return len((folder / _CHARGES).read_text().splitlines())


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(arguments: list[str] | None = None) -> int:
    """Run the demo."""
    parser = argparse.ArgumentParser(
        prog="python -m graph_agent.durable.demo", description="Show a kill with ToolNode and with DurableTools."
    )
    parser.add_argument(
        "--keep", metavar="DIR", help="keep the files there, to look at with graph-agent calls --db"
    )
    chosen = parser.parse_args(arguments)
    with contextlib.ExitStack() as stack:
        folder = Path(chosen.keep or stack.enter_context(tempfile.TemporaryDirectory()))
        if folder.exists() and any(folder.iterdir()):
            parser.error(f"{folder} is not empty; name a new folder")
        folder.mkdir(parents=True, exist_ok=True)
        try:
            _show(folder)
        except DemoFailed as failed:
            _say(str(failed))
            return failed.exit_code
    if chosen.keep:
        _say(f"\nThe journal: graph-agent calls --db {folder / 'durable' / _JOURNAL}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
