import errno
import os
from pathlib import Path

import pytest

from tests.fakes.waiting import names_in
from tools.files import FileVersion, Snapshot, read_snapshot, replace_file, restore_file, sha256_hex, snapshot_at
from tools.paths import PathRefused, resolve
from tools.result import ToolErrorType

_MAX = 10_000


def _look(ws: Path, name: str) -> Snapshot:
    return read_snapshot(resolve(name, workspace=ws), _MAX)


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    return tmp_path.resolve()


def test_a_missing_file_is_seen_as_missing(ws: Path) -> None:
    assert _look(ws, "f").as_observed() == {"path": str(ws / "f"), "device": None, "inode": None, "sha256": None}


def test_a_replaced_file_keeps_its_mode_and_leaves_nothing_beside(ws: Path) -> None:
    (ws / "run.sh").write_bytes(b"old")
    (ws / "run.sh").chmod(0o751)

    replace_file(_look(ws, "run.sh"), b"new", temp_name=".t")

    assert (ws / "run.sh").read_bytes() == b"new"
    assert (ws / "run.sh").stat().st_mode & 0o7777 == 0o751
    assert names_in(ws) == ["run.sh"]


def test_a_new_file_gets_its_folders_and_the_usual_mode(ws: Path) -> None:
    mask = os.umask(0o022)
    try:
        replace_file(_look(ws, "a/b/f"), b"x", temp_name=".t")
    finally:
        os.umask(mask)

    assert (ws / "a/b/f").read_bytes() == b"x"
    assert (ws / "a/b/f").stat().st_mode & 0o777 == 0o644


def test_a_file_changed_after_the_look_is_left_alone(ws: Path) -> None:
    (ws / "f").write_bytes(b"old")
    before = _look(ws, "f")
    (ws / "f").write_bytes(b"theirs")

    with pytest.raises(PathRefused, match="changed by someone else"):
        replace_file(before, b"mine", temp_name=".t")

    assert (ws / "f").read_bytes() == b"theirs"
    assert names_in(ws) == ["f"]


def test_a_file_that_appeared_after_the_look_is_left_alone(ws: Path) -> None:
    before = _look(ws, "f")
    (ws / "f").write_bytes(b"theirs")

    with pytest.raises(PathRefused, match="changed by someone else"):
        replace_file(before, b"mine", temp_name=".t")

    assert (ws / "f").read_bytes() == b"theirs"


def test_a_read_only_file_is_refused_and_stays_read_only(ws: Path) -> None:
    (ws / "f").write_bytes(b"old")
    (ws / "f").chmod(0o444)

    with pytest.raises(PathRefused, match="read-only") as raised:
        replace_file(_look(ws, "f"), b"new", temp_name=".t")

    assert raised.value.kind is ToolErrorType.PERMISSION
    assert ((ws / "f").read_bytes(), (ws / "f").stat().st_mode & 0o777) == (b"old", 0o444)


def test_what_a_killed_attempt_left_behind_is_cleared(ws: Path) -> None:
    (ws / ".t").write_bytes(b"half")

    replace_file(_look(ws, "f"), b"whole", temp_name=".t")

    assert names_in(ws) == ["f"]


def test_a_hard_link_is_parted_and_its_other_name_keeps_the_old_content(ws: Path) -> None:
    (ws / "f").write_bytes(b"old")
    os.link(ws / "f", ws / "g")

    replace_file(_look(ws, "f"), b"new", temp_name=".t")

    assert ((ws / "f").read_bytes(), (ws / "g").read_bytes()) == (b"new", b"old")


def test_a_write_that_fails_leaves_the_old_content_and_nothing_beside(
    ws: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (ws / "f").write_bytes(b"old")
    before = _look(ws, "f")

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(PathRefused, match="No space left"):
        replace_file(before, b"new", temp_name=".t")

    assert ((ws / "f").read_bytes(), names_in(ws)) == (b"old", ["f"])


def test_a_file_over_the_limit_is_not_taken_in(ws: Path) -> None:
    (ws / "big").write_bytes(b"x" * (_MAX + 1))

    with pytest.raises(PathRefused, match="10001 bytes"):
        _look(ws, "big")


def test_the_digest_is_sha_256() -> None:
    assert sha256_hex(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "ws"
    folder.mkdir()
    return folder


def test_content_and_mode_come_back_and_a_second_time_changes_nothing(workspace: Path) -> None:
    file = workspace / "a.sh"
    file.write_bytes(b"new")
    former = FileVersion(b"old", 0o755)

    for _ in range(2):
        restore_file(file, workspace, former, expected=sha256_hex(b"new"))

    assert (file.read_bytes(), file.stat().st_mode & 0o777) == (b"old", 0o755)
    assert [path.name for path in workspace.iterdir()] == ["a.sh"]


def test_a_created_file_goes_with_the_folders_made_for_it_as_far_as_they_are_empty(workspace: Path) -> None:
    file = workspace / "kept" / "made" / "deep" / "a.txt"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"new")
    former = FileVersion(None, new_folder=str(workspace / "kept" / "made"))

    for _ in range(2):
        restore_file(file, workspace, former, expected=sha256_hex(b"new"))

    assert [path.name for path in workspace.rglob("*")] == ["kept"]


def test_a_folder_that_somebody_else_uses_stays(workspace: Path) -> None:
    file = workspace / "made" / "a.txt"
    file.parent.mkdir()
    file.write_bytes(b"new")
    (file.parent / "theirs").touch()

    restore_file(file, workspace, FileVersion(None, new_folder=str(file.parent)), expected=sha256_hex(b"new"))

    assert [path.name for path in workspace.rglob("*")] == ["made", "theirs"]


def test_a_removed_file_comes_back_with_its_folders(workspace: Path) -> None:
    restore_file(workspace / "d" / "a.txt", workspace, FileVersion(b"old", 0o600), expected=None)

    assert ((workspace / "d" / "a.txt").read_bytes(), (workspace / "d" / "a.txt").stat().st_mode & 0o777) == (
        b"old",
        0o600,
    )


@pytest.mark.parametrize("former", [FileVersion(b"old"), FileVersion(None)])
def test_a_file_that_is_not_what_was_expected_is_left_alone(workspace: Path, former: FileVersion) -> None:
    file = workspace / "a.txt"
    file.write_bytes(b"theirs")

    with pytest.raises(PathRefused, match="changed by someone else"):
        restore_file(file, workspace, former, expected=sha256_hex(b"new"))

    assert file.read_bytes() == b"theirs"


def test_nothing_is_reached_through_a_link_or_outside_the_workspace(workspace: Path) -> None:
    outside = workspace.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_bytes(b"new")
    (workspace / "d").symlink_to(outside)

    for path in (workspace / "d" / "a.txt", outside / "a.txt"):
        with pytest.raises(PathRefused, match="outside the workspace"):
            restore_file(path, workspace, FileVersion(None), expected=sha256_hex(b"new"))
    (workspace / "real").mkdir()
    (workspace / "inner").symlink_to(workspace / "real")
    with pytest.raises(PathRefused, match="now leads through a link"):
        snapshot_at(workspace / "inner" / "a.txt", workspace)

    assert (outside / "a.txt").read_bytes() == b"new"
