"""Waiting in tests for what the world does by itself."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["is_running", "names_in", "until"]


async def until(is_so: Callable[[], bool], seconds: float = 10) -> bool:
    """Wait until it is so; False when it does not come about in time."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.005)
    return True


def is_running(pid: int) -> bool:
    """Whether a process lives; one that has exited and waits to be collected does not."""
    try:
        line = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return False
    return line.rpartition(")")[2].split()[0] not in "ZX"


def names_in(folder: Path | str) -> list[str]:
    """The names in a folder, sorted."""
    return sorted(path.name for path in Path(folder).iterdir())
