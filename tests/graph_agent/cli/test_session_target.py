import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph_agent.cli.session_target import (
    ResumePoint,
    Target,
    find_resume_point,
    find_thread,
    require_folder,
    resolve_target,
)
from graph_agent.errors import NothingYet, UnknownId, UsageError
from tests.fakes.database_rows import Rows


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_only_given_flags_are_passed_on(tmp_path: Path) -> None:
    flags = {"model": None, "mode": "plan", "no_stream": False, "max_steps": 3}

    assert resolve_target(flags, workspace=None, thread=None, resume=None) == Target(
        tmp_path, flags={"mode": "plan", "max_steps": 3}
    )


def test_a_new_thread_is_created_in_the_current_folder(tmp_path: Path) -> None:
    assert resolve_target({}, workspace=None, thread="fix-42", resume=None) == Target(
        tmp_path, "fix-42", exists=False
    )


@pytest.mark.parametrize("name", ["", "  ", " a", "two\nlines", "\x1b[2J", "x" * 101])
def test_an_invalid_thread_id_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="is not a valid id"):
        resolve_target({}, workspace=None, thread=name, resume=None)


def test_a_named_folder_is_the_workspace(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()

    assert resolve_target({}, workspace=str(other), thread=None, resume=None).workspace == other


def test_contradicting_options_and_missing_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be combined"):
        resolve_target({}, workspace=None, thread="a", resume="b")
    with pytest.raises(UsageError, match="is not a folder"):
        resolve_target({}, workspace=str(tmp_path / "none"), thread=None, resume=None)
    with pytest.raises(NothingYet):
        resolve_target({}, workspace=None, thread=None, resume="abcd")


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    written = Rows(tmp_path / "graph-agent.db")
    written.thread("thread-aaaa", workspace="/a", checkpoint_id="head-aaaa")
    written.thread("thread-bbbb", workspace="/b", checkpoint_id="head-bbbb")
    written.execute(
        "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint, metadata) "
        "VALUES ('thread-aaaa', '', 'older-aaaa', '', x'', x''), ('thread-aaaa', '', 'head-aaaa', '', x'', x'')"
    )
    yield written
    written.close()


def test_an_existing_thread_keeps_its_workspace(rows: Rows) -> None:
    db = str(rows.path)

    assert find_resume_point("bbbb", db, Path("/elsewhere")) == ResumePoint("thread-bbbb", Path("/b"))
    assert find_thread("thread-aaaa", db) == ResumePoint("thread-aaaa", Path("/a"))


def test_an_empty_id_means_the_newest_thread_of_the_folder(rows: Rows) -> None:
    assert find_resume_point("", str(rows.path), Path("/a")) == ResumePoint("thread-aaaa", Path("/a"))
    with pytest.raises(UnknownId, match="/elsewhere"):
        find_resume_point("", str(rows.path), Path("/elsewhere"))


def test_only_an_older_checkpoint_is_named_beside_the_thread(rows: Rows) -> None:
    found = [find_resume_point(name, str(rows.path), Path("/")) for name in ("head-aaaa", "older-aaaa")]

    assert found == [ResumePoint("thread-aaaa", Path("/a")), ResumePoint("thread-aaaa", Path("/a"), "older-aaaa")]


def test_a_thread_that_does_not_exist_is_not_found(rows: Rows, tmp_path: Path) -> None:
    assert [find_thread("thread", str(rows.path)), find_thread("x", str(tmp_path / "none.db"))] == [None, None]


def test_an_unfinished_thread_names_the_previous_session(rows: Rows) -> None:
    rows.thread("thread-cccc", workspace="/c", next_nodes=("reasoning",))
    rows.lease("thread-cccc", pid=1, host="box", since="2026-11-28T01:00:00Z")
    rows.lease("thread-aaaa", pid=1, host="box")

    told = [find_resume_point(name, str(rows.path), Path("/")).last_run for name in ("cccc", "thread-aaaa")]

    assert told == ["The previous session (pid 1 on box, started at 2026-11-28T01:00:00Z) ended unexpectedly.", ""]


def test_resuming_needs_a_database(tmp_path: Path) -> None:
    with pytest.raises(NothingYet):
        find_resume_point("aaaa", str(tmp_path / "none.db"), tmp_path)


def test_a_missing_workspace_is_an_error_with_a_hint(tmp_path: Path) -> None:
    assert require_folder(tmp_path, "t1") == tmp_path
    with pytest.raises(UsageError, match=r"gone' of thread t1 .*--workspace DIR"):
        require_folder(tmp_path / "gone", "t1")


def _graph_agent(*arguments: str, cwd: Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "graph_agent", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=cwd,
        env=dict(os.environ),
        check=False,
        timeout=30,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run",), "No prompt"),
        (("run", "-"), "No prompt"),
        (("run", "x", "--output", "yaml"), "yaml"),
        (("run", "x", "--recover", "maybe"), "maybe"),
        (("run", "x", "--max-steps", "0"), "max-steps"),
        (("run", "x", "--mode", "yolo"), "yolo"),
        (("run", "x", "--workspace", "no-such-folder"), "'no-such-folder' is not a folder"),
        (("run", "x", "--thread", "a", "--resume", "b"), "cannot be combined"),
        (("run", "x", "--approve", "all"), "a new thread has none"),
        (("chat",), "No terminal found"),
    ],
)
def test_wrong_usage_of_a_session_command_exits_with_2(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    ended = _graph_agent(*arguments, cwd=tmp_path)

    assert (ended.returncode, ended.stdout, words in ended.stderr) == (2, "", True), ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize("command", [("resume",), ("run", "--resume", "abcd1234")])
def test_resuming_without_a_database_is_an_error_of_one_line(tmp_path: Path, command: tuple[str, ...]) -> None:
    ended = _graph_agent(*command, cwd=tmp_path)

    assert (ended.returncode, ended.stderr.count("\n"), "there is nothing yet" in ended.stderr) == (2, 1, True)


@pytest.mark.slow
def test_a_prompt_is_read_from_stdin(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")

    ended = _graph_agent("run", "-", cwd=tmp_path, stdin="list\n")

    assert (ended.returncode, "notes.txt" in ended.stdout) == (0, True)


@pytest.mark.slow
def test_a_named_thread_is_created_and_then_continued(tmp_path: Path) -> None:
    runs = [_graph_agent("run", "list", "--thread", "t1", "--output", "json", cwd=tmp_path) for _ in range(2)]
    listed = _graph_agent("threads", "list", "--json", cwd=tmp_path)

    threads = json.loads(listed.stdout)["threads"]
    assert [json.loads(run.stdout)["thread_id"] for run in runs] == ["t1", "t1"]
    assert [(thread["thread_id"], thread["turns"], thread["workspace"]) for thread in threads] == [
        ("t1", 2, str(tmp_path))
    ]


@pytest.mark.slow
def test_resuming_an_idle_thread_without_a_prompt_prints_its_last_answer(tmp_path: Path) -> None:
    first = _graph_agent("run", "list", "--thread", "t1", cwd=tmp_path)

    again = _graph_agent("run", "--resume", "t1", cwd=tmp_path)

    assert (again.returncode, again.stdout) == (0, first.stdout)


@pytest.mark.slow
def test_skipping_permissions_runs_without_asking(tmp_path: Path) -> None:
    ended = _graph_agent("run", "run echo hi > made.txt", "--dangerously-skip-permissions", cwd=tmp_path)

    assert (ended.returncode, (tmp_path / "made.txt").read_text()) == (0, "hi\n")
