from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contracts.example_calls import ExampleCalls
from tests.fakes.tool_ports import ToolEnvironment
from tools.base import Limits, ToolResult
from tools.file_ops.edit_file import EditFileTool
from tools.file_ops.read_file import ReadFileTool
from tools.file_ops.write_file import WriteFileTool
from tools.files import sha256_hex
from tools.paths import PathRefused
from tools.running import normalize_arguments
from tools.schema import InvalidArguments

EXAMPLE_CALLS = {
    "edit_file": ExampleCalls(
        {"file_path": "here.txt", "old_string": "here", "new_string": "there"},
        {"file_path": "missing.txt", "old_string": "a", "new_string": "b"},
    ),
}

_AT_HOME = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.fixture
def around(tmp_path: Path) -> ToolEnvironment:
    return ToolEnvironment(tmp_path)


def _put(around: ToolEnvironment, data: bytes) -> Path:
    path = around.workspace / "f"
    path.write_bytes(data)
    return path


_ARGUMENTS: dict[str, Any] = {"file_path": "f", "old_string": "old", "new_string": "new"}


async def _edit(around: ToolEnvironment, old: str, new: str, **more: Any) -> ToolResult:
    return await EditFileTool().execute(
        file_path="f", old_string=old, new_string=new, context=around.context(), **more
    )


async def test_an_edit_tells_what_it_did_and_carries_the_diff(around: ToolEnvironment) -> None:
    path = _put(around, b"a\nb\n")

    result = await _edit(around, "b", "c")

    assert path.read_bytes() == b"a\nc\n"
    assert result == ToolResult(
        "Edited f in 1 place (+1 -1 lines).",
        display="f +1 -1",
        metadata={
            "diff": {
                "path": str(path),
                "before_sha256": sha256_hex(b"a\nb\n"),
                "after_sha256": sha256_hex(b"a\nc\n"),
                "unified": f"--- {path}\n+++ {path}\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
                "added": 1,
                "removed": 1,
            }
        },
    )


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"\xef\xbb\xbfa\r\nb\r\n", "b", "1\n2", b"\xef\xbb\xbfa\r\n1\r\n2\r\n"),
        ("\ufeffa\r\né".encode("utf-16-le"), "é", "ü\n", "\ufeffa\r\nü\r\n".encode("utf-16-le")),
        ("\ufeffa\né".encode("utf-16-be"), "a", "ö", "\ufeffö\né".encode("utf-16-be")),
        ("\ufeffa\nb".encode(), "a", "\ufeffö", "\ufeffö\nb".encode()),
        ("\ufeffa\né".encode("utf-16-be"), "\ufeffa", "\ufeffö", "\ufeffö\né".encode("utf-16-be")),
        (b"caf\xe9 x\n", "x", "\u00fc", b"caf\xe9 \xfc\n"),
        ("# 注释\nx = '中文'\n".encode("gbk"), "中文", "英文", "# 注释\nx = '英文'\n".encode("gbk")),
        ("naïve “ü” ".encode() + b"\xff x\n", "x", "é", "naïve “ü” ".encode() + b"\xff \xc3\xa9\n"),
        (b"a\rb\rc", "b", "1\n2", b"a\r1\r2\rc"),
    ],
)
async def test_encoding_mark_and_line_ends_stay(
    around: ToolEnvironment, before: bytes, old: str, new: str, after: bytes
) -> None:
    path = _put(around, before)

    result = await _edit(around, old, new)

    assert (result.error, path.read_bytes()) == (None, after)


@_AT_HOME
@given(before=st.binary(max_size=40), after=st.binary(max_size=40))
async def test_bytes_around_the_match_are_untouched_whatever_they_are(
    around: ToolEnvironment, before: bytes, after: bytes
) -> None:
    data = before + b"<old-text>" + after
    path = _put(around, data)

    result = await EditFileTool().execute(
        file_path="f", old_string="<old-text>", new_string="new", context=around.context(thread_id=sha256_hex(data))
    )

    now = path.read_bytes()
    assert now == (data if result.error else before + b"new" + after)


@_AT_HOME
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
async def test_an_edit_and_its_reverse_give_the_same_bytes(around: ToolEnvironment, text: str) -> None:
    data = f"<{text}>".encode()
    path = _put(around, data)
    context = around.context(thread_id=sha256_hex(data))

    await EditFileTool().execute(file_path="f", old_string="<", new_string="«A«", context=context, mode="exact")
    await EditFileTool().execute(file_path="f", old_string="«A«", new_string="<", context=context, mode="exact")

    assert path.read_bytes() == data


async def test_several_edits_are_made_all_or_none(around: ToolEnvironment) -> None:
    path = _put(around, b"a b c\n")
    good = [{"old_string": "a", "new_string": "x"}, {"old_string": "c", "new_string": "x", "replace_all": True}]
    bad = [{"old_string": "b", "new_string": "y"}, {"old_string": "q", "new_string": "z"}]

    done = await EditFileTool().execute(file_path="f", edits=good, context=around.context())
    failed = await EditFileTool().execute(file_path="f", edits=bad, context=around.context())

    unchanged = path.read_bytes()
    loose = await _edit(around, "x  b", "x y")

    assert (done.output, unchanged) == ("Edited f in 2 places (+1 -1 lines).", b"x b x\n")
    assert loose.output == "Edited f in 1 place (+1 -1 lines). The match was not exact: white space was ignored."
    assert (failed.error or "").startswith("edit 2 of 2 in 'f': old_string was not found.")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "Give old_string and new_string, or edits with several of them."),
        ({"old_string": "a"}, "Give old_string and new_string, or edits with several of them."),
        (
            {"old_string": "", "new_string": "x"},
            "old_string is empty; give the text to replace, or use write_file.",
        ),
        (
            {"old_string": "a", "new_string": "b", "edits": [{"old_string": "a", "new_string": "b"}]},
            "Give either edits or old_string and new_string, not both.",
        ),
    ],
)
async def test_unclear_wishes_are_refused_before_anyone_is_asked(
    around: ToolEnvironment, arguments: dict[str, Any], why: str
) -> None:
    path = _put(around, b"abc")

    result = await EditFileTool().execute(file_path="f", context=around.context(), **arguments)

    assert (EditFileTool().validate({"file_path": "f", **arguments}), result.error) == (why, why)
    assert path.read_bytes() == b"abc"


def test_short_names_of_the_arguments_are_understood_and_unknown_modes_are_not() -> None:
    names = {"path": "f", "old": "a", "new": "b", "replace_all": "true"}

    arguments = normalize_arguments(EditFileTool(), names)

    assert arguments == {"file_path": "f", "old_string": "a", "new_string": "b", "replace_all": True}
    with pytest.raises(InvalidArguments, match="mode"):
        normalize_arguments(EditFileTool(), {**arguments, "mode": "fuzzy"})


async def test_no_earlier_read_is_needed_but_a_change_since_one_is_noticed(around: ToolEnvironment) -> None:
    path = _put(around, b"one two\n")
    first = await _edit(around, "one", "1")
    path.write_bytes(b"theirs two\n")

    second = await _edit(around, "two", "2")
    await ReadFileTool().execute(file_path="f", context=around.context())
    third = await _edit(around, "two", "2")
    whole = await WriteFileTool().execute(file_path="f", content="whole\n", context=around.context())

    assert (first.error, third.error, whole.error, path.read_bytes()) == (None, None, None, b"whole\n")
    assert second.error == (
        "'f' was changed by someone else since it was last read; read it again first. Nothing was written."
    )


async def test_what_changed_after_it_was_shown_is_not_edited(around: ToolEnvironment) -> None:
    path = _put(around, b"old\n")
    shown = await EditFileTool().preview(_ARGUMENTS, around.context())
    path.write_bytes(b"old and more\n")

    result = await EditFileTool().execute(**_ARGUMENTS, context=around.context(observed=shown and shown.observed))

    assert (result.error is None, path.read_bytes()) == (False, b"old and more\n")


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\0old", "is a binary file"),
        (b"old" * 20, "'f' has 60 bytes; files over 49 bytes are not changed."),
        (None, "does not exist; create it with"),
    ],
    ids=["binary", "large", "missing"],
)
async def test_what_cannot_be_edited_is_refused_before_anyone_is_asked(
    around: ToolEnvironment, data: bytes | None, why: str
) -> None:
    if data is not None:
        _put(around, data)
    context = around.context(limits=Limits(file_bytes=49))

    with pytest.raises(PathRefused, match=why):
        await EditFileTool().preview(_ARGUMENTS, context)
    assert why in str((await EditFileTool().execute(**_ARGUMENTS, context=context)).error)
    assert await EditFileTool().predict_effect(_ARGUMENTS, context) is None
