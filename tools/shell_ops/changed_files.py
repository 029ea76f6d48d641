"""Which files of a git work tree a command changed, by comparing two snapshots.

Safe in a folder that somebody else wrote: git is asked for names only, those in its index and those it does not
ignore. It compares no content and so runs no filter of the repository, and its monitor, hooks, pager, fetching and
locks are switched off. Ignored files are not compared.
"""

import os
import stat
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.programs import find_program, trusted_path
from tools.shell_ops.shell_command import child_environment

__all__ = ["GIT_OPTIONS", "WorkspaceSnapshot", "changed_files", "git_environment", "take_snapshot"]

_MAX_INDEX_BYTES = 4 * 1024 * 1024
"""The size for about 40,000 files; a snapshot of more would take too long, so it is not tried."""
_CLOCK_INTERVAL = 512
"""After so many files the time is checked."""
_OFF = (
    "core.fsmonitor=false", "core.hooksPath=/dev/null", "core.untrackedCache=false", "protocol.allow=never",
    "safe.bareRepository=explicit", "submodule.recurse=false",
)  # fmt: skip
GIT_OPTIONS = (
    "--no-pager", "--no-optional-locks", "--literal-pathspecs",
    *(word for setting in _OFF for word in ("-c", setting)),
)  # fmt: skip
"""Before a subcommand of git: no monitor, hook, pager or transport of a repository is started."""
_LIST_FILES = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")

WorkspaceSnapshot = Mapping[str, tuple[int, ...]]
"""Each file, relative to the workspace, with the metadata that changes with its content."""


def git_environment() -> dict[str, str]:
    """For git: without the agent's keys, and without variables that name another repository or configuration."""
    return {
        **child_environment(os.environ),
        "PATH": trusted_path(),
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
    }


def take_snapshot(workspace: Path, seconds: float, besides: Iterable[str] = ()) -> WorkspaceSnapshot | None:
    """The files that git knows, and those of `besides` that exist; None if git or the time does not allow it."""
    deadline = time.monotonic() + seconds
    git = find_program("git", outside=(workspace,))
    if git is None or not _is_worth_trying(workspace):
        return None
    try:
        listed = subprocess.run(
            [git, *GIT_OPTIONS, *_LIST_FILES],
            cwd=workspace,
            env=git_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=seconds,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    names = dict.fromkeys(os.fsdecode(name) for name in listed.stdout.split(b"\0") if name)
    return _states(workspace, {**names, **dict.fromkeys(besides)}, deadline)


def changed_files(before: WorkspaceSnapshot, after: WorkspaceSnapshot) -> list[str]:
    """The files that were created, removed or written between two snapshots, sorted."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _is_worth_trying(workspace: Path) -> bool:
    """Whether the workspace is in a work tree that is small enough."""
    for folder in (workspace, *workspace.parents):
        try:
            (folder / ".git").lstat()
        except OSError:
            continue
        try:
            return (folder / ".git" / "index").lstat().st_size <= _MAX_INDEX_BYTES
        except OSError:
            # Nothing has been added yet, or .git is the file of a linked work tree.
            return True
    return False


def _states(workspace: Path, names: Iterable[str], deadline: float) -> WorkspaceSnapshot | None:
    seen: dict[str, tuple[int, ...]] = {}
    root = str(workspace)
    for number, name in enumerate(names):
        if number % _CLOCK_INTERVAL == 0 and time.monotonic() > deadline:
            return None
        try:
            found = os.lstat(os.path.join(root, name))  # noqa: PTH118 - faster, for thousands of names
        except OSError:
            continue
        if not stat.S_ISDIR(found.st_mode):
            seen[name] = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_mode, found.st_ino)
    return seen
