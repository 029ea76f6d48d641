"""A separate process for storage tests.

Usage: `python -m tests.graph_agent.storage.sqlite.process COMMAND PATH ARGUMENTS`.
"""

import asyncio
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

from graph_agent.errors import AgentError
from graph_agent.ports import SystemClock
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.thread_lock import FlockThreadLock
from graph_agent.storage.sqlite.threads import SqliteInbox

__all__ = ["ROOT", "start"]

ROOT = Path(__file__).parents[4]


def start(command: str, *arguments: object) -> "subprocess.Popen[str]":
    """Start a process; it says on its standard output how far it came."""
    return subprocess.Popen(
        [sys.executable, "-m", __name__, command, *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - how the process talks to its test


async def open_only(path: Path) -> None:
    async with await Database.open(path) as database:
        version = await database.run(lambda connection: connection.execute("PRAGMA user_version").fetchone()[0])
    say(f"opened version {version}")


async def open_as_nobody(path: Path) -> None:
    os.setgid(65534)
    os.setuid(65534)
    await open_only(path)


async def fill(path: Path) -> None:
    """Queue messages until the size limit on files is reached; says how many were acknowledged."""
    async with await Database.open(path) as database:
        inbox = SqliteInbox(database, SystemClock())
        resource.setrlimit(resource.RLIMIT_FSIZE, (560_000, resource.RLIM_INFINITY))
        count = 0
        try:
            while count < 1_000:
                await inbox.queue("t", "x" * 5_000, "test")
                count += 1
        finally:
            say(str(count))


async def write_much(path: Path) -> None:
    """Many small transactions beside other processes that do the same."""
    async with await Database.open(path) as database:
        inbox = SqliteInbox(database, SystemClock())
        for number in range(40):
            await inbox.queue("t", str(number), "test")
    say("written")


async def hold(path: Path, thread_id: str) -> None:
    async with await Database.open(path) as database:
        await FlockThreadLock(database, SystemClock()).acquire(thread_id, "run-of-another")
        say(f"held by {os.getpid()}")
        await asyncio.to_thread(sys.stdin.readline)


async def hold_and_spawn(path: Path, thread_id: str) -> None:
    """Take the lock, start a program that outlives this one, die."""
    async with await Database.open(path) as database:
        await FlockThreadLock(database, SystemClock()).acquire(thread_id, "run-of-another")
        orphan = await asyncio.create_subprocess_exec(
            "sleep", "60", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, close_fds=False
        )
        say(str(orphan.pid))
        os.kill(os.getpid(), signal.SIGKILL)


_COMMANDS: dict[str, Callable[..., Awaitable[None]]] = {
    "open": open_only,
    "open_as_nobody": open_as_nobody,
    "fill": fill,
    "write_much": write_much,
    "hold": hold,
    "hold_and_spawn": hold_and_spawn,
}


async def main(command: str, path: str, *arguments: str) -> int:
    try:
        await _COMMANDS[command](Path(path), *arguments)
    except AgentError as error:
        say(f"{type(error).__name__}: {error}")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
