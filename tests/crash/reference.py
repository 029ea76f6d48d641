"""The same kills against plain LangGraph: one task per call (Send), interrupt() for approval, durability "sync".

No journal, no mark, no fence; saver, crash points, model, scenes and the look at the effects are the sweep's own.
What it shows is the framework's own guarantee, at least once per task, in the same numbers.

    python -m tests.crash.reference --kills N
"""

import argparse
import asyncio
import os
import random
import shutil
import signal
import sys
import tempfile
from collections import Counter
from operator import add
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AnyMessage, HumanMessage, ToolMessage
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

from graph_agent.ports import ModelRequest
from graph_agent.storage.sqlite.database import Database
from tests.crash.kill_points import Countdown, KillPointSaver
from tests.crash.scenes import SCENES, PlayModel, Scene, marker_in
from tests.crash.world import World

__all__ = ["main"]

_CONFIG: Any = {"configurable": {"thread_id": "plain"}}
_RUNS_UNTIL_STUCK = 12


class _State(TypedDict):
    messages: Annotated[list[AnyMessage], add]


def _graph(world: World, scene: Scene, points: Countdown, saver: KillPointSaver) -> Any:
    model = PlayModel(scene, world, points.point)

    async def think(state: _State) -> Command[Any]:
        reply = await model.reply(ModelRequest(state["messages"], ()), lambda _: None)
        return Command(update={"messages": [reply]}, goto="ask" if reply.tool_calls else "__end__")

    async def ask(state: _State) -> Command[Any]:
        asked = state["messages"][-1].tool_calls  # type: ignore[union-attr]  # think sent it here for its calls
        answers = interrupt([call["id"] for call in asked])
        return Command(goto=[Send("tools", {"call": call, "answer": answers[call["id"]]}) for call in asked])

    async def tools(task: dict[str, Any]) -> Command[Any]:
        call = task["call"]
        points.point("before run")
        if task["answer"] == "approve" and call["name"] == "bash":
            shell = await asyncio.create_subprocess_shell(call["args"]["command"], cwd=world.workspace)
            await shell.wait()
        points.point("after run")
        return Command(update={"messages": [ToolMessage("done", tool_call_id=call["id"])]}, goto="join")

    async def join(state: _State) -> dict[str, Any]:
        return {}

    builder = StateGraph(_State)
    for name, node in (("think", think), ("ask", ask), ("tools", tools), ("join", join)):
        builder.add_node(name, node)  # type: ignore[arg-type]  # a task of tools is no whole state
    builder.add_edge(START, "think")
    builder.add_edge("join", "think")
    return builder.compile(checkpointer=saver)


async def _live(world: World, scene: Scene, points: Countdown) -> int:
    async with await Database.open(world.database) as database:
        graph = _graph(world, scene, points, KillPointSaver(database, points))
        for _ in range(60):
            snapshot = await graph.aget_state(_CONFIG)
            said = sum(message.type == "human" for message in snapshot.values.get("messages", ()))
            if snapshot.interrupts:
                work: Any = Command(resume=_answers(scene, snapshot))
            elif snapshot.tasks:
                work = None
            elif said < len(scene.turns):
                work = {"messages": [HumanMessage(f"turn {said}")]}
            else:
                return 0
            await graph.ainvoke(work, _CONFIG, durability="sync")
    return 3


def _answers(scene: Scene, snapshot: Any) -> dict[str, str]:
    answers = {}
    for call in snapshot.values["messages"][-1].tool_calls:
        turn, message, position = (int(digit) for digit in (marker_in(call["args"]) or "m000")[1:4])
        wanted = scene.turns[turn][message][position]
        answers[call["id"]] = "reject" if wanted.answer == "reject" else "approve"
    return answers


def _trial(scene: Scene, kill_at: int, folder: Path, tally: Counter[str]) -> None:
    world = World(folder)
    world.create()
    for point in (kill_at, *[None] * _RUNS_UNTIL_STUCK):
        child = os.fork()
        if child == 0:
            code = 3
            try:
                code = asyncio.run(_live(world, scene, Countdown(point)))
            finally:
                os._exit(code)
        status = os.waitpid(child, 0)[1]
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
            tally["kills"] += 1
        elif status == 0:
            break
    twice = sum(count - 1 for count in Counter(world.runs()).values())
    tally["silent second runs"] += twice
    tally["trials with one"] += bool(twice)
    tally["trials"] += 1


def main(arguments: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200)
    options = parser.parse_args(arguments)
    root, tally = Path(tempfile.mkdtemp(prefix="reference-")), Counter[str]()
    chance = random.Random(1)
    while tally["kills"] < options.kills and tally["trials"] < 3 * options.kills:
        folder = root / str(tally["trials"])
        _trial(SCENES[0], chance.randint(1, 70), folder, tally)
        shutil.rmtree(folder)
    shutil.rmtree(root)
    for name, count in tally.items():
        print(f"{name}: {count}")  # noqa: T201 - a report
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
