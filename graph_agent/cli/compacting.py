"""Compacts a thread by command, and tells how far it went."""

from dataclasses import asdict
from pathlib import Path

from graph_agent.cli.compacted import compacted_line
from graph_agent.cli.locate import find
from graph_agent.cli.opening import Target, open_target
from graph_agent.cli.views.screen import print_json, print_lines
from graph_agent.errors import UsageError
from graph_agent.events import Compacted, Event, EventBus

__all__ = ["compact"]


async def compact(text: str, db: str | None, *, as_json: bool) -> None:
    """Compact the thread that the text means.

    Raises:
        UnknownId: nothing fits, or several threads do.
        UsageError: the thread is not at rest.
        ThreadHeld: another process has it.
    """
    found = find(text, db, Path.cwd())
    if found.checkpoint_id is not None:
        raise UsageError(
            f"{text!r} is an older checkpoint of thread {found.thread_id}; compact takes the thread itself"
        )
    told: list[Compacted] = []

    def note(number: int, event: Event) -> None:  # noqa: ARG001 - the shape of a subscriber
        if isinstance(event, Compacted):
            told.append(event)

    bus = EventBus()
    bus.subscribe(note)
    # A model that is not clear is in the way of nothing here: an outline takes the place of its summary.
    flags = {"may_choose_model": True} | ({} if db is None else {"db": db})
    session = await open_target(Target(found.workspace, found.thread_id, exists=True, flags=flags), bus)
    try:
        await session.compact()
    finally:
        await session.close()
    if as_json:
        print_json({"thread_id": found.thread_id, "compacted": asdict(told[0]) if told else None})
    else:
        print_lines(
            [compacted_line(told[0]) if told else "nothing was compacted: the conversation is short already"]
        )
