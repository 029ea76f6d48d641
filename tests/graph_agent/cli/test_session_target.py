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


def test_only_given_flags_are_handed_on(tmp_path: Path) -> None:
    flags = {"model": None, "mode": "plan", "no_stream": False, "max_steps": 3}

    assert resolve_target(flags, workspace=None, thread=None, resume=None) == Target(
        tmp_path, flags={"mode": "plan", "max_steps": 3}
    )


def test_a_thread_that_is_not_there_yet_is_created_here(tmp_path: Path) -> None:
    assert resolve_target({}, workspace=None, thread="fix-42", resume=None) == Target(
        tmp_path, "fix-42", exists=False
    )


@pytest.mark.parametrize("name", ["", "  ", " a", "two\nlines", "\x1b[2J", "x" * 101])
def test_what_is_no_name_makes_no_thread(name: str) -> None:
    with pytest.raises(UsageError, match="is not a valid id"):
        resolve_target({}, workspace=None, thread=name, resume=None)


def test_a_named_folder_is_the_workspace(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()

    assert resolve_target({}, workspace=str(other), thread=None, resume=None).workspace == other


def test_what_cannot_be_aimed_at_is_refused(tmp_path: Path) -> None:
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


def test_an_existing_thread_brings_its_own_folder(rows: Rows) -> None:
    db = str(rows.path)

    assert find_resume_point("bbbb", db, Path("/elsewhere")) == ResumePoint("thread-bbbb", Path("/b"))
    assert find_thread("thread-aaaa", db) == ResumePoint("thread-aaaa", Path("/a"))


def test_nothing_named_means_the_newest_thread_of_this_folder(rows: Rows) -> None:
    assert find_resume_point("", str(rows.path), Path("/a")) == ResumePoint("thread-aaaa", Path("/a"))
    with pytest.raises(UnknownId, match="/elsewhere"):
        find_resume_point("", str(rows.path), Path("/elsewhere"))


def test_only_an_older_checkpoint_is_told_apart_from_the_thread(rows: Rows) -> None:
    found = [find_resume_point(name, str(rows.path), Path("/")) for name in ("head-aaaa", "older-aaaa")]

    assert found == [ResumePoint("thread-aaaa", Path("/a")), ResumePoint("thread-aaaa", Path("/a"), "older-aaaa")]


def test_a_thread_that_is_to_be_created_is_not_known(rows: Rows, tmp_path: Path) -> None:
    assert [find_thread("thread", str(rows.path)), find_thread("x", str(tmp_path / "none.db"))] == [None, None]


def test_an_unfinished_thread_names_the_previous_session(rows: Rows) -> None:
    rows.thread("thread-cccc", workspace="/c", next_nodes=("reasoning",))
    rows.lease("thread-cccc", pid=1, host="box", since="2026-11-28T01:00:00Z")
    rows.lease("thread-aaaa", pid=1, host="box")

    told = [find_resume_point(name, str(rows.path), Path("/")).last_run for name in ("cccc", "thread-aaaa")]

    assert told == [
        "The previous session (pid 1 on box, started at 2026-11-28T01:00:00Z) ended unexpectedly.",
        "",
    ]


def test_resuming_needs_a_database(tmp_path: Path) -> None:
    with pytest.raises(NothingYet):
        find_resume_point("aaaa", str(tmp_path / "none.db"), tmp_path)


def test_a_folder_that_is_gone_is_named_with_the_way_out(tmp_path: Path) -> None:
    assert require_folder(tmp_path, "t1") == tmp_path
    with pytest.raises(UsageError, match=r"gone' of thread t1 .*--workspace DIR"):
        require_folder(tmp_path / "gone", "t1")
