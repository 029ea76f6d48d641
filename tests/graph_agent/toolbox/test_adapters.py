from pathlib import Path

import pytest

from graph_agent.errors import StorageError
from graph_agent.toolbox.adapters import StoredBlobs, progress_in_words
from tests.fakes.tool_ports import MemoryBlobs
from tools.base import BytesFetched, FilesSearched, McpProgress, Progress, ShellOutput, SubAgentStep


@pytest.mark.parametrize(
    ("progress", "words"),
    [
        (ShellOutput("x\n"), ("shell_output", "x\n")),
        (BytesFetched(5, 10), ("bytes_fetched", "5 of 10 bytes")),
        (BytesFetched(5), ("bytes_fetched", "5 bytes")),
        (FilesSearched(3), ("files_searched", "3 files")),
        (McpProgress(1, 4), ("message", "1 of 4")),
        (McpProgress(1, message="half"), ("message", "half")),
        (SubAgentStep(2, "reads"), ("message", "step 2: reads")),
    ],
)
def test_every_progress_has_words(progress: Progress, words: tuple[str, str]) -> None:
    assert progress_in_words(progress) == words


def test_an_absent_blob_is_a_lookup_error(tmp_path: Path) -> None:
    with pytest.raises(LookupError):
        StoredBlobs(MemoryBlobs(tmp_path)).get("blob:sha256:00")


class _FullDisk(MemoryBlobs):
    def put(self, data: bytes) -> str:
        raise StorageError("the disk is full")


def test_a_full_disk_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="the disk is full"):
        StoredBlobs(_FullDisk(tmp_path)).put(b"x")
