import json
import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.contracts.example_calls import ExampleCalls
from tests.fakes.tool_ports import ToolEnvironment
from tools.base import Limits, ToolResult
from tools.file_ops import read_file
from tools.file_ops.read_file import ReadFileTool, as_cells, far_lines, numbered, range_of_lines
from tools.files import sha256_hex

EXAMPLE_CALLS = {
    "read_file": ExampleCalls({"file_path": "here.txt"}, {"file_path": "missing.txt"}),
}


@pytest.fixture
def around(tmp_path: Path) -> ToolEnvironment:
    return ToolEnvironment(tmp_path)


async def _read(around: ToolEnvironment, file_path: str, *, offset: int = 1, limit: int = 2000) -> ToolResult:
    return await ReadFileTool().execute(file_path=file_path, offset=offset, limit=limit, context=around.context())


async def test_lines_come_numbered_and_the_whole_is_remembered(around: ToolEnvironment) -> None:
    (around.workspace / "f.txt").write_bytes(b"one\ntwo\r\nthree")

    result = await _read(around, "f.txt")

    path, sha256 = str(around.workspace / "f.txt"), sha256_hex(b"one\ntwo\r\nthree")
    shown = {"path": path, "sha256": sha256, "offset": 1, "limit": 2000, "until": 3}
    assert result == ToolResult(
        "     1\tone\n     2\ttwo\n     3\tthree",
        display="f.txt: 3 lines",
        metadata={"lines": 3, "total_lines": 3, "shown": shown},
    )
    assert await around.file_states.get("t1", path) == sha256
    reference = around.blobs.put(b"a\nb\nc\n")
    stored = await _read(around, reference, offset=2, limit=1)
    assert stored.output == "     2\tb\n[lines 2 to 2 of 3; continue with offset=3]"
    (around.workspace / "f.txt").write_text(("y" * 1999 + "\n") * 100)
    long = (await _read(around, "f.txt")).output
    assert (len(long) < 100_000, long.endswith("[lines 1 to 44 of 100; continue with offset=45]")) == (True, True)


async def test_lines_that_an_earlier_result_shows_are_not_shown_again_while_the_file_is_the_same(
    around: ToolEnvironment,
) -> None:
    (around.workspace / "f.txt").write_text(f"one\ntwo {'x' * 1_990}\n")
    (around.workspace / "short.txt").write_text(f"one\ntwo {'x' * 1_900}\n")
    first, short = await _read(around, "f.txt"), await _read(around, "short.txt")
    context = around.context(shown=[first.metadata["shown"], short.metadata["shown"]])

    short_again = await ReadFileTool().execute(file_path="short.txt", context=context)
    again = await ReadFileTool().execute(file_path="./f.txt", context=context)
    others = await ReadFileTool().execute(file_path="f.txt", offset=2, context=context)
    (around.workspace / "f.txt").write_text("one\n2\n")
    changed = await ReadFileTool().execute(file_path="f.txt", context=context)

    assert again == ToolResult(
        "[./f.txt is unchanged since you read these lines: see that earlier result, above.]",
        "f.txt: unchanged since it was read",
        metadata={"unchanged": True},
    )
    assert others.output.startswith("     2\ttwo xxx")
    assert (changed.output, short_again) == ("     1\tone\n     2\t2", short)


_TOO_SMALL = "Invalid arguments: {} (integer), expected greater than or equal to 1. Correct them and try again."


@pytest.mark.parametrize(
    ("data", "asked", "shown"),
    [
        (b"1\n2\n3\n4\n5\n", {"offset": 2, "limit": 1}, "     2\t2\n[lines 2 to 2 of 5; continue with offset=3]"),
        (b"1\n", {"offset": 5}, "'f.x' has 1 line; offset 5 is beyond its end."),
        (b"1\n", {"offset": 0}, _TOO_SMALL.format("offset: got 0")),
        (b"1\n", {"limit": -1}, _TOO_SMALL.format("limit: got -1")),
        (b"", {}, "(the file is empty)"),
        (b"x" * 3000, {}, f"     1\t{'x' * 2000} [… line cut, it has 3000 characters]"),
        ("\ufeffé\n".encode("utf-16-le"), {}, "     1\té\n[encoding utf-16-le, kept when the file is written]"),
        (b'a = "x\0y"  # a NUL\n', {}, '     1\ta = "x\\x00y"  # a NUL\n[NUL characters are shown as \\x00]'),
        (b"\x7fELF\0\0", {}, "'f.x' is a binary file (6 bytes); use a program that knows its format."),
    ],
    ids=["range", "beyond-the-end", "offset-0", "limit-below-0", "empty", "long-line", "utf-16", "NUL", "binary"],
)  # fmt: skip
async def test_lines_or_the_reason_why_there_are_none(
    around: ToolEnvironment, data: bytes, asked: dict[str, int], shown: str
) -> None:
    (around.workspace / "f.x").write_bytes(data)

    result = await _read(around, "f.x", **asked)

    assert (result.error or result.output) == shown


@pytest.mark.parametrize(
    ("given", "kind"),
    [("none", "not_found"), (".", "validation"), ("/dev/zero", "validation"), ("blob:sha256:00", "not_found")],
)
async def test_what_cannot_be_read_is_an_error_with_its_kind(
    around: ToolEnvironment, given: str, kind: str
) -> None:
    result = await _read(around, given)

    assert (result.output, result.metadata) == ("", {"error_type": kind})


async def test_a_huge_file_gives_the_asked_range_with_bounded_memory(around: ToolEnvironment) -> None:
    path = around.workspace / "huge"
    path.write_bytes(b"first\nsecond\n" + b"x\n" * 3000)
    few = around.context(limits=Limits(file_bytes=100, scan_bytes=4000))
    beyond = await ReadFileTool().execute(file_path="huge", offset=3001, limit=5, context=few)
    os.truncate(path, 1 << 40)

    result = await _read(around, "huge", offset=2, limit=1)

    assert result.output.startswith("     2\tsecond\n[the file has 1099511627776 bytes")
    assert await around.file_states.get("t1", str(path)) is None
    assert "only its first 4000 bytes were searched" in str(beyond.error)


def _split(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


@settings(deadline=None)
@given(st.text(alphabet="ab\n\r\x0c\u2028"), st.integers(1, 12), st.integers(1, 12))
def test_a_range_is_what_splitting_the_whole_text_gives(text: str, first: int, count: int) -> None:
    lines = _split(text)

    assert range_of_lines(text, first, count) == (lines[first - 1 : first - 1 + count], len(lines))


@pytest.mark.parametrize("first", [1, 2, 9_999, 10_000, 10_001, 20_000, 20_001])
def test_a_range_far_into_a_text_is_found_across_its_pieces(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_file, "_PIECE", 1_000)
    text = "".join(f"line {number}\n" for number in range(1, 20_001))

    assert range_of_lines(text, first, 2) == (
        [f"line {number}" for number in range(first, min(first + 2, 20_001))],
        20_000,
    )


def _far(
    path: Path, first: int, count: int, limits: Limits | None = None, *, cancelled: bool = False
) -> tuple[list[str], bool]:
    cancellation = threading.Event()
    if cancelled:
        cancellation.set()
    fd = os.open(path, os.O_RDONLY)
    try:
        return far_lines(fd, first, count, limits or Limits(), cancellation)
    finally:
        os.close(fd)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    # A line break exactly at the edge of what is read at once, and a last line without one.
    (tmp_path / "f").write_bytes(b"x" * (1024 * 1024 - 1) + b"\nsecond\r\n" + b"y" * (1024 * 1024) + b"\nlast")
    return tmp_path / "f"


@pytest.mark.parametrize(
    ("first", "count", "found"), [(2, 1, (["second"], False)), (4, 5, (["last"], False)), (5, 5, ([], False))]
)
def test_lines_are_found_across_the_pieces(
    path: Path, first: int, count: int, found: tuple[list[str], bool]
) -> None:
    assert _far(path, first, count) == found


def test_a_scan_keeps_little_of_each_line_and_ends_at_its_limit_or_a_cancellation(path: Path) -> None:
    lines, _ = _far(path, 1, 3, Limits(line_chars=10))

    assert [len(line) for line in lines] == [44, 6, 44]
    assert _far(path, 4, 1, Limits(scan_bytes=1024 * 1024)) == ([], True)
    assert _far(path, 4, 1, cancelled=True) == ([], False)


def test_lines_are_numbered_from_the_first_one_on_and_cut_with_their_length() -> None:
    assert numbered(["a", "", "b"], 9, 10) == "     9\ta\n    10\t\n    11\tb"
    assert numbered(["abcdef"], 1, 3) == "     1\tabc [… line cut, it has 6 characters]"


_BOOK = {
    "nbformat": 4,
    "cells": [
        {"cell_type": "markdown", "source": "# Title"},
        {
            "cell_type": "code",
            "source": ["x = 1\n", "x"],
            "outputs": [
                {"output_type": "stream", "text": ["a\n", "b\n"]},
                {"output_type": "display_data", "data": {"image/png": "aGk=", "text/plain": "<Figure>"}},
                {"output_type": "error", "ename": "ValueError", "evalue": "bad", "traceback": ["\x1b[0m"]},
                {"output_type": "execute_result", "data": {}},
                "odd",
            ],
        },
        "odd",
    ],
}


def test_cells_and_outputs_stand_below_each_other() -> None:
    assert as_cells(json.dumps(_BOOK)) == (
        "--- cell 1: markdown ---\n# Title\n"
        "--- cell 2: code ---\nx = 1\nx\n"
        "--- output of cell 2 ---\na\nb\n"
        "--- output of cell 2 ---\n<Figure>\n[image/png, not shown]\n"
        "--- output of cell 2 ---\nValueError: bad\n"
    )


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "{}", '{"cells": []}', '{"cells": 1, "nbformat": 4}', "[" * 100_000]
)
def test_what_is_no_notebook_is_none(text: str) -> None:
    assert as_cells(text) is None


@pytest.mark.parametrize("outputs", [5, True, "text", {"output_type": "stream"}])
def test_a_cell_whose_outputs_are_no_list_is_shown_without_them(outputs: object) -> None:
    book = {"nbformat": 4, "cells": [{"cell_type": "code", "source": "x", "outputs": outputs}]}

    assert as_cells(json.dumps(book)) == "--- cell 1: code ---\nx\n"


async def test_a_notebook_is_read_as_its_cells_and_a_broken_one_as_its_text(tmp_path: Path) -> None:
    around = ToolEnvironment(tmp_path)
    (around.workspace / "a.ipynb").write_text(json.dumps(_BOOK))
    (around.workspace / "b.ipynb").write_text("{broken")

    whole = await ReadFileTool().execute(file_path="a.ipynb", limit=2, context=around.context())
    broken = await ReadFileTool().execute(file_path="b.ipynb", context=around.context())

    assert whole.output.splitlines()[0].endswith("--- cell 1: markdown ---")
    assert "lines 1 to 2 of 13; continue with offset=3; a notebook, shown as its cells" in whole.output
    assert "{broken" in broken.output
