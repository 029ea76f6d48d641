from pathlib import Path

import pytest

from tools.context import MemoryFileStates, ShellOutput, ToolContext
from tools.paths import PathRefused


async def test_file_states_are_kept_per_thread() -> None:
    states = MemoryFileStates()

    await states.set("t1", "/f", "d1")
    await states.set("t1", "/f", "d2")

    assert (await states.get("t1", "/f"), await states.get("t2", "/f")) == ("d2", None)


def test_a_context_needs_a_workspace_only_and_shares_nothing() -> None:
    first, second = ToolContext(Path("/w")), ToolContext(Path("/w"))

    first.progress(ShellOutput("nobody listens"))
    first.cancellation.set()

    assert first.file_states is not second.file_states
    assert not second.cancellation.is_set()


def test_a_path_that_leads_elsewhere_than_when_it_was_judged_is_refused(tmp_path: Path) -> None:
    ws = tmp_path.resolve()
    (ws / "link").symlink_to("real")

    assert ToolContext(ws).resolve("link").path == ws / "real"
    assert ToolContext(ws, approved_paths=frozenset((ws / "real",))).resolve("link").path == ws / "real"
    with pytest.raises(PathRefused, match="at this very moment"):
        ToolContext(ws, approved_paths=frozenset((ws / "link",))).resolve("link")
