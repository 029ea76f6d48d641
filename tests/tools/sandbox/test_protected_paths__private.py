import os
import tempfile
from pathlib import Path

import pytest

from tools.sandbox.protected_paths import empty_file, private_folder


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_one_name_has_one_folder_that_nobody_else_may_enter() -> None:
    folder = private_folder("t1")

    assert (private_folder("t1") == folder, private_folder("t2") == folder) == (True, False)
    assert (folder.stat().st_mode & 0o777, folder.parent.stat().st_mode & 0o777) == (0o700, 0o700)


def test_a_folder_that_was_not_used_for_long_goes_when_another_is_made() -> None:
    old = private_folder("old")
    (old / "file").touch()
    os.utime(old, (0, 0))

    private_folder("new")

    assert not old.exists()


def test_a_link_in_place_of_the_folder_is_not_followed(temporary: Path) -> None:
    (temporary / "elsewhere").mkdir(mode=0o700)
    (temporary / f"graph-agent-{os.geteuid()}").symlink_to("elsewhere")

    with pytest.raises(PermissionError, match="not a folder of yours alone"):
        private_folder("t1")


def test_the_empty_file_is_empty_and_stays_so() -> None:
    path = empty_file()

    assert (empty_file(), path.read_bytes(), path.stat().st_mode & 0o733) == (path, b"", 0o400)
