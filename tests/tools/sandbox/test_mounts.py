import os
from pathlib import Path

import pytest

from tools.sandbox.mounts import Mount, is_folder, ordered_mounts, path_exists


def test_outer_folders_come_first_and_the_strictest_mount_of_a_path_wins() -> None:
    home, inner, key = Path("/home"), Path("/home/work"), Path("/home/work/key")
    mounts = [Mount(key, "read"), Mount(inner, "write"), Mount(key, "empty"), Mount(home, "empty")]

    assert list(ordered_mounts(mounts)) == [Mount(home, "empty"), Mount(inner, "write"), Mount(key, "empty")]


def test_files_folders_and_absent_paths_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    paths = (tmp_path, tmp_path / "file", tmp_path / "gone")

    found = [(path_exists(path), is_folder(path)) for path in paths]

    assert found == [(True, True), (True, False), (False, False)]


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: another user's view, which root alone can take")
def test_a_path_in_a_folder_that_may_not_be_entered_counts_as_absent(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "file").touch()
    os.seteuid(65534)
    try:
        found = (path_exists(closed / "file"), is_folder(closed / "file"))
    finally:
        os.seteuid(0)

    assert found == (False, False)
