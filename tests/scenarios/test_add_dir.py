import shutil
from pathlib import Path
from typing import Any

from tests.scenarios.command import Command


def _started(folder: Path) -> Command:
    command = Command(folder)
    (folder / "lib").mkdir()
    (folder / "lib" / "a.txt").write_text("from the library\n")
    return command


def _decisions(command: Command, *arguments: str) -> tuple[int, list[Any]]:
    code, report = command.run_json(*arguments)
    return code, [call["reason"] for call in report["pending_approvals"]]


def test_an_added_folder_is_worked_in_as_the_workspace_is_and_stays_with_the_thread(tmp_path: Path) -> None:
    command = _started(tmp_path)
    library = tmp_path / "lib"

    added = command("run", "read ../lib/a.txt", "--thread", "t", "--add-dir", "../lib")
    resumed = command("run", f"create {library}/b.txt with new", "--resume", "t", "--mode", "acceptEdits")
    protected = _decisions(command, f"create {library}/.env with x", "--resume", "t", "--mode", "acceptEdits")
    shown = command.json("threads", "show", "t")["add_dirs"], command.json("inspect", "t")["add_dirs"]

    assert (added.returncode, "from the library" in added.stdout) == (0, True)
    assert (resumed.returncode, (library / "b.txt").read_text().strip()) == (0, "new")
    assert (protected[0], "decides what runs later" in protected[1][0]) == (3, True)
    assert shown == ([str(library)], [str(library)])


def test_a_folder_that_is_gone_is_told_and_left_out_and_other_threads_do_not_have_it(tmp_path: Path) -> None:
    command = _started(tmp_path)
    command("run", "list", "--thread", "t", "--add-dir", str(tmp_path / "lib"))
    outside = _decisions(command, "read ../lib/a.txt", "--thread", "other")
    forked = command.json("fork", command.json("threads", "show", "t")["checkpoint_id"], "--as", "f")
    shutil.rmtree(tmp_path / "lib")

    gone = command("run", "list", "--resume", "t")

    assert (outside[0], "outside the workspace" in outside[1][0]) == (3, True)
    assert command.json("threads", "show", forked["thread_id"])["add_dirs"] == [str(tmp_path / "lib")]
    assert gone.returncode == 0
    assert f"The added folder {tmp_path / 'lib'} no longer exists" in gone.stderr


def test_what_may_not_be_added_is_refused_before_anything_is_opened(tmp_path: Path) -> None:
    command = _started(tmp_path)

    refused = command("run", "list", "--add-dir", "/")

    assert (refused.returncode, "'/' is the root of the disk" in refused.stderr) == (2, True)
    assert command.json("threads", "list") == {"threads": []}
