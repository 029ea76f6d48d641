"""Kill a process before each SQL statement it runs, once per statement.

Usage: `python -m tests.graph_agent.storage.sqlite.sweep FOLDER`.

Each run is a fork of this process, which has everything imported and no thread yet. After each kill another run
opens the database and looks. One JSON line per kill: what the dead one acknowledged, and what is there.
"""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage

from graph_agent.ports import Answer, Outcome, Question, SystemClock
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from graph_agent.storage.sqlite.journal import INLINE_BYTES, SqliteJournal
from tests.graph_agent.storage.sqlite.looking import content_of, opened
from tests.graph_agent.storage.sqlite.small_graph import config_of

_RECORD = {"call_id": "c", "tool_name": "bash", "status": "awaiting_approval", "attempt": 1}
_QUESTION = Question("approval", "c", 1, "digest")


async def work_and_die(folder: Path, fatal_statement: int, acknowledged: int) -> None:
    """Do everything once, reporting each step that is done; die before the fatal statement."""
    database = await Database.open(folder / "agent.db")
    left = fatal_statement

    def count(_: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    await database.run(lambda _: opened(database).set_trace_callback(count))
    saver = CheckpointSaver(database)
    journal = SqliteJournal(database, FileBlobs(folder / "blobs"), SystemClock())
    maps: Any = {"channel_values": {}, "channel_versions": {}, "versions_seen": {}}
    first: Any = {"v": 4, "id": "1", "ts": "2026-01-01T00:00:00+00:00", **maps}
    parent = await saver.aput(config_of("t"), first, {"source": "input", "step": -1}, {})
    os.write(acknowledged, b"checkpoint 1\n")
    await saver.aput_writes(parent, [("messages", HumanMessage("hi", id="m")), ("calls", {"c": _RECORD})], "task")
    os.write(acknowledged, b"writes\n")
    second: Any = {**first, "id": "2"}
    await saver.aput(parent, second, {"source": "loop", "step": 0}, {})
    os.write(acknowledged, b"checkpoint 2\n")
    await SqliteDecisions(database).insert("t", _QUESTION, Answer("approve", "chat", "now"))
    os.write(acknowledged, b"decision\n")
    await journal.claim("t", "c", 1, "run", None)
    os.write(acknowledged, b"claim\n")
    await journal.finish("t", "c", 1, "run", Outcome("success", "x" * INLINE_BYTES))
    os.write(acknowledged, b"finish\n")


async def look(folder: Path, report: int) -> None:
    """Say what is there, and whether all of it fits together."""
    async with await Database.open(folder / "agent.db") as database:
        saver = CheckpointSaver(database)
        journal = SqliteJournal(database, FileBlobs(folder / "blobs"), SystemClock())
        check = await database.run(lambda connection: connection.execute("PRAGMA integrity_check").fetchone()[0])
        stored = [found async for found in saver.alist(config_of("t"))]
        rows = await journal.rows("t", "c")
        there = [f"checkpoint {found.checkpoint['id']}" for found in stored]
        there += ["writes"] if any(found.pending_writes for found in stored) else []
        there += ["decision"] if await SqliteDecisions(database).find_answers("t", [_QUESTION]) else []
        there += ["claim"] if rows else []
        there += ["finish"] if rows and rows[0].is_finished else []
        before = await content_of(database)
        await saver.rebuild_projections("t")
        fits = check == "ok" and await content_of(database) == before
        os.write(report, json.dumps({"there": sorted(there), "fits": fits}).encode())


def fork(work: Any) -> tuple[str, bool]:
    """Run the work in a child; what it wrote, and whether it came to its end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        asyncio.run(work(writing))
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    return text, os.waitpid(child, 0)[1] == 0


def main(folder: Path) -> None:
    for fatal in range(1_000):
        run = folder / str(fatal)
        run.mkdir()
        acknowledged, survived = fork(lambda pipe, run=run, fatal=fatal: work_and_die(run, fatal, pipe))
        seen, _ = fork(lambda pipe, run=run: look(run, pipe))
        line = {"survived": survived, "acknowledged": sorted(acknowledged.splitlines()), **json.loads(seen)}
        print(json.dumps(line), flush=True)  # noqa: T201 - how the sweep talks to its test
        if survived:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]))
