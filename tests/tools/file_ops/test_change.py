import os
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.tool_ports import ToolEnvironment
from tests.fakes.waiting import names_in
from tools.file_ops.change import FileChangeTool, apply_change, find_conflict, plan_change, reconcile_file
from tools.file_ops.edit_file import EditFileTool
from tools.file_ops.write_file import WriteFileTool
from tools.files import Snapshot, read_snapshot, sha256_hex
from tools.paths import PathRefused, ResolvedPath, resolve
from tools.result import FileEffect, InterruptedCall, Preview
from tools.running import execute


@pytest.fixture
def around(tmp_path: Path) -> ToolEnvironment:
    return ToolEnvironment(tmp_path)


def test_a_change_is_written_once_and_only_where_there_is_one(tmp_path: Path) -> None:
    around = ToolEnvironment(tmp_path)
    path = around.workspace / "f"
    path.write_bytes(b"a\n")
    before = read_snapshot(resolve("f", workspace=around.workspace), 100)
    inode = path.stat().st_ino

    apply_change(plan_change(before, "a\n", b"a\n"), around.context())
    same = path.stat().st_ino
    apply_change(plan_change(before, "a\n", b"b\n"), around.context())

    assert (same, path.read_bytes(), names_in(around.workspace)) == (inode, b"b\n", ["f"])


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


@pytest.mark.parametrize(
    ("before", "now", "verdict", "detail"),
    [
        (b"old", b"new", "already_applied", "{} has exactly the content this call was to write."),
        (None, b"new", "already_applied", "{} has exactly the content this call was to write."),
        (b"old", b"old", "not_applied", "{} has exactly the content, as before the call."),
        (None, None, "not_applied", "{} does not exist, as before the call."),
        (b"old", b"third", "something_else", "{} has neither the old nor the new content: something else changed"),
        (b"old", None, "something_else", "{} no longer exists: something else changed it too."),
        (b"old", "pipe", "unknown", "named pipe"),
    ],
)
def test_the_outcome_of_an_interrupted_write_is_read_from_the_content(
    tmp_path: Path, before: bytes | None, now: bytes | str | None, verdict: str, detail: str
) -> None:
    path = tmp_path.resolve() / "f"
    if isinstance(now, bytes):
        path.write_bytes(now)
    elif now == "pipe":
        os.mkfifo(path)

    found = reconcile_file(
        InterruptedCall({}, str(path), None if before is None else sha256_hex(before), sha256_hex(b"new"))
    )

    assert (found.verdict, detail.format(path) in found.detail) == (verdict, True)


def test_without_a_prediction_the_outcome_is_unknown() -> None:
    assert reconcile_file(InterruptedCall({})).verdict == "unknown"


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        (WriteFileTool(), {"file_path": "f", "content": "b"}),
        (EditFileTool(), {"file_path": "f", "old_string": "a", "new_string": "b"}),
    ],
)
class TestEveryFileTool:
    """What a preview and a prediction say before, and the result after."""

    async def test_the_preview_is_the_diff_and_the_prediction_comes_true(
        self, around: ToolEnvironment, tool: FileChangeTool, arguments: dict[str, str]
    ) -> None:
        path = around.workspace / "f"
        path.write_bytes(b"a")
        path.chmod(0o640)
        status, digest = path.stat(), sha256_hex(b"a")
        await around.file_states.set("t1", str(path), digest)

        shown = await tool.preview(arguments, around.context())
        effect = await tool.predict_effect(arguments, around.context())
        unchanged = path.read_bytes()
        result = await execute(tool, arguments, around.context())

        observed = {"path": str(path), "device": status.st_dev, "inode": status.st_ino, "sha256": digest}
        end = "\\ No newline at end of file\n"
        diff = f"--- {path}\n+++ {path}\n@@ -1 +1 @@\n-a\n{end}+b\n{end}"
        assert (shown, unchanged) == (Preview("diff", diff, observed), b"a")
        assert effect == FileEffect(str(path), b"a", sha256_hex(b"b"), before_mode=0o640)
        assert (result.error, path.read_bytes(), result.metadata["diff"]["unified"]) == (None, b"b", diff)
        call = InterruptedCall(dict(arguments), effect.path, digest, effect.after_sha256)
        assert (await tool.reconcile(call)).verdict == "already_applied"

    async def test_a_character_the_encoding_lacks_is_refused(
        self, around: ToolEnvironment, tool: FileChangeTool, arguments: dict[str, str]
    ) -> None:
        path, data = around.workspace / "f", b"\xe9 a"
        path.write_bytes(data)
        await around.file_states.set("t1", str(path), sha256_hex(data))

        impossible = {key: "→" if text == "b" else text for key, text in arguments.items()}
        result = await execute(tool, impossible, around.context())

        refusal = "'f' is encoded in iso-8859-1, which has no '→'; write the text without that character."
        assert (result.error, path.read_bytes()) == (refusal, data)

    async def test_broken_hard_links_are_named(
        self, around: ToolEnvironment, tool: FileChangeTool, arguments: dict[str, str]
    ) -> None:
        path, other = around.workspace / "f", around.workspace / "g"
        path.write_bytes(b"a")
        other.hardlink_to(path)
        await around.file_states.set("t1", str(path), sha256_hex(b"a"))

        result = await execute(tool, arguments, around.context())

        assert result.output.endswith(" The file had 2 hard links: the other names keep the old content.")
        assert (path.read_bytes(), other.read_bytes()) == (b"b", b"a")


class _Editor:
    def __init__(self, answer: bytes | type[TimeoutError] | None) -> None:
        self._answer = answer

    async def unsaved(self, path: Path, on_disk: bytes | None) -> bytes | None:
        assert (path.name, on_disk) == ("f", b"old")
        if isinstance(self._answer, type):
            raise self._answer
        return self._answer


@pytest.mark.parametrize("tool", [WriteFileTool, EditFileTool])
@pytest.mark.parametrize(
    ("answer", "refusal"),
    [(None, None), (b"typed", "'f' has unsaved changes in"), (TimeoutError, "editor did not say whether 'f' has")],
)
async def test_a_file_with_unsaved_text_in_the_users_editor_is_not_changed(
    around: ToolEnvironment, tool: type[FileChangeTool], answer: Any, refusal: str | None
) -> None:
    path = around.workspace / "f"
    path.write_text("old")
    await around.file_states.set("t1", str(path), _OLD)
    context = around.context(buffers=_Editor(answer))
    arguments = {"file_path": "f", "content": "new"}
    if tool is EditFileTool:
        arguments = {"file_path": "f", "old_string": "old", "new_string": "new"}

    try:
        shown: object = await tool().preview(arguments, context)
    except PathRefused as refused:
        shown = str(refused)
    result = await execute(tool(), arguments, context)

    if refusal is None:
        assert (isinstance(shown, Preview), result.error, path.read_text()) == (True, None, "new")
        return
    assert (refusal in str(shown), refusal in str(result.error), path.read_text()) == (True, True, "old")
