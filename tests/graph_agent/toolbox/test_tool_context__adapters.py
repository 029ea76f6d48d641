import math
from pathlib import Path

import pytest

from graph_agent.errors import StorageError
from graph_agent.toolbox.tool_context import StoredBlobs, format_progress
from tests.fakes.tool_ports import MemoryBlobs
from tools.base import BytesFetched, FilesSearched, McpProgress, Progress, ShellOutput, SubAgentStep


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (ShellOutput("x\n"), ("shell_output", "x\n", None, None)),
        (BytesFetched(5, 10), ("bytes_fetched", "5 of 10 bytes (50 %)", 5, 10)),
        (BytesFetched(15, 10), ("bytes_fetched", "15 of 10 bytes", 15, 10)),
        (BytesFetched(5), ("bytes_fetched", "5 bytes", 5, None)),
        (FilesSearched(3), ("files_searched", "3 files", 3, None)),
        (McpProgress(1, 4), ("mcp_progress", "1 of 4 (25 %)", 1, 4)),
        (McpProgress(1, 4, "half"), ("mcp_progress", "half  1 of 4 (25 %)", 1, 4)),
        (McpProgress(math.nan, math.inf), ("mcp_progress", "0", 0, None)),
        (McpProgress(1, message="half"), ("mcp_progress", "half", 1, None)),
        (SubAgentStep(2, "reads"), ("sub_agent_step", "step 2: reads", 2, None)),
    ],
)
def test_every_progress_has_words(progress: Progress, words: tuple[str, str, float | None, float | None]) -> None:
    assert format_progress(progress) == words


def test_an_absent_blob_is_a_lookup_error(tmp_path: Path) -> None:
    with pytest.raises(LookupError):
        StoredBlobs(MemoryBlobs(tmp_path)).get("blob:sha256:00")


class _FullDisk(MemoryBlobs):
    def put(self, data: bytes) -> str:
        raise StorageError("the disk is full")


def test_a_full_disk_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="the disk is full"):
        StoredBlobs(_FullDisk(tmp_path)).put(b"x")
