import asyncio
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.example_calls import ExampleCalls
from tests.fakes.tool_ports import ToolEnvironment
from tests.fakes.waiting import names_in
from tools import create_default_tools
from tools.base import ToolResult
from tools.file_ops.read_file import ReadFileTool
from tools.file_ops.write_file import WriteFileTool
from tools.files import sha256_hex
from tools.paths import PathRefused

EXAMPLE_CALLS = {
    "write_file": ExampleCalls(
        {"file_path": "new/file.txt", "content": "x"}, {"file_path": "here.txt/below", "content": "x"}
    ),
}


@pytest.fixture
def around(tmp_path: Path) -> ToolEnvironment:
    return ToolEnvironment(tmp_path)


async def _write(around: ToolEnvironment, file_path: str, content: str, **context: Any) -> ToolResult:
    return await WriteFileTool().execute(file_path=file_path, content=content, context=around.context(**context))


async def _read(around: ToolEnvironment, file_path: str) -> None:
    await ReadFileTool().execute(file_path=file_path, context=around.context())


async def _observed(around: ToolEnvironment, file_path: str, content: str) -> dict[str, Any] | None:
    shown = await WriteFileTool().preview({"file_path": file_path, "content": content}, around.context())
    assert shown is not None
    return shown.observed


async def test_a_new_file_gets_exactly_the_given_text_and_its_folders(around: ToolEnvironment) -> None:
    result = await _write(around, "a/b.txt", "x\r\ny\n")

    path = around.workspace / "a/b.txt"
    assert path.read_bytes() == b"x\r\ny\n"
    assert result == ToolResult(
        "Created a/b.txt (5 bytes, +2 -0 lines).",
        display="a/b.txt +2 -0",
        metadata={
            "diff": {
                "path": str(path),
                "before_sha256": None,
                "after_sha256": sha256_hex(b"x\r\ny\n"),
                "unified": f"--- /dev/null\n+++ {path}\n@@ -0,0 +1,2 @@\n+x\r\n+y\n",
                "added": 2,
                "removed": 0,
            }
        },
    )


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"\xef\xbb\xbfa\n", "x\n", b"\xef\xbb\xbfx\n"),
        (b"\xef\xbb\xbfa\n", "\ufeffx\n", b"\xef\xbb\xbfx\n"),
        ("\ufeffa\n".encode("utf-16-le"), "é\n", "\ufeffé\n".encode("utf-16-le")),
        (b"caf\xe9\n", "é\n", b"\xe9\n"),
        (b"no newline", "x\ny", b"x\ny"),
        (b"\0binary", "x\n", b"x\n"),
    ],
)
async def test_an_existing_file_keeps_encoding_mark_and_line_endings(
    around: ToolEnvironment, before: bytes, content: str, after: bytes
) -> None:
    path = around.workspace / "f"
    path.write_bytes(before)
    await around.file_states.set("t1", str(path), sha256_hex(before))

    result = await _write(around, "f", content)

    assert (result.error, path.read_bytes()) == (None, after)


@pytest.mark.parametrize(
    ("is_read", "now", "refusal"),
    [
        (
            False,
            "old",
            "'f' exists and was not read in this conversation; read it with read_file first.",
        ),
        (
            True,
            "theirs",
            "'f' was changed by someone else since it was last read; read it again first.",
        ),
        (True, "old", None),
    ],
    ids=["never-read", "changed", "only-a-new-time"],
)
async def test_only_a_file_that_was_read_is_overwritten(
    around: ToolEnvironment, now: str, refusal: str | None, *, is_read: bool
) -> None:
    path = around.workspace / "f"
    path.write_text("old")
    if is_read:
        await _read(around, "f")
    path.write_text(now)
    os.utime(path, (1, 1))

    result = await _write(around, "f", "new")

    assert result.error == (refusal and f"{refusal} Nothing was written.")
    assert path.read_text() == (now if refusal else "new")


@pytest.mark.parametrize(
    ("before", "meanwhile", "refusal"),
    [
        ("old", "rm d/f", "'d/f' was deleted after the change was approved. Nothing was written."),
        (None, "mkdir e; rmdir d; ln -s e d", "the approval was for"),
        (None, "echo theirs > d/f", "was not read in this conversation"),
    ],
    ids=["deleted", "leads-elsewhere", "appeared"],
)
async def test_what_changed_after_the_approval_is_not_written(
    around: ToolEnvironment, before: str | None, meanwhile: str, refusal: str
) -> None:
    (around.workspace / "d").mkdir()
    if before is not None:
        (around.workspace / "d/f").write_text(before)
        await _read(around, "d/f")
    observed = await _observed(around, "d/f", "new")
    await asyncio.to_thread(subprocess.run, ["sh", "-c", meanwhile], cwd=around.workspace, check=True)

    result = await _write(around, "d/f", "new", observed=observed)

    assert refusal in str(result.error)
    assert b"new" not in [path.read_bytes() for path in around.workspace.rglob("*") if path.is_file()]


async def test_a_write_counts_as_a_read_in_its_own_thread_only(around: ToolEnvironment) -> None:
    path = around.workspace / "f"
    observed = await _observed(around, "f", "two")
    await _write(around, "f", "one")

    # A write of the same thread after the approval is no hindrance.
    again = await _write(around, "f", "two", observed=observed)
    inode = path.stat().st_ino
    same = await _write(around, "f", "two")
    elsewhere = await _write(around, "f", "three", thread_id="t2")

    assert (again.error, elsewhere.error is None, path.read_text()) == (None, False, "two")
    assert (same.output, path.stat().st_ino) == ("f already has this content.", inode)


@pytest.mark.parametrize("given", [".", "/dev/null", "a\0b", "new/", " "])
async def test_what_can_never_be_written_is_refused_before_anyone_is_asked(
    around: ToolEnvironment, given: str
) -> None:
    with pytest.raises(PathRefused):
        await WriteFileTool().preview({"file_path": given, "content": "x"}, around.context())

    assert (await _write(around, given, "x")).error is not None


async def test_a_cancelled_write_is_whole_or_absent_and_leaves_nothing_beside(around: ToolEnvironment) -> None:
    for number in range(20):
        task = asyncio.ensure_future(_write(around, f"f{number}", "x" * 200_000))
        await asyncio.sleep(number * 0.0002)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        names = names_in(around.workspace)
        await asyncio.sleep(0.002)

        assert names_in(around.workspace) == names
        assert not any(name.startswith(".graph-agent") for name in names)
        assert all((around.workspace / name).stat().st_size == 200_000 for name in names)


async def test_default_tools_share_what_they_have_read_without_a_context(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("old")
    read, write, *_ = create_default_tools(workspace=tmp_path)

    refused = await write.execute(file_path="f", content="new")
    await read.execute(file_path="f")
    written = await write.execute(file_path="f", content="new")

    assert (refused.error is None, written.error, (tmp_path / "f").read_text()) == (False, None, "new")


@pytest.mark.parametrize(
    ("reads", "unread"),
    [
        ([(1, 1)], "Lines 2 to 5 of its earlier content were never read in this conversation."),
        ([(2, 1), (4, 1)], "Lines 1, 3, 5 of its earlier content were never read in this conversation."),
        ([(1, 3), (3, 9)], ""),
        ([], ""),
    ],
)
async def test_what_was_never_read_of_a_file_is_said_when_it_is_overwritten(
    around: ToolEnvironment, reads: list[tuple[int, int]], unread: str
) -> None:
    (around.workspace / "f").write_text("1\n2\n3\n4\n5\n")
    results = [
        await ReadFileTool().execute(file_path="f", offset=first, limit=count, context=around.context())
        for first, count in reads
    ]
    if not reads:
        await around.file_states.set("t1", str(around.workspace / "f"), sha256_hex(b"1\n2\n3\n4\n5\n"))
    context = around.context(shown=[one.metadata["shown"] for one in results])

    result = await WriteFileTool().execute(file_path="f", content="x\n", context=context)

    assert result.output.partition("lines).")[2].strip() == unread
