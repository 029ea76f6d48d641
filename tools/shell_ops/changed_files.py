"""Which files of a git work tree a command changed. Compares looks at the files; knows nothing of the command.

Safe in a folder that somebody else wrote: git is asked for names alone, those it keeps and those it does not
ignore. For that it reads its index and the ignore files; it compares no content, so no filter of the repository is
run, and monitor, hooks, pager, fetching and locks are switched off. What git ignores is not looked at.
"""

import os
import stat
import subprocess
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from tools.paths import contains, find_program
from tools.shell_ops.start import child_environment

__all__ = ["WorkspaceSnapshot", "changed_files", "take_snapshot"]

_MOST_INDEX_BYTES = 4 * 1024 * 1024
"""Of about 40,000 files: more are not looked at in time, and it is not tried."""
_BETWEEN_CLOCKS = 512
"""After so many files it is looked whether there is time left."""
_OFF = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=false",
    "protocol.allow=never",
    "safe.bareRepository=explicit",
    "submodule.recurse=false",
)
_ARGUMENTS = (
    "--no-pager",
    "--no-optional-locks",
    "--literal-pathspecs",
    *(word for setting in _OFF for word in ("-c", setting)),
    "ls-files",
    "-z",
    "--cached",
    "--others",
    "--exclude-standard",
)

WorkspaceSnapshot = Mapping[str, tuple[int, ...]]
"""Each file, relative to the workspace, with what changes when its content does."""


def take_snapshot(workspace: Path, seconds: float, besides: Iterable[str] = ()) -> WorkspaceSnapshot | None:
    """The files there are, and those of `besides` that stand; None where git or the time does not allow it."""
    deadline = time.monotonic() + seconds
    git = find_program("git")
    if git is None or not _is_worth_trying(workspace) or contains(workspace, Path(git).resolve()):
        return None
    try:
        listed = subprocess.run(
            [git, *_ARGUMENTS],
            cwd=workspace,
            env={**child_environment(os.environ), "GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"},
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
    """The files that came, went or were written between two looks, by name."""
    return sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))


def _is_worth_trying(workspace: Path) -> bool:
    """Whether the workspace lies in a work tree of a size that can be looked at in time."""
    for folder in (workspace, *workspace.parents):
        try:
            (folder / ".git").lstat()
        except OSError:
            continue
        try:
            return (folder / ".git" / "index").lstat().st_size <= _MOST_INDEX_BYTES
        except OSError:
            # Nothing was added yet, or .git is the file of a linked work tree.
            return True
    return False


def _states(workspace: Path, names: Iterable[str], deadline: float) -> WorkspaceSnapshot | None:
    seen: dict[str, tuple[int, ...]] = {}
    root = str(workspace)
    for number, name in enumerate(names):
        if number % _BETWEEN_CLOCKS == 0 and time.monotonic() > deadline:
            return None
        try:
            found = os.lstat(os.path.join(root, name))  # noqa: PTH118 - of thousands of names each costs
        except OSError:
            continue
        if not stat.S_ISDIR(found.st_mode):
            seen[name] = (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_mode, found.st_ino)
    return seen
