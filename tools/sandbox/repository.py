"""What of a repository's own folder runs programs later, and what has to stay writable for a commit.

Knows Git's layout of files; runs no Git.
"""

import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

from tools.sandbox.places import Mount

__all__ = ["TRIPWIRES", "repository_mounts"]

TRIPWIRES = ("config", "hooks", "config.worktree", "commondir")
"""What may not come to be in a repository's folder where it is absent. Nothing can stand in its place meanwhile:
Git would stumble over it."""
_MOST = 64
"""So many submodules and worktrees are looked at."""
_BACK = re.compile(r"^\s*worktree\s*=\s*\"?(.*?)\"?\s*$", re.MULTILINE)


def repository_mounts(path: Path) -> Iterator[Mount]:
    """Mounts for `.git`, be it the folder itself or the file of a worktree or submodule that names it."""
    if path.is_dir():
        yield from _folder(path)
        return
    yield Mount(path, "read")
    real = _named_by(path)
    if real is None:
        return
    common = _common(real)
    yield from _folder(common)
    if real != common:
        yield from _folder(real)


def _folder(folder: Path) -> Iterator[Mount]:
    # A mount of its own, as what is mounted on can be neither moved away nor replaced.
    yield Mount(folder, "write")
    for name in TRIPWIRES:
        if (folder / name).exists():
            yield Mount(folder / name, "read")
    linked = ("worktrees/*/config.worktree", "worktrees/*/commondir", "worktrees/*/gitdir")
    inner = ("modules/**/config", "modules/**/hooks")
    for path in _some(folder, *linked, *inner):
        yield Mount(path, "read")


def _some(folder: Path, *patterns: str) -> list[Path]:
    try:
        return list(islice(chain.from_iterable(folder.glob(pattern) for pattern in patterns), _MOST))
    except OSError:
        return []


def _named_by(pointer: Path) -> Path | None:
    """The folder that a `.git` file names; None unless that folder itself says that it belongs here.

    Such a file may come with anything that was unpacked: by itself it opens no folder for writing.
    """
    text = _text(pointer)
    if not text.startswith("gitdir:"):
        return None
    real = (pointer.parent / text.removeprefix("gitdir:").strip()).resolve()
    back = _text(real / "gitdir")
    if back and Path(real, back).resolve() == pointer:
        return real
    worktree = _BACK.search(_text(real / "config"))
    if worktree and Path(real, worktree[1]).resolve() == pointer.parent:
        return real
    return None


def _common(real: Path) -> Path:
    named = _text(real / "commondir")
    return (real / named).resolve() if named else real


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip() if path.is_file() else ""
    except OSError:
        return ""
