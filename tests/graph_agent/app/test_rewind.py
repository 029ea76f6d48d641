import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graph_agent.app.file_changes import ChangedFile, thread_changes
from graph_agent.app.opening import open_session
from graph_agent.app.rewind import RewindOutcome, RewindRequest, rewind
from graph_agent.errors import ThreadHeld, UsageError
from graph_agent.session.time_travel import Conflict, RewindPlan
from tools.shell_ops import bash
from tools.shell_ops.changed_files import take_snapshot

_THREAD = "t"


class Played:
    """A thread in a workspace, driven by the offline commands with everything allowed."""

    def __init__(self, folder: Path) -> None:
        self.database = folder / "home" / "agent.db"
        self.workspace = folder.resolve() / "ws"
        self.workspace.mkdir()

    async def say(self, *commands: str) -> str:
        flags: dict[str, Any] = {"db": str(self.database), "mode": "bypassPermissions"}
        session = await open_session(workspace=self.workspace, thread_id=_THREAD, flags=flags)
        try:
            await session.start()
            for command in commands:
                rest = await session.send(command)
                assert rest.status == "done", rest
        finally:
            await session.close()
        return rest.checkpoint_id

    async def back(
        self, text: str, consents: Callable[[RewindPlan], bool] = lambda _: True, **order: Any
    ) -> RewindOutcome:
        return await rewind(self.database, RewindRequest(text, **order), consents)

    def files(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.workspace)): path.read_text() if path.is_file() else "folder"
            for path in sorted(self.workspace.rglob("*"))
        }


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    return Played(tmp_path)


async def test_files_are_rewound_with_the_conversation_and_restored_by_an_undo(played: Played) -> None:
    (played.workspace / "a.txt").write_text("old\n")
    start = await played.say("read a.txt")
    await played.say("append to a.txt: more", "append to a.txt: and more", "create d/e/b.txt with the text new")
    after = played.files()

    looked = await played.back(start, is_dry=True)
    refused = await played.back(start, lambda _: False)
    unchanged = played.files()
    done = await played.back(start)
    before = played.files()
    undone = await played.back(_THREAD, is_undo=True)

    assert (looked.is_done, refused.is_done, unchanged, looked.head) == (False, False, after, refused.head)
    assert {one.path for one in looked.plan.rewind.files} >= {str(played.workspace / "a.txt")}
    assert (done.is_done, done.left, done.plan.conflicts, before) == (True, (), (), {"a.txt": "old\n"})
    assert (undone.is_done, played.files()) == (True, after)
    with pytest.raises(UsageError, match="no rewind to undo"):
        await played.back(_THREAD, is_undo=True)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda file: file.write_text("theirs\n"), "it was changed by somebody else since"),
        (lambda file: file.unlink(), "it was removed by somebody else"),
    ],
)
async def test_a_file_that_somebody_else_changed_stops_it_unless_forced_and_even_then_can_be_restored(
    played: Played, change: Callable[[Path], object], why: str
) -> None:
    file = played.workspace / "a.txt"
    file.write_text("old\n")
    start = await played.say("read a.txt")
    await played.say("append to a.txt: more")
    change(file)
    theirs = played.files()

    stopped = await played.back(start)
    left_alone = played.files()
    await played.back(start, is_forced=True)
    forced = played.files()
    await played.back(_THREAD, is_undo=True)

    assert (stopped.is_done, stopped.plan.conflicts) == (False, (Conflict(str(file), why),))
    assert (left_alone, forced, played.files()) == (theirs, {"a.txt": "old\n"}, theirs)


async def test_a_foreign_change_between_two_of_the_thread_stops_it_too(played: Played) -> None:
    file = played.workspace / "a.txt"
    file.write_text("old\n")
    start = await played.say("read a.txt")
    await played.say("append to a.txt: more")
    file.write_text("theirs\n")
    await played.say("read a.txt", "append to a.txt: more")

    stopped = await played.back(start)

    why = "somebody else changed it between two changes of this thread"
    assert stopped.plan.conflicts == (Conflict(str(file), why),)


async def test_a_link_that_took_the_files_place_is_not_followed_even_by_force(
    played: Played, tmp_path: Path
) -> None:
    start = await played.say("list files")
    await played.say("create d/a.txt with the text new")
    outside = tmp_path / "outside"
    (played.workspace / "d").rename(outside)
    (played.workspace / "d").symlink_to(outside)

    done = await played.back(start, is_forced=True)

    assert (done.is_done, (outside / "a.txt").read_text()) == (True, "new\n")
    assert ["outside the workspace" in one.why for one in done.plan.conflicts] == [True]


async def test_files_alone_or_the_conversation_alone_can_go_back(played: Played) -> None:
    start = await played.say("list files")
    head = await played.say("create a.txt with the text new")

    await played.back(start, scope="files")
    files_only = (played.files(), (await played.back(start, is_dry=True)).head)
    await played.back(_THREAD, is_undo=True)
    chat = await played.back(start, scope="chat")

    assert files_only == ({}, head)
    assert (played.files(), chat.head != head) == ({"a.txt": "new\n"}, True)


async def test_a_thread_that_is_open_elsewhere_or_named_without_a_checkpoint_is_not_rewound(
    played: Played,
) -> None:
    start = await played.say("list files")
    with pytest.raises(UsageError, match="Name a checkpoint of it"):
        await played.back(_THREAD)
    session = await open_session(workspace=played.workspace, thread_id=_THREAD, flags={"db": str(played.database)})
    try:
        with pytest.raises(ThreadHeld):
            await played.back(start)
    finally:
        await session.close()


async def test_what_a_command_changed_in_a_work_tree_is_named_and_conflicts_with_older_contents(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    # However busy the machine is: what is given up for want of time is tested elsewhere.
    monkeypatch.setattr(bash, "take_snapshot", lambda folder, _, besides=(): take_snapshot(folder, 20, besides))
    # By the user: in the sandbox no command lays down what decides about later ones.
    subprocess.run(["git", "init", "-q"], cwd=played.workspace, check=True)  # noqa: ASYNC221 - a moment
    start = await played.say("list files")
    await played.say("create a.txt with the text new")
    await played.say("run echo by command >> a.txt; echo x > b.txt")

    seen = (await played.back(start)).plan
    changes = thread_changes(played.database, _THREAD, None)

    command = {"command": "echo by command >> a.txt; echo x > b.txt"}
    assert [(dict(one.arguments), one.changed_files) for one in seen.irreversible] == [
        (command, ("a.txt", "b.txt"))
    ]
    assert [one.why for one in seen.conflicts] == ["it was changed by a command of this thread since"]
    assert (played.workspace / "a.txt").read_text() == "new\nby command\n"
    assert [one.files for one in changes.by_commands] == [("a.txt", "b.txt")]


@pytest.fixture
async def changed(played: Played) -> Played:
    """A thread that has written, appended and created."""
    for name in ("a.txt", "b.txt"):
        (played.workspace / name).write_text("old\n")
    await played.say("read a.txt", "append to a.txt: one", "append to a.txt: two")
    await played.say("read b.txt", "append to b.txt: x", "create d/new.txt with the text new")
    return played


async def test_files_are_compared_from_before_the_first_change_to_now(changed: Played) -> None:
    (changed.workspace / "b.txt").write_text("old\n")

    found = thread_changes(changed.database, _THREAD, None)

    assert found.files == (
        ChangedFile("a.txt", "modified", "--- a.txt\n+++ a.txt\n@@ -1 +1,3 @@\n old\n+one\n+two\n", 2, 0),
        ChangedFile("d/new.txt", "created", "--- /dev/null\n+++ d/new.txt\n@@ -0,0 +1 @@\n+new\n", 1, 0),
    )


async def test_what_others_did_is_marked_and_what_is_not_text_is_not_printed(changed: Played) -> None:
    (changed.workspace / "a.txt").unlink()
    (changed.workspace / "b.txt").write_bytes(b"\0\1")
    (changed.workspace / "d" / "new.txt").unlink()
    (changed.workspace / "d" / "new.txt").symlink_to(changed.workspace / "b.txt")

    removed, binary, link = thread_changes(changed.database, _THREAD, None).files

    gone = "--- a.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-old\n"
    assert removed == ChangedFile("a.txt", "removed", gone, 0, 1, "it was removed by somebody else")
    assert (binary.diff, binary.by_others) == (
        "Binary file b.txt differs\n",
        "it was changed by somebody else since",
    )
    assert (link.status, "now leads through a link" in link.by_others) == ("unreadable", True)
