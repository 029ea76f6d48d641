"""Having a whole database to oneself: no thread of it is held by another process, and none is opened meanwhile."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path

from graph_agent.config.paths import lock_dir
from graph_agent.errors import ThreadHeld
from graph_agent.store.files import exclusive, make_private_folder, open_private_file
from graph_agent.store.lease import holder
from graph_agent.store.lock import lock_file

__all__ = ["alone_with"]

_THREADS = "[0-9a-f]*.lock"


@contextmanager
def alone_with(path: Path) -> Iterator[None]:
    """Hold the locks of every thread, and that of first openings.

    Raises:
        ThreadHeld: another process holds a thread.
    """
    folder = lock_dir(path)
    make_private_folder(folder)
    with ExitStack() as held:
        held.enter_context(exclusive(folder / "open.lock"))
        for lock in sorted(folder.glob(_THREADS)):
            descriptor = open_private_file(lock)
            held.callback(os.close, descriptor)
            try:
                flock(descriptor, LOCK_EX | LOCK_NB)
            except BlockingIOError as error:
                raise ThreadHeld(_told(path, lock)) from error
        yield


def _told(path: Path, lock: Path) -> str:
    who = _holder_of(path, lock) or f"a process; find it with `fuser {lock}`"
    return f"{path} is in use by {who}: end that one first, as what it still writes would be lost"


def _holder_of(path: Path, lock: Path) -> str | None:
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as database:
            for (thread_id,) in database.execute("SELECT thread_id FROM leases WHERE ended_at IS NULL"):
                found = holder(database, thread_id) if lock_file(path, thread_id) == lock else None
                if found is not None:
                    return f"process {found.pid}, which holds thread {thread_id!r} since {found.since}"
    except (sqlite3.Error, UnicodeDecodeError):
        # What is damaged may be just that table.
        return None
    return None
