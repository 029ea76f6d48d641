from pathlib import Path
from typing import Any

from tools import create_default_tools
from tools.base import BaseTool, ToolResult


def _tools(workspace: Path) -> dict[str, BaseTool]:
    return {tool.name: tool for tool in create_default_tools(workspace=workspace)}


async def _edit(workspace: Path, name: str, old: str, new: str, **more: Any) -> ToolResult:
    return await _tools(workspace)["edit_file"].execute(file_path=name, old_string=old, new_string=new, **more)


async def test_line_ends_of_a_file_survive_edits_and_writes(tmp_path: Path) -> None:
    path = tmp_path / "w.txt"
    path.write_bytes(b"a\r\nb\r\nc\r\n")
    tools = _tools(tmp_path)

    await tools["edit_file"].execute(file_path="w.txt", old_string="b", new_string="B")
    one = path.read_bytes()
    await tools["edit_file"].execute(file_path="w.txt", old_string="c", new_string="c1\nc2")
    two = path.read_bytes()
    await tools["write_file"].execute(file_path="w.txt", content="x\ny\n")

    assert (one, two, path.read_bytes()) == (b"a\r\nB\r\nc\r\n", b"a\r\nB\r\nc1\r\nc2\r\n", b"x\r\ny\r\n")


async def test_every_character_of_a_replacement_is_literal(tmp_path: Path) -> None:
    (tmp_path / "f.sh").write_bytes(b"PID=old\n")

    await _edit(tmp_path, "f.sh", "old", r"$$ $1 $& \1 \g<0> \n {x} %s")

    assert (tmp_path / "f.sh").read_bytes() == rb"PID=$$ $1 $& \1 \g<0> \n {x} %s" + b"\n"


async def test_an_empty_old_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_bytes(b"abc")

    results = [
        await _edit(tmp_path, "f.txt", "", "X", replace_all=True),
        await _edit(tmp_path, "f.txt", "", "X"),
    ]

    assert ["old_string is empty" in (result.error or "") for result in results] == [True, True]
    assert (tmp_path / "f.txt").read_bytes() == b"abc"


async def test_a_file_touched_but_not_changed_is_edited(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    path.write_bytes(b"k = 1\n")
    tools = _tools(tmp_path)
    await tools["read_file"].execute(file_path="f.txt")
    path.write_bytes(b"k = 1\n")

    result = await tools["edit_file"].execute(file_path="f.txt", old_string="k = 1", new_string="k = 2")

    assert (result.error, path.read_bytes()) == (None, b"k = 2\n")


async def test_a_missing_last_newline_is_neither_added_nor_in_the_way(tmp_path: Path) -> None:
    path = tmp_path / "f.txt"
    path.write_bytes(b"one\ntwo")

    first = await _edit(tmp_path, "f.txt", "two\n", "three\n")
    once = path.read_bytes()
    await _edit(tmp_path, "f.txt", "three", "four")

    assert (once, path.read_bytes()) == (b"one\nthree", b"one\nfour")
    assert "no newline at its end" in first.output
