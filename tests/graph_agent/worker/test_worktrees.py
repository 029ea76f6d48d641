import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from graph_agent.errors import UsageError
from graph_agent.worker.worktrees import create_worktree, list_worktrees, remove_worktree

_BRANCH = "graph-agent/one"


def git(folder: Path, *arguments: str) -> str:
    words = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments]
    return subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True).stdout


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
    create_worktree(repository, _BRANCH)
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
            create_worktree(repository, "graph-agent/two")
    else:
        create_worktree(repository, "graph-agent/two")
    assert remove_worktree(repository, "on", repository / "no.db") == (one, True)
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
    path = create_worktree(repository, _BRANCH)
    happened(repository, path)

    assert [(one.path, one.changed_files, one.commits) for one in list_worktrees(repository)] == [
        (path, changed, 0)
    ]
    if is_removable:
        assert remove_worktree(repository, "one", repository / "no.db")[1]
        assert list_worktrees(repository) == []
    else:
        with pytest.raises(UsageError, match="has 1 changed file, not committed"):
            remove_worktree(repository, "one", repository / "no.db")


def test_a_worktree_that_was_half_made_is_made_again(repository: Path) -> None:
    path = create_worktree(repository, _BRANCH)
    killed_while_made(repository, path)

    assert create_worktree(repository, _BRANCH) == path
    assert [(one.path, one.changed_files) for one in list_worktrees(repository)] == [(path, 0)]


def test_git_looks_at_the_folder_and_not_where_variables_or_the_repository_point(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    inside = create_worktree(repository, _BRANCH)
    monkeypatch.delenv("GIT_DIR")
    git(repository, "config", "core.worktree", str(tmp_path / "shop-worktrees"))

    assert inside == tmp_path / "shop-worktrees" / "one"
    with pytest.raises(UsageError, match="names another folder"):
        create_worktree(repository, "graph-agent/two")
