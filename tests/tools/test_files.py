import errno
import os
from pathlib import Path

import pytest

from tests.fakes.waiting import names_in
from tools.files import Snapshot, read_snapshot, replace_file, sha256_hex
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
