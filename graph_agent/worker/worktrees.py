"""A git worktree and branch for each thread that wants one, beside the repository; never removed with unsaved work.

`git worktree add` copies what is committed. The new folder is trusted as the repository is, for the same contents.
"""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from graph_agent.config.paths import folder_at, own_command
from graph_agent.config.trust import TrustFile
from graph_agent.errors import UnknownId, UsageError
from tools.programs import find_program

__all__ = ["Worktree", "branch_for", "create_worktree", "list_worktrees", "remove_worktree", "repository_of"]

_PREFIX = "graph-agent/"
_GIT_S = 120
_MAX_SLUG_CHARS = 24


@dataclass(frozen=True, slots=True)
class Worktree:
    """A worktree that was made for a thread."""

    path: Path
    branch: str
    changed_files: int
    """Files with changes that are not committed, untracked ones among them."""
    commits: int
    """Commits that are on no other branch."""


def branch_for(text: str) -> str:
    """A new branch name with the first words of a prompt in it."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower())[:_MAX_SLUG_CHARS].strip("-")
    return f"{_PREFIX}{words or 'task'}-{uuid4().hex[:6]}"


def repository_of(folder: Path) -> Path:
    """The root of the working tree that the folder is in.

    Raises:
        UsageError: git is missing, the folder is in no repository, or that has no commit to start from.
    """
    if folder_at(folder) is None:
        raise UsageError(f"{str(folder)!r} is not a folder.")
    root = _git(folder, "rev-parse", "--show-toplevel")
    if root is None:
        raise UsageError(f"A worktree needs a git repository; {str(folder)!r} is in none. Run `git init` first.")
    if _git(folder, "rev-parse", "--verify", "--quiet", "HEAD^{commit}") is None:
        raise UsageError(f"A worktree needs a commit to start from; the repository {root!r} has none yet.")
    return Path(root)


def create_worktree(folder: Path, branch: str, trust: TrustFile | None = None) -> Path:
    """The same folder in the worktree of the branch, which is made unless it is there.

    Raises:
        UsageError: git refuses.
    """
    root = repository_of(folder)
    name = branch.removeprefix(_PREFIX)
    target = root.parent / f"{root.name}-worktrees" / name
    inside = target / folder.resolve().relative_to(root.resolve())
    if any(one.branch == branch and one.path == target for one in _parse(root)):
        return inside
    exists = _git(root, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}") is not None
    start = [str(target), branch] if exists else ["-b", branch, str(target), "HEAD"]
    _git_or_refuse(root, "worktree", "add", "--quiet", *start)
    answer = trust.answer_for(folder.resolve()) if trust is not None else None
    if trust is not None and answer is not None:
        trust.answer(inside, answer)
    return inside


def list_worktrees(folder: Path) -> list[Worktree]:
    """The worktrees of the folder's repository that were made for threads.

    Raises:
        UsageError: see `repository_of`.
    """
    return _parse(repository_of(folder), counts=True)


def remove_worktree(folder: Path, name: str, trust: TrustFile | None = None) -> tuple[Worktree, bool]:
    """Remove a worktree, and its branch if all its commits are elsewhere, too. Returns whether the branch is gone.

    Raises:
        UnknownId: there is none of this name, branch or path.
        UsageError: it has changes that are not committed, or git refuses.
    """
    root = repository_of(folder)
    found = [
        one
        for one in _parse(root, counts=True)
        if name in (one.branch, one.branch.removeprefix(_PREFIX), str(one.path))
    ]
    if not found:
        raise UnknownId(f"No worktree is called {name!r}. List them with `{own_command()} worktrees list`.")
    one = found[0]
    if one.changed_files:
        raise UsageError(
            f"{one.path} has {one.changed_files} changed files that are not committed. Commit or discard them "
            f"there (`git -C {one.path} status`), then remove the worktree."
        )
    _git_or_refuse(root, "worktree", "remove", str(one.path))
    if trust is not None:
        trust.forget_folder(one.path)
    is_gone = one.commits == 0 and _git(root, "branch", "--quiet", "-D", one.branch) is not None
    return one, is_gone


def _parse(root: Path, *, counts: bool = False) -> list[Worktree]:
    listed = _git_or_refuse(root, "worktree", "list", "--porcelain")
    found: list[Worktree] = []
    path = ""
    for line in listed.splitlines():
        key, _, value = line.partition(" ")
        if key == "worktree":
            path = value
        elif key == "branch" and value.startswith(f"refs/heads/{_PREFIX}"):
            branch = value.removeprefix("refs/heads/")
            numbers = _counts(Path(path), branch) if counts else (0, 0)
            found.append(Worktree(Path(path), branch, *numbers))
    return found


def _counts(path: Path, branch: str) -> tuple[int, int]:
    """Changed files, and commits of the branch that no other branch or remote has."""
    status = _git(path, "status", "--porcelain", "--untracked-files=all") if path.is_dir() else ""
    others = ["--not", f"--exclude={branch}", "--branches", "--remotes", "--tags"]
    commits = _git(path, "rev-list", "--count", branch, *others) if path.is_dir() else "1"
    return len((status or "").splitlines()), int(commits or 1)


def _git_or_refuse(folder: Path, *arguments: str) -> str:
    done = _run_git(folder, *arguments)
    if done.returncode:
        raise UsageError(f"git {arguments[0]} {arguments[1]} failed: {done.stderr.strip() or done.returncode}")
    return done.stdout


def _git(folder: Path, *arguments: str) -> str | None:
    """What git prints, without the last line end; None if it fails."""
    done = _run_git(folder, *arguments)
    return None if done.returncode else done.stdout.rstrip("\n")


def _run_git(folder: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    git = find_program("git")
    if git is None:
        raise UsageError("A worktree needs git, which is not on PATH. Install it.")
    try:
        return subprocess.run(
            [git, *arguments], cwd=folder, capture_output=True, text=True, timeout=_GIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"git could not be run in {str(folder)!r}: {error}") from error
