"""What must hold of effects that are no commands: what is remembered, planned, asked of the web."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graph_agent.app.reader import read_database
from tests.crash.scenes import marker_in
from tests.crash.world import World

__all__ = ["small_effects"]


def small_effects(world: World, by_marker: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Every broken promise about them; `by_marker` are the records of the ledger."""
    return [*_memory(world, by_marker), *_pages(world, by_marker), *_plan(world, by_marker)]


def _memory(world: World, by_marker: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """I1: a fact is remembered once, and where that is told it is so."""
    text = _text(world.database.parent / "CONTEXT.md")
    wrong = []
    for marker, call in by_marker.items():
        count = text.count(marker)
        if call["tool_name"] == "save_memory" and (count > 1 or (_succeeded(call) and count == 0)):
            wrong.append(f"I1: {marker} is {call['status']} and stands {count} times in the memory")
    return wrong


def _pages(world: World, by_marker: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """I1, I2: a page is asked for once, and once more for each retry."""
    asked = Counter(_text(world.folder / "fetched").split())
    retries = Counter(note["marker"] for note in world.notes("answering") if note["answer"] == "retry")
    too_often = [
        f"I1/I2: {marker} was fetched {count} times with {retries[marker]} retries"
        for marker, count in asked.items()
        if count > 1 + retries[marker]
    ]
    return too_often + [
        f"I1: {marker} is a success and was never fetched"
        for marker, call in by_marker.items()
        if call["tool_name"] == "web_fetch" and _succeeded(call) and not asked[marker]
    ]


def _plan(world: World, by_marker: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """I1: the plan is what the newest call that wrote it left."""
    written = [
        marker for marker, call in by_marker.items() if call["tool_name"] == "todo_write" and _succeeded(call)
    ]
    if not written:
        return []
    with read_database(world.database) as reader:
        plan = reader.inspection("crash").state.values.get("todo") or []
    found = [marker_in(item) for item in plan]
    # Markers begin with turn, message and place in it.
    return [] if found == [max(written)] else [f"I1: the plan is {found}, and {max(written)} was written last"]


def _succeeded(call: Mapping[str, Any]) -> bool:
    return call["status"] == "success" and call.get("decision") != "done"


def _text(path: Path) -> str:
    return path.read_text() if path.exists() else ""
