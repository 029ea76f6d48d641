import hashlib
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from graph_agent.errors import UsageError
from graph_agent.worker.worktrees import (
    Worktree,
    check_out,
    create_worktree,
    list_worktrees,
    remove_unused_worktree,
    remove_worktree,
    require_address,
)

_BRANCH = "graph-agent/one"


def git(folder: Path, *arguments: str) -> str:
    words = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments]
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout


def refuse_to_wait(reason: str) -> None:
    raise AssertionError(reason)


def created(folder: Path, branch: str) -> Path:
    return create_worktree(folder, branch, None, refuse_to_wait)


def removed(folder: Path, name: str) -> tuple[Worktree, bool]:
    return remove_worktree(folder, name, folder / "no.db", None, refuse_to_wait)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "a.txt").write_text("a\n")
    git(folder, "add", ".")
    git(folder, "commit", "-q", "-m", "start")
    return folder


_HOOKS = ("post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman")
_FILTERS = ("filter.f.clean", "filter.f.smudge", "filter.f.process")
_PROGRAMS = ("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.alternateRefsCommand")


@pytest.mark.parametrize(
    ("key", "is_refused"), [*((name, False) for name in _PROGRAMS), *((f, True) for f in _FILTERS)]
)
def test_git_starts_no_program_that_the_repository_names(
    repository: Path, tmp_path: Path, key: str, *, is_refused: bool
) -> None:
    trap, sprung = tmp_path / "trap", tmp_path / "sprung"
    trap.write_text(f"#!/bin/sh\ntouch {sprung}\ncat\n")
    trap.chmod(0o755)
    (repository / ".gitattributes").write_text("* filter=f\n")
    git(repository, "add", ".")
    git(repository, "commit", "-q", "-m", "attributes")
    created(repository, _BRANCH)
    for hook in _HOOKS:
        (repository / ".git" / "hooks").mkdir(exist_ok=True)
        (repository / ".git" / "hooks" / hook).write_text(trap.read_text())
        (repository / ".git" / "hooks" / hook).chmod(0o755)
    git(repository, "-c", "core.hooksPath=/dev/null", "config", key, str(trap))
    [one] = list_worktrees(repository)
    os.utime(one.path / "a.txt", (1, 1))

    assert [tree.changed_files for tree in list_worktrees(repository)] == [0]
    if is_refused:
        with pytest.raises(UsageError, match=r"starts programs for its files \(filter\.f\)"):
            created(repository, "graph-agent/two")
    else:
        created(repository, "graph-agent/two")
    assert removed(repository, "on") == (one, True)
    assert not sprung.exists()


def killed_while_made(repository: Path, path: Path) -> None:
    """What git leaves behind if it is killed during the checkout."""
    folder = git(path, "rev-parse", "--absolute-git-dir").strip()
    Path(folder, "locked").write_text("initializing")
    (path / "a.txt").unlink()


def removed_by_hand(repository: Path, path: Path) -> None:
    (path / "a.txt").unlink()
    (path / ".git").unlink()
    path.rmdir()


def hostile_names(repository: Path, path: Path) -> None:
    Path(os.fsdecode(os.fsencode(path) + b"/\xff\n\x1b[31m")).touch()


def other_variables(repository: Path, path: Path) -> None:
    git(repository, "config", "status.showUntrackedFiles", "no")
    (path / "new").touch()


@pytest.mark.parametrize(
    ("happened", "changed", "is_removable"),
    [
        (killed_while_made, 1, True),
        (removed_by_hand, 0, True),
        (hostile_names, 1, False),
        (other_variables, 1, False),
    ],
)
def test_a_worktree_in_an_odd_state_is_listed_and_removed_only_if_nothing_is_lost(
    repository: Path, happened: Callable[[Path, Path], None], changed: int, *, is_removable: bool
) -> None:
    path = created(repository, _BRANCH)
    happened(repository, path)

    assert [(one.path, one.changed_files, one.commits) for one in list_worktrees(repository)] == [
        (path, changed, 0)
    ]
    if is_removable:
        assert removed(repository, "one")[1]
        assert list_worktrees(repository) == []
    else:
        with pytest.raises(UsageError, match="has 1 changed file, not committed"):
            removed(repository, "one")


def test_a_worktree_that_was_half_made_is_made_again(repository: Path) -> None:
    path = created(repository, _BRANCH)
    killed_while_made(repository, path)

    assert created(repository, _BRANCH) == path
    assert [(one.path, one.changed_files) for one in list_worktrees(repository)] == [(path, 0)]


def test_git_looks_at_the_folder_and_not_where_variables_or_the_repository_point(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    inside = created(repository, _BRANCH)
    monkeypatch.delenv("GIT_DIR")
    git(repository, "config", "core.worktree", str(tmp_path / "shop-worktrees"))

    assert inside == tmp_path / "shop-worktrees" / "one"
    with pytest.raises(UsageError, match="names another folder"):
        created(repository, "graph-agent/two")


class Stopped(Exception):
    """The wait was ended."""


def stop_waiting(reason: str) -> None:
    raise Stopped(reason)


def fetched(repository: Path, folder: Path) -> None:
    place = folder / hashlib.sha256(str(repository).encode()).hexdigest()[:16]
    check_out(str(repository), "", _BRANCH, folder, refuse_to_wait)
    with hold(place / "lock"):
        check_out(str(repository), "", _BRANCH, folder, stop_waiting)


def beside(repository: Path, folder: Path) -> None:
    with hold(repository / ".git"):
        create_worktree(repository, _BRANCH, None, stop_waiting)


def gone(repository: Path, folder: Path) -> None:
    created(repository, _BRANCH)
    with hold(repository / ".git"):
        remove_worktree(repository, "one", repository / "no.db", None, stop_waiting)


@contextmanager
def hold(path: Path) -> Iterator[None]:
    """What is left of a git that another worker started."""
    with subprocess.Popen(["flock", str(path), "sh", "-c", "echo held; read line"], **_PIPES) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield
        assert holder.stdin is not None
        holder.stdin.close()


_PIPES: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}


@pytest.mark.parametrize("work", [fetched, beside, gone])
def test_a_repository_in_which_a_git_still_works_is_waited_for_until_that_is_stopped(
    repository: Path, tmp_path: Path, work: Callable[[Path, Path], None]
) -> None:
    with pytest.raises(Stopped, match="Waiting until another process has ended its work on the repository"):
        work(repository, tmp_path / "repositories")


def test_a_repository_that_cannot_be_fetched_leaves_nothing(repository: Path, tmp_path: Path) -> None:
    folder = tmp_path / "repositories"

    with pytest.raises(UsageError, match="cannot be fetched"):
        check_out(str(tmp_path / "nowhere"), "", _BRANCH, folder, refuse_to_wait)
    assert list(folder.iterdir()) == []

    check_out(str(repository), "", _BRANCH, folder, refuse_to_wait)
    [place] = folder.iterdir()
    repository.rename(tmp_path / "moved")
    with pytest.raises(UsageError, match="cannot be fetched"):
        check_out(str(repository), "", "graph-agent/two", folder, refuse_to_wait)
    assert (place / "one" / "a.txt").read_text() == "a\n"


def test_a_git_that_takes_long_is_stopped_when_the_wait_for_it_is_ended(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"git://127.0.0.1:{silent.getsockname()[1]}/x"
        with pytest.raises(Stopped, match=f"Waiting for git, which works on the repository {address}"):
            check_out(address, "", _BRANCH, tmp_path / "repositories", stop_waiting)
        silent.settimeout(10)
        asked, _ = silent.accept()
        asked.settimeout(10)
        with asked:  # Until that git has ended, this waits.
            while asked.recv(1024):
                pass


@pytest.mark.parametrize(
    ("happened", "is_removed"),
    [
        (lambda _: None, True),
        (lambda path: (path / "new").touch(), False),
        (lambda path: (path / "ignored.log").touch(), False),
        (lambda path: git(path, "commit", "-q", "--allow-empty", "-m", "own"), False),
    ],
)
def test_an_unused_worktree_is_removed_only_as_it_was_made(
    repository: Path, happened: Callable[[Path], object], *, is_removed: bool
) -> None:
    (repository / ".git/info/exclude").write_text("*.log\n")
    path = created(repository, _BRANCH)
    other = created(repository, "graph-agent/other")
    happened(path)

    done = remove_unused_worktree(repository, path, repository / "no.db", None, refuse_to_wait)

    assert ((done and done.path) == path, path.exists(), other.exists()) == (is_removed, not is_removed, True)


@pytest.mark.parametrize(
    "address",
    [
        "https://me:hidden@host/x",
        "https://hidden@host/x",
        "https://host/x?token=hidden",
        "https://host/x#hidden",
        "ssh://me:hidden@host/x",
        "ssh://host/x?token=hidden",
        "HTTPS://host/x?token=hidden",
        "me:hidden@host/x",
        "me:hidden@host:x",
        "//me:hidden@host/x",
        "ext::me:hidden@host",
    ],
)
def test_an_address_that_may_hold_a_secret_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(UsageError) as refused:
        require_address(address)

    assert "hidden" not in str(refused.value)


@pytest.mark.parametrize(
    "address",
    [
        *("https://host/x", "ssh://me@host/x", "git://host/x", "file://localhost/a?b", "me@host:x/y", "host:x"),
        *("/a b/x", "/a@b:c/x?y"),
    ],
)
def test_an_address_without_a_secret_is_kept_as_it_is(address: str) -> None:
    assert require_address(address) == address
