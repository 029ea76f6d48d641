import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.example_calls import ExampleCalls
from tests.fakes.tool_ports import ToolSurroundings
from tests.fakes.waiting import names_in
from tools import create_default_tools
from tools.base import InterruptedCall, ToolResult
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
def around(tmp_path: Path) -> ToolSurroundings:
    return ToolSurroundings(tmp_path)


async def _write(around: ToolSurroundings, file_path: str, content: str, **context: Any) -> ToolResult:
    return await WriteFileTool().execute(file_path=file_path, content=content, context=around.context(**context))


async def _read(around: ToolSurroundings, file_path: str) -> None:
    await ReadFileTool().execute(file_path=file_path, context=around.context())


async def _seen(around: ToolSurroundings, file_path: str, content: str) -> dict[str, Any] | None:
    shown = await WriteFileTool().preview({"file_path": file_path, "content": content}, around.context())
    assert shown is not None
    return shown.observed


async def test_a_new_file_gets_exactly_the_given_text_and_its_folders(around: ToolSurroundings) -> None:
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
    around: ToolSurroundings, before: bytes, content: str, after: bytes
) -> None:
    path = around.workspace / "f"
    path.write_bytes(before)
    await around.file_states.set("t1", str(path), sha256_hex(before))

    result = await _write(around, "f", content)

    assert (result.error, path.read_bytes()) == (None, after)


async def test_a_character_the_files_encoding_lacks_is_refused(around: ToolSurroundings) -> None:
    (around.workspace / "f").write_bytes(b"caf\xe9\n")
    await _read(around, "f")

    result = await _write(around, "f", "→")

    assert result.error == "'f' is encoded in iso-8859-1, which has no '→'; write the text without that character."
    assert (around.workspace / "f").read_bytes() == b"caf\xe9\n"


async def test_a_file_never_read_is_not_overwritten(around: ToolSurroundings) -> None:
    (around.workspace / "f").write_text("old")

    result = await _write(around, "f", "new")

    assert result.error == (
        "'f' exists and was not read in this conversation; read it with read_file first. Nothing was written."
    )
    assert (around.workspace / "f").read_text() == "old"


async def test_a_file_changed_since_it_was_read_is_not_overwritten(around: ToolSurroundings) -> None:
    (around.workspace / "f").write_text("old")
    await _read(around, "f")
    (around.workspace / "f").write_text("theirs")

    result = await _write(around, "f", "new")

    assert (
        result.error
        == "'f' was changed by someone else since it was last read; read it again first. Nothing was written."
    )
    assert (around.workspace / "f").read_text() == "theirs"


async def test_the_same_content_with_a_new_time_is_no_change(around: ToolSurroundings) -> None:
    (around.workspace / "f").write_text("old")
    await _read(around, "f")
    os.utime(around.workspace / "f", (1, 1))

    assert (await _write(around, "f", "new")).error is None


async def test_a_write_counts_as_a_read_in_its_own_thread_only(around: ToolSurroundings) -> None:
    await _write(around, "f", "one")

    again = await _write(around, "f", "two")
    elsewhere = await _write(around, "f", "three", thread_id="t2")

    assert again.error is None
    assert elsewhere.error is not None
    assert (around.workspace / "f").read_text() == "two"


async def test_a_preview_shows_the_diff_and_changes_nothing(around: ToolSurroundings) -> None:
    path = around.workspace / "f"
    path.write_text("a\n")
    status = path.stat()

    shown = await WriteFileTool().preview({"file_path": "f", "content": "b\n"}, around.context())

    assert shown is not None
    assert (shown.kind, shown.text) == ("diff", f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-a\n+b\n")
    assert shown.observed == {
        "path": str(path),
        "device": status.st_dev,
        "inode": status.st_ino,
        "sha256": sha256_hex(b"a\n"),
    }
    assert path.read_text() == "a\n"


async def test_a_file_deleted_after_consent_is_not_written(around: ToolSurroundings) -> None:
    (around.workspace / "f").write_text("old")
    await _read(around, "f")
    seen = await _seen(around, "f", "new")
    (around.workspace / "f").unlink()

    result = await _write(around, "f", "new", observed=seen)

    assert result.error == "'f' was deleted after the change was approved. Nothing was written."
    assert not (around.workspace / "f").exists()


async def test_a_path_that_leads_elsewhere_after_consent_is_not_written(around: ToolSurroundings) -> None:
    seen = await _seen(around, "d/f", "new")
    (around.workspace / "other").mkdir()
    (around.workspace / "d").symlink_to("other")

    result = await _write(around, "d/f", "new", observed=seen)

    assert result.error is not None
    assert "the approval was for" in result.error
    assert names_in(around.workspace / "other") == []


async def test_a_file_that_appeared_after_consent_is_not_overwritten(around: ToolSurroundings) -> None:
    seen = await _seen(around, "f", "new")
    (around.workspace / "f").write_text("theirs")

    result = await _write(around, "f", "new", observed=seen)

    assert result.error is not None
    assert (around.workspace / "f").read_text() == "theirs"


async def test_a_write_of_the_same_thread_between_consent_and_run_is_no_hindrance(around: ToolSurroundings) -> None:
    seen = await _seen(around, "f", "two")
    await _write(around, "f", "one")

    result = await _write(around, "f", "two", observed=seen)

    assert (result.error, (around.workspace / "f").read_text()) == (None, "two")


async def test_a_parted_hard_link_is_told(around: ToolSurroundings) -> None:
    (around.workspace / "f").write_text("old\n")
    os.link(around.workspace / "f", around.workspace / "g")
    await _read(around, "f")

    result = await _write(around, "f", "new\n")

    assert result.output == (
        "Wrote f (4 bytes, +1 -1 lines). The file had 2 hard links: the other names keep the old content."
    )
    assert (around.workspace / "g").read_text() == "old\n"


async def test_content_that_is_there_already_is_not_written_again(around: ToolSurroundings) -> None:
    (around.workspace / "f").write_text("same")
    await _read(around, "f")
    inode = (around.workspace / "f").stat().st_ino

    result = await _write(around, "f", "same")

    assert result.output == "f already has this content."
    assert (around.workspace / "f").stat().st_ino == inode


@pytest.mark.parametrize("given", [".", "/dev/null", "a\0b", "new/", " "])
async def test_what_can_never_be_written_is_refused_before_anyone_is_asked(
    around: ToolSurroundings, given: str
) -> None:
    with pytest.raises(PathRefused):
        await WriteFileTool().preview({"file_path": given, "content": "x"}, around.context())

    assert (await _write(around, given, "x")).error is not None


async def test_what_is_foreseen_is_what_comes(around: ToolSurroundings) -> None:
    path = around.workspace / "f"
    path.write_bytes(b"a\r\n")
    await _read(around, "f")

    effect = await WriteFileTool().predict_effect({"file_path": "f", "content": "b\n"}, around.context())
    await _write(around, "f", "b\n")

    assert effect is not None
    assert (effect.path, effect.before, effect.after_sha256) == (str(path), b"a\r\n", sha256_hex(path.read_bytes()))


@pytest.mark.parametrize(
    ("now", "verdict"),
    [(b"new", "already_applied"), (b"old", "not_applied"), (b"third", "something_else"), (None, "something_else")],
)
async def test_what_became_of_a_broken_off_write_is_read_from_the_content(
    around: ToolSurroundings, now: bytes | None, verdict: str
) -> None:
    path = around.workspace / "f"
    if now is not None:
        path.write_bytes(now)

    found = await WriteFileTool().reconcile(InterruptedCall({}, str(path), sha256_hex(b"old"), sha256_hex(b"new")))

    assert found.verdict == verdict


async def test_a_missing_file_that_was_to_be_created_was_not_applied(around: ToolSurroundings) -> None:
    path = around.workspace / "f"

    found = await WriteFileTool().reconcile(InterruptedCall({}, str(path), None, sha256_hex(b"new")))

    assert (found.verdict, found.detail) == ("not_applied", f"{path} does not exist, as before the call.")


async def test_without_a_forecast_nothing_is_known() -> None:
    assert (await WriteFileTool().reconcile(InterruptedCall({}))).verdict == "unknown"


async def test_a_cancelled_write_is_whole_or_absent_and_leaves_nothing_beside(around: ToolSurroundings) -> None:
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
