import os
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.tool_ports import ToolSurroundings
from tests.fakes.waiting import names_in
from tools.file_ops.change import apply_change, encode_text, find_conflict, plan_change, reconcile_file
from tools.files import Snapshot, read_snapshot, sha256_hex
from tools.paths import PathRefused, ResolvedPath, resolve
from tools.result import InterruptedCall, Reconciliation
from tools.text import TextForm


def test_a_change_is_written_once_and_only_where_there_is_one(tmp_path: Path) -> None:
    around = ToolSurroundings(tmp_path)
    path = around.workspace / "f"
    path.write_bytes(b"a\n")
    before = read_snapshot(resolve("f", workspace=around.workspace), 100)
    inode = path.stat().st_ino

    apply_change(plan_change(before, "a\n", b"a\n"), around.context())
    same = path.stat().st_ino
    apply_change(plan_change(before, "a\n", b"b\n"), around.context())

    assert (same, path.read_bytes(), names_in(around.workspace)) == (inode, b"b\n", ["f"])


def test_a_character_the_encoding_lacks_is_named() -> None:
    with pytest.raises(PathRefused, match="'f' is encoded in gbk, which has no '🙂'"):
        encode_text("f", "好\n🙂", TextForm("gbk", newline="\r\n"), "\r\n")


_RESOLVED = ResolvedPath("f", Path("/w/f"), inside=True, exposes_process=False)
_OLD, _NEW = sha256_hex(b"old"), sha256_hex(b"new")


def _seen(path: str = "/w/f", sha256: str | None = _OLD) -> dict[str, Any]:
    return {"path": path, "device": 1, "inode": 2, "sha256": sha256}


@pytest.mark.parametrize(
    ("data", "known", "seen", "part"),
    [
        (None, None, None, None),
        (None, _OLD, None, None),
        (None, None, _seen(sha256=None), None),
        (b"old", _OLD, None, None),
        (b"old", _OLD, _seen(), None),
        (b"new", _NEW, _seen(), None),
        (None, _OLD, _seen(), "was deleted"),
        (b"old", None, None, "was not read"),
        (b"new", _OLD, _seen(), "changed by someone else"),
        (b"old", _OLD, _seen("/w/g"), "the approval was for"),
        (b"old", None, _seen(sha256=None), "was not read"),
    ],
)
def test_only_what_is_known_and_was_shown_may_be_overwritten(
    data: bytes | None, known: str | None, seen: dict[str, Any] | None, part: str | None
) -> None:
    refused = find_conflict(Snapshot(_RESOLVED, data), known, seen)

    assert (refused is None) is (part is None)
    assert part is None or part in str(refused)


def test_a_file_with_the_foreseen_content_was_written(tmp_path: Path) -> None:
    path = tmp_path.resolve() / "f"
    path.write_bytes(b"new")

    found = reconcile_file(InterruptedCall({}, str(path), None, sha256_hex(b"new")))

    assert found == Reconciliation("already_applied", f"{path} has exactly the content this call was to write.")


def test_a_place_that_holds_no_file_any_more_tells_nothing(tmp_path: Path) -> None:
    path = tmp_path.resolve() / "pipe"
    os.mkfifo(path)

    found = reconcile_file(InterruptedCall({}, str(path), None, sha256_hex(b"new")))

    assert found.verdict == "unknown"
    assert "named pipe" in found.detail
