"""A thread that grows step by step on the real graph, counted after each turn. Judges nothing."""

import gc
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from langchain_core.messages import AIMessage, BaseMessage

from graph_agent.calls import ToolCallInfo
from graph_agent.ports import ModelRequest, OnDelta, Outcome, Scope
from graph_agent.ports.model import ContextWindow
from graph_agent.ports.usage import EstimateCache, estimate_request_tokens
from graph_agent.storage import Connection
from graph_agent.storage.sqlite.database import Database
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.fakes.scripted_toolbox import ScriptedToolbox
from tests.scenarios.stage import Stage

__all__ = ["PER_TURN", "RESULT", "WINDOW", "Growth", "grow"]

PER_TURN = 3
"""Steps of a turn: a model request with the call it asks for."""
RESULT = 4000
"""Characters of each result."""
WINDOW = ContextWindow(64_000, "set", can_summarize=False)
"""A conversation outgrows it after some twenty steps."""
_HANDED_OVER = "PRAGMA busy_timeout=3"
"""What work on the database's thread begins with: only there others are waited for."""
_TABLES = ("checkpoints", "writes", "transcript", "call_log", "journal")


class _FourKilobytes(ScriptedToolbox):
    """Every call gives as much as a file's worth of text that nothing can shorten."""

    async def run(self, call: ToolCallInfo, scope: Scope) -> Outcome:
        return Outcome("success", os.urandom(RESULT // 2).hex())


class _Forgetful(ScriptedModel):
    """Keeps nothing of what it was asked: over thousands of requests that would be all there is in memory."""

    def __init__(self, *replies: AIMessage) -> None:
        super().__init__(*replies)
        self.sizes: list[tuple[int, int]] = []
        self._known = EstimateCache()
        self.unknown: list[int] = []
        self._last: Sequence[BaseMessage] = ()

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        said = await super().reply(request, on_delta)
        self.requests.clear()
        known = {id(message) for message in self._last}
        self.unknown.append(sum(id(message) not in known for message in request.messages[1:]))
        self._last = request.messages
        self.sizes.append(
            (len(request.messages), estimate_request_tokens(request.messages, request.tools, self._known))
        )
        return said


@dataclass
class Growth:
    """A thread, looked at after each turn."""

    path: Path
    pages: list[int] = field(default_factory=list)
    rows: list[Mapping[str, int]] = field(default_factory=list)
    statements: list[int] = field(default_factory=list)
    syncs: list[int] = field(default_factory=list)
    """Transactions of each turn that waited for the disk."""
    handed_over: list[int] = field(default_factory=list)
    """Pieces of work of each turn that were done on the database's thread, and not where they were asked for."""
    effort: list[int] = field(default_factory=list)
    """Hundreds of instructions that the database carried out in each turn: rows it looked at count, too."""
    requests: list[tuple[int, int]] = field(default_factory=list)
    """Messages and tokens of every model request."""
    unknown: list[int] = field(default_factory=list)
    """Messages of every model request that were no part of the one before: what has to be written out anew."""
    objects: list[int] = field(default_factory=list)
    """How many the process holds after every 20th turn, without messages, of which a limited cache keeps some."""
    cpu_s: list[float] = field(default_factory=list)
    """Processor time of each turn; the time on the wall depends on who else works on the machine."""

    def bytes_per_step(self, first_turn: int, last_turn: int) -> float:
        """Of the turns between two, ends included."""
        grown = self.pages[last_turn] - self.pages[first_turn]
        return grown * 4096 / ((last_turn - first_turn) * PER_TURN)


async def grow(path: Path, steps: int, keep_turns: int) -> Growth:
    """Play so many steps; the thread keeps so many turns."""
    turn = [*([""] * PER_TURN), "end"]
    replies = [
        calls((f"c{number}-{step}", "read_a")) if not said else text("done")
        for number in range(steps // PER_TURN)
        for step, said in enumerate(turn)
    ]
    model = _Forgetful(*replies)
    stage = Stage(path, model, _FourKilobytes(), keep_turns=keep_turns, window=WINDOW)
    growth = Growth(path, requests=model.sizes, unknown=model.unknown)
    database = await Database.open(path)
    async with stage.open_session(database=database) as session:
        for _ in range(steps // PER_TURN):
            seen: list[str] = []
            effort: list[None] = []
            await database.run(partial(_trace, seen.append, effort))
            began = time.process_time()
            await session.send("go")
            growth.cpu_s.append(time.process_time() - began)
            await database.run(partial(_trace, None, None))
            growth.effort.append(len(effort))
            growth.statements.append(len(seen))
            growth.syncs.append(seen.count("COMMIT") - seen.count("PRAGMA synchronous=NORMAL"))
            growth.handed_over.append(sum(said.startswith(_HANDED_OVER) for said in seen))
            pages, rows = await database.run(_look)
            growth.pages.append(pages)
            growth.rows.append(rows)
            stage.events.clear()
            stage.toolbox.ran.clear()
            if len(growth.rows) % 20 == 0:
                gc.collect()
                growth.objects.append(sum(map(_is_other, gc.get_objects())))
    return growth


def _is_other(one: object) -> bool:
    """Neither a message nor one of Python's containers, of which each message has several."""
    return type(one).__module__ != "builtins" and not isinstance(one, BaseMessage)


def _trace(take: Callable[[str], None] | None, effort: list[None] | None, connection: Connection) -> None:
    assert isinstance(connection, sqlite3.Connection)
    connection.set_trace_callback(take)
    connection.set_progress_handler(None if effort is None else partial(effort.append, None), 100)


def _look(connection: Connection) -> tuple[int, dict[str, int]]:
    pages, free = (connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "freelist_count"))
    counts = {table: connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in _TABLES}  # noqa: S608 - names from here
    return pages - free, counts
