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
from graph_agent.cli.views.format import format_time_and_age
from graph_agent.errors import AgentError, NothingYet, UnknownId, UsageError
from tests.fakes.database_rows import Rows


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_new_session_is_in_the_named_or_current_folder_with_the_given_flags(tmp_path: Path) -> None:
    flags = {"model": None, "mode": "plan", "no_stream": False, "max_steps": 3}
    (tmp_path / "other").mkdir()

    plain = resolve_target(flags, workspace=None, thread=None, resume=None)
    named = resolve_target({}, workspace=str(tmp_path / "other"), thread="fix-42", resume=None)

    assert plain == Target(tmp_path, flags={"mode": "plan", "max_steps": 3})
    assert named == Target(tmp_path / "other", "fix-42", exists=False)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        *(
            ({"thread": name}, UsageError, "is not a valid id")
            for name in ("", "  ", " a", "two\nlines", "\x1b[2J")
        ),
        ({"thread": "x" * 101}, UsageError, "is not a valid id"),
        ({"thread": "a", "resume": "b"}, UsageError, "cannot be combined"),
        ({"workspace": "none"}, UsageError, "is not a folder"),
        ({"workspace": "a\0b"}, UsageError, "is not a folder"),
        ({"workspace": "a" * 300}, UsageError, "is not a folder"),
        ({"workspace": "~nobody-of-this-name"}, UsageError, "is not a folder"),
        ({"resume": "abcd"}, NothingYet, "nothing yet"),
    ],
)
def test_invalid_ids_missing_folders_and_contradictions_are_refused(
    options: dict[str, str], error: type[AgentError], message: str
) -> None:
    with pytest.raises(error, match=message):
        resolve_target({}, **{"workspace": None, "thread": None, "resume": None, **options})


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


@pytest.mark.parametrize(
    ("text", "workspace", "found"),
    [
        ("bbbb", "/elsewhere", ResumePoint("thread-bbbb", Path("/b"))),
        ("", "/a", ResumePoint("thread-aaaa", Path("/a"))),
        ("head-aaaa", "/", ResumePoint("thread-aaaa", Path("/a"))),
        ("older-aaaa", "/", ResumePoint("thread-aaaa", Path("/a"), "older-aaaa")),
    ],
    ids=["the end of an id", "the newest thread of the folder", "the newest checkpoint", "an older checkpoint"],
)
def test_a_thread_is_resumed_in_its_workspace(rows: Rows, text: str, workspace: str, found: ResumePoint) -> None:
    assert find_resume_point(text, str(rows.path), Path(workspace)) == found


def test_only_the_exact_id_of_an_existing_thread_is_found(rows: Rows, tmp_path: Path) -> None:
    db = str(rows.path)

    assert find_thread("thread-aaaa", db) == ResumePoint("thread-aaaa", Path("/a"))
    assert [find_thread("thread", db), find_thread("x", str(tmp_path / "none.db"))] == [None, None]
    with pytest.raises(UnknownId, match="/elsewhere"):
        find_resume_point("", db, Path("/elsewhere"))


def test_an_unfinished_thread_names_the_previous_session(rows: Rows) -> None:
    rows.thread("thread-cccc", workspace="/c", next_nodes=("reasoning",))
    rows.lease("thread-cccc", pid=1, host="box", since="2026-11-28T01:00:00Z")
    rows.lease("thread-aaaa", pid=1, host="box")

    shown = [find_resume_point(name, str(rows.path), Path("/")).last_run for name in ("cccc", "thread-aaaa")]

    started = format_time_and_age("2026-11-28T01:00:00Z")
    assert shown == [f"The previous session (pid 1 on box, started {started}) ended unexpectedly.", ""]


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
        (("resume",), "there is nothing yet"),
        (("run", "--resume", "abcd1234"), "there is nothing yet"),
        (("chat",), "No terminal found"),
    ],
)
def test_wrong_usage_of_a_session_command_exits_with_2(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    ended = _graph_agent(*arguments, cwd=tmp_path)

    assert (ended.returncode, ended.stdout, words in ended.stderr) == (2, "", True), ended.stderr


@pytest.mark.slow
def test_a_prompt_is_read_from_stdin(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("x")

    ended = _graph_agent("run", "-", cwd=tmp_path, stdin="list\n")

    assert (ended.returncode, "notes.txt" in ended.stdout) == (0, True)


@pytest.mark.slow
def test_a_named_thread_is_created_continued_and_its_last_answer_printed_again(tmp_path: Path) -> None:
    runs = [_graph_agent("run", "list", "--thread", "t1", "--output", "json", cwd=tmp_path) for _ in range(2)]
    again = _graph_agent("run", "--resume", "t1", cwd=tmp_path)
    threads = json.loads(_graph_agent("threads", "list", "--json", cwd=tmp_path).stdout)["threads"]

    results = [json.loads(run.stdout) for run in runs]
    assert [result["thread_id"] for result in results] == ["t1", "t1"]
    assert (again.returncode, again.stdout.strip()) == (0, results[1]["answer"].strip())
    shown = [(thread["thread_id"], thread["turns"], thread["workspace"]) for thread in threads]
    assert shown == [("t1", 2, str(tmp_path))]


@pytest.mark.slow
def test_skipping_permissions_runs_without_asking(tmp_path: Path) -> None:
    ended = _graph_agent("run", "run echo hi > made.txt", "--dangerously-skip-permissions", cwd=tmp_path)

    assert (ended.returncode, (tmp_path / "made.txt").read_text()) == (0, "hi\n")
