import os
from pathlib import Path

import pytest

from tools.sandbox.mounts import is_folder, path_exists


def test_what_is_there_is_told_apart_by_kind(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    assert [(path_exists(path), is_folder(path)) for path in (tmp_path, tmp_path / "file", tmp_path / "gone")] == [
        (True, True),
        (True, False),
        (False, False),
    ]


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED: another user's view, which root alone can take")
def test_what_lies_in_a_folder_that_may_not_be_entered_counts_as_absent(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "file").touch()
    os.seteuid(65534)
    try:
        seen = (path_exists(closed / "file"), is_folder(closed / "file"))
    finally:
        os.seteuid(0)

    assert seen == (False, False)
