from pathlib import Path

from tests.fakes.tool_ports import MemoryBlobs
from tools.base import ToolResult
from tools.running import limit_result


def test_a_short_result_stays_as_it_is(tmp_path: Path) -> None:
    result = ToolResult("short", metadata={"a": 1})

    assert limit_result(result, 5, MemoryBlobs(tmp_path)) is result


def test_a_long_result_keeps_head_and_tail_and_says_how_to_read_the_rest(tmp_path: Path) -> None:
    blobs = MemoryBlobs(tmp_path)
    whole = "".join(f"line {number}\n" for number in range(1000))

    shaped = limit_result(ToolResult(whole, display="d", metadata={"a": 1}), 600, blobs)

    (reference,) = blobs.stored
    head, notice, tail = shaped.output.partition(f"[… left out here: the whole output has {len(whole)} characters")
    assert blobs.stored[reference] == whole.encode()
    assert head.startswith("line 0\nline 1\n")
    assert f'read_file(file_path="{reference}", offset=..., limit=...)' in tail
    assert tail.endswith("line 998\nline 999\n")
    assert notice
    assert len(shaped.output) < 900
    assert shaped.metadata == {"a": 1, "truncated": True, "full_chars": len(whole), "blob": reference}


def test_without_a_store_the_notice_names_no_reference() -> None:
    shaped = limit_result(ToolResult("x" * 100), 30, None)

    assert "narrow the call" in shaped.output
    assert shaped.metadata == {"truncated": True, "full_chars": 100}


class _FullDisk(MemoryBlobs):
    def put(self, data: bytes) -> str:
        raise OSError("no room")


def test_an_output_that_cannot_be_stored_fails_no_call(tmp_path: Path) -> None:
    shaped = limit_result(ToolResult("x" * 100), 30, _FullDisk(tmp_path))

    assert (shaped.error, shaped.metadata) == (None, {"truncated": True, "full_chars": 100})
