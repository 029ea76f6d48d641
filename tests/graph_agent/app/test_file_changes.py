from pathlib import Path

import pytest

from graph_agent.app.file_changes import ChangedFile, thread_changes
from graph_agent.app.opening import open_session


@pytest.fixture
async def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace in which a thread has written, appended and created."""
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    workspace = tmp_path.resolve() / "ws"
    workspace.mkdir()
    for name in ("a.txt", "b.txt"):
        (workspace / name).write_text("old\n")
    flags = {"db": str(tmp_path / "agent.db"), "mode": "bypassPermissions"}
    session = await open_session(workspace=workspace, thread_id="t", flags=flags)
    for said in ("read a.txt", "append to a.txt: one", "append to a.txt: two", "read b.txt", "append to b.txt: x"):
        assert (await session.send(said)).status == "done"
    await session.send("create d/new.txt with the text new")
    await session.close()
    return workspace


async def test_files_are_compared_from_before_the_first_change_to_now(played: Path) -> None:
    (played / "b.txt").write_text("old\n")

    found = thread_changes(played.parent / "agent.db", "t", None)

    assert found.files == (
        ChangedFile("a.txt", "modified", "--- a.txt\n+++ a.txt\n@@ -1 +1,3 @@\n old\n+one\n+two\n", 2, 0),
        ChangedFile("d/new.txt", "created", "--- /dev/null\n+++ d/new.txt\n@@ -0,0 +1 @@\n+new\n", 1, 0),
    )


async def test_what_others_did_is_marked_and_what_is_not_text_is_not_printed(played: Path) -> None:
    (played / "a.txt").unlink()
    (played / "b.txt").write_bytes(b"\0\1")
    (played / "d" / "new.txt").unlink()
    (played / "d" / "new.txt").symlink_to(played / "b.txt")

    removed, binary, link = thread_changes(played.parent / "agent.db", "t", None).files

    gone = "--- a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n"
    assert removed == ChangedFile("a.txt", "removed", gone, 0, 1, "it was removed by somebody else")
    assert (binary.diff, binary.by_others) == (
        "Binary file b.txt differs\n",
        "it was changed by somebody else since",
    )
    assert (link.status, "now leads through a link" in link.by_others) == ("unreadable", True)
