import fcntl
import os
from pathlib import Path

import pytest

from graph_agent.config.paths import lock_dir
from graph_agent.errors import ThreadHeld
from graph_agent.storage.sqlite.thread_lock import exclusive_access, lock_file


def test_a_lock_without_a_lease_is_told_with_how_to_find_its_process(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    lock_dir(path).mkdir()
    lock = lock_file(path, "t")
    descriptor = os.open(lock, os.O_CREAT | os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)

    with pytest.raises(ThreadHeld, match=f"a process; find it with `fuser {lock}`"), exclusive_access(path):
        pass

    os.close(descriptor)
    with exclusive_access(path):
        held = os.open(lock, os.O_RDWR)
        with pytest.raises(BlockingIOError):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.close(held)
