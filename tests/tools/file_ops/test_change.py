from pathlib import Path

import pytest

from tests.fakes.tool_ports import ToolSurroundings
from tests.fakes.waiting import names_in
from tools.file_ops.change import apply_change, encode_text, plan_change
from tools.files import read_snapshot
from tools.paths import PathRefused, resolve
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
