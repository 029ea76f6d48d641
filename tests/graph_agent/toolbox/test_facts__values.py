from pathlib import Path

from graph_agent.ports import Outcome
from graph_agent.toolbox.call_preparation import as_preview
from graph_agent.toolbox.toolbox import as_outcome
from tests.fakes.tool_ports import MemoryBlobs
from tools.base import Preview, ToolResult


def test_an_error_result_is_an_error_outcome_with_its_output() -> None:
    result = ToolResult("half", display="d", error="e", metadata={"error_type": "timeout", "path": Path("/x")})

    assert as_outcome(result) == Outcome("error", "half", "e", "d", {"error_type": "timeout", "path": "/x"})


def test_a_short_preview_is_shown_whole(tmp_path: Path) -> None:
    blobs = MemoryBlobs(tmp_path)

    assert as_preview(Preview("text", "short"), blobs) == {"kind": "text", "text": "short", "observed": None}
    assert blobs.stored == {}


def test_a_long_preview_says_what_is_not_shown_and_where_it_is(tmp_path: Path) -> None:
    blobs = MemoryBlobs(tmp_path)
    text = "0123456789\n" * 3000

    shown = as_preview(Preview("diff", text, {"path": "/f"}), blobs)

    (reference,) = blobs.stored
    kept = 11 * 1818
    assert shown == {
        "kind": "diff",
        "text": f"{text[:kept]}[… 1183 more lines, {33_000 - kept} characters, are not shown here; "
        f"the whole text is {reference}]\n",
        "observed": {"path": "/f"},
        "full": reference,
        "full_chars": 33_000,
    }
