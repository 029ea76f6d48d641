from pathlib import Path

from graph_agent.calls import process_marker
from graph_agent.ports import JournalRow
from graph_agent.storage.blobs import FileBlobs
from graph_agent.toolbox.tool_context import ProcessTraces, recorded_traces


def test_an_attempt_is_known_by_its_group_its_mark_and_its_spool(tmp_path: Path) -> None:
    blobs = FileBlobs(tmp_path / "blobs")
    row = JournalRow("c1", 2, "life", "executing", "", process_group=7, process_started="9")

    found = recorded_traces(row, "t1", blobs)

    assert found == ProcessTraces(7, "9", process_marker("life", "c1", 2), str(blobs.spool("t1", "c1", 2)))


def test_an_attempt_without_a_process_left_no_traces(tmp_path: Path) -> None:
    row = JournalRow("c1", 1, "life", "executing", "")

    assert recorded_traces(row, "t1", FileBlobs(tmp_path)) is None
