import os
import stat
from pathlib import Path
from threading import Thread

import pytest

from graph_agent.config.paths import locked_folder, replace_text


def test_a_replaced_file_is_private_whatever_the_umask_and_nothing_else_is_left(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        with locked_folder(tmp_path / "own"):
            replace_text(tmp_path / "own" / "a", "one")
            replace_text(tmp_path / "own" / "a", "two")
    finally:
        os.umask(umask)

    modes = [stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "own", tmp_path / "own" / "a")]
    assert (modes, [path.name for path in (tmp_path / "own").iterdir()]) == ([0o700, 0o600], ["a"])
    assert (tmp_path / "own" / "a").read_text() == "two"


def test_what_cannot_replace_leaves_the_old_file_and_no_new_one(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()

    with pytest.raises(OSError, match="folder"):
        replace_text(tmp_path / "folder", "x")

    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_of_changes_made_at_once_none_is_lost(tmp_path: Path) -> None:
    count = tmp_path / "count"
    count.write_text("0")

    def add() -> None:
        for _ in range(25):
            with locked_folder(tmp_path):
                replace_text(count, str(int(count.read_text()) + 1))

    threads = [Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert count.read_text() == "100"
