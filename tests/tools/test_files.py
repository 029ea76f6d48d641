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
    folder = tmp_path.resolve() / "ws"
    folder.mkdir()
    return folder


def test_a_replaced_file_keeps_its_mode_and_leaves_nothing_beside(ws: Path) -> None:
    (ws / "run.sh").write_bytes(b"old")
    (ws / "run.sh").chmod(0o751)
    (ws / "other").hardlink_to(ws / "run.sh")
    (ws / ".t").write_bytes(b"half of a killed attempt")

    replace_file(_look(ws, "run.sh"), b"new", temp_name=".t")

    assert ((ws / "run.sh").read_bytes(), (ws / "other").read_bytes()) == (b"new", b"old")
    assert ((ws / "run.sh").stat().st_mode & 0o7777, names_in(ws)) == (0o751, ["other", "run.sh"])


def test_a_new_file_gets_its_folders_and_the_usual_mode(ws: Path) -> None:
    mask = os.umask(0o022)
    before = _look(ws, "a/b/f")
    try:
        replace_file(before, b"x", temp_name=".t")
    finally:
        os.umask(mask)

    assert before.as_observed() == {"path": str(ws / "a/b/f"), "device": None, "inode": None, "sha256": None}
    assert ((ws / "a/b/f").read_bytes(), (ws / "a/b/f").stat().st_mode & 0o777) == (b"x", 0o644)


@pytest.mark.parametrize("content", [b"old", None], ids=["changed", "appeared"])
def test_a_file_changed_after_it_was_read_is_left_alone(ws: Path, content: bytes | None) -> None:
    if content is not None:
        (ws / "f").write_bytes(content)
    before = _look(ws, "f")
    (ws / "f").write_bytes(b"theirs")

    with pytest.raises(PathRefused, match="changed by someone else"):
        replace_file(before, b"mine", temp_name=".t")

    assert ((ws / "f").read_bytes(), names_in(ws)) == (b"theirs", ["f"])


def test_a_read_only_file_is_refused_and_stays_read_only(ws: Path) -> None:
    (ws / "f").write_bytes(b"old")
    (ws / "f").chmod(0o444)

    with pytest.raises(PathRefused, match="'f' has 3 bytes; files over 2 bytes are not changed"):
        read_snapshot(resolve("f", workspace=ws), 2)
    with pytest.raises(PathRefused, match="read-only") as raised:
        replace_file(_look(ws, "f"), b"new", temp_name=".t")

    assert raised.value.kind is ToolErrorType.PERMISSION
    assert ((ws / "f").read_bytes(), (ws / "f").stat().st_mode & 0o777) == (b"old", 0o444)


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


@pytest.mark.parametrize("now", [b"new", None], ids=["changed", "removed"])
def test_content_and_mode_come_back_and_a_second_time_changes_nothing(ws: Path, now: bytes | None) -> None:
    file = ws / "d" / "a.sh"
    if now is not None:
        file.parent.mkdir()
        file.write_bytes(now)

    for _ in range(2):
        restore_file(file, ws, FileVersion(b"old", 0o755), expected=None if now is None else sha256_hex(now))

    assert (file.read_bytes(), file.stat().st_mode & 0o777, names_in(file.parent)) == (b"old", 0o755, ["a.sh"])


@pytest.mark.parametrize("theirs", ["", "kept/made/deep/theirs"])
def test_a_created_file_goes_with_the_folders_made_for_it_as_far_as_they_are_empty(ws: Path, theirs: str) -> None:
    file = ws / "kept" / "made" / "deep" / "a.txt"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"new")
    if theirs:
        (ws / theirs).touch()
    former = FileVersion(None, new_folder=str(ws / "kept" / "made"))

    for _ in range(2):
        restore_file(file, ws, former, expected=sha256_hex(b"new"))

    left = [path.name for path in ws.rglob("*")]
    assert left == (["kept", "made", "deep", "theirs"] if theirs else ["kept"])


@pytest.mark.parametrize("former", [FileVersion(b"old"), FileVersion(None)])
def test_a_file_that_is_not_what_was_expected_is_left_alone(ws: Path, former: FileVersion) -> None:
    file = ws / "a.txt"
    file.write_bytes(b"theirs")

    with pytest.raises(PathRefused, match="changed by someone else"):
        restore_file(file, ws, former, expected=sha256_hex(b"new"))

    assert file.read_bytes() == b"theirs"


def test_nothing_is_reached_through_a_link_or_outside_the_workspace(ws: Path) -> None:
    outside = ws.parent / "outside"
    outside.mkdir()
    (outside / "a.txt").write_bytes(b"new")
    (ws / "d").symlink_to(outside)

    for path in (ws / "d" / "a.txt", outside / "a.txt"):
        with pytest.raises(PathRefused, match="outside the workspace"):
            restore_file(path, ws, FileVersion(None), expected=sha256_hex(b"new"))
    (ws / "real").mkdir()
    (ws / "inner").symlink_to(ws / "real")
    with pytest.raises(PathRefused, match="now leads through a link"):
        snapshot_at(ws / "inner" / "a.txt", ws)

    assert (outside / "a.txt").read_bytes() == b"new"
