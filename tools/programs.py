"""Finds the programs that the agent itself starts: the one place where PATH is searched for them.

What a command of the model could have put there is never run outside its sandbox. So folders of PATH count only if
they are absolute, lie in no folder that commands may write, and cannot be written by other users. The commands
themselves still get the user's PATH.
"""

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

__all__ = [
    "contains",
    "end_with_agent",
    "exclude_folders",
    "find_program",
    "first_on_path",
    "missing_reason",
    "path_folders",
    "program_words",
    "trusted_path",
]

_MACOS_ADMINISTRATORS = 80
"""The group of those who may become root there anyway, which owns the folders of Homebrew."""

_excluded: set[Path] = set()
"""Only ever grows: what commands could once write stays excluded in this process."""
_found: dict[tuple[str, str, tuple[Path, ...]], str] = {}


def exclude_folders(folders: Iterable[Path]) -> None:
    """From now on find no program in these folders, because commands may write there."""
    _excluded.update(folder.resolve() for folder in folders)


def first_on_path(name: str) -> Path | None:
    """The file that the user's shell would start, in whatever folder of PATH: to name it, never to start it."""
    folders = filter(None, os.environ.get("PATH", os.defpath).split(os.pathsep))
    # Not `Path.exists`: that raises where a folder of PATH may not be searched.
    return next((one for folder in folders if os.path.exists(one := Path(folder, name))), None)  # noqa: PTH110 - as above


def find_program(name: str, path: str | None = None, *, outside: Sequence[Path] = ()) -> str | None:
    """The path of the first program of this name in a trusted folder of PATH, or of another such list.

    It is looked up once: as long as it exists, later calls return the same. A name with a slash is a path that the
    user wrote, and is returned as it is if it leads to a program.

    Args:
        name: the program.
        path: searched in place of PATH.
        outside: more resolved folders that are not trusted.
    """
    if os.sep in name:
        return name if _is_program(name) else None
    searched = _searched(path)
    key = (name, searched, _untrusted_folders(outside))
    if key not in _found or not _is_program(_found[key]):
        candidates = (_trusted_program(folder, name, key[2]) for folder in _absolute(searched))
        program = next(filter(None, candidates), None)
        if program is None:
            return None
        _found[key] = program
    return _found[key]


def end_with_agent(words: Sequence[str], signal: str) -> list[str]:
    """The command line by which the kernel sends the signal when the agent is killed, where there is `setpriv`."""
    setpriv = find_program("setpriv") if sys.platform == "linux" else None
    return [setpriv, "--pdeathsig", signal, "--", *words] if setpriv else [*words]


def program_words(words: Sequence[str]) -> list[str]:
    """A command line of the user's own, such as an editor's, with its program looked up.

    Raises:
        FileNotFoundError: there is no such program.
        ValueError: there are no words.
    """
    if not words:
        raise ValueError("it is empty")
    program = find_program(words[0])
    if program is None:
        raise FileNotFoundError(missing_reason(words[0]))
    return [program, *words[1:]]


def trusted_path(path: str | None = None) -> str:
    """PATH, or another such list, without the folders in which no program is looked for."""
    return os.pathsep.join(_trusted(_searched(path), _untrusted_folders()))


def missing_reason(name: str, path: str | None = None) -> str:
    """Why there is no such program, in a few words."""
    untrusted = _untrusted_folders()
    for folder in _absolute(_searched(path)):
        candidate = os.path.join(folder, name)  # noqa: PTH118 - text in, text out
        is_exposed = _is_exposed(folder, untrusted) or _is_exposed(candidate, untrusted)
        if os.sep not in name and _is_program(candidate) and is_exposed:
            return f"{candidate} is not used, because commands or other users may write there"
    return "not found"


def path_folders(base: Path) -> tuple[Path, ...]:
    """The folders of PATH, relative ones below `base`, as they are named there; the folder itself is none."""
    named = (Path(os.path.normpath(base / entry)) for entry in filter(None, _searched(None).split(os.pathsep)))
    return tuple(dict.fromkeys(folder for folder in named if folder != base))


def _searched(path: str | None) -> str:
    return os.environ.get("PATH", os.defpath) if path is None else path


def _untrusted_folders(more: Sequence[Path] = ()) -> tuple[Path, ...]:
    """The excluded folders and the current one; a root folder contains every program, so it excludes none."""
    try:
        current = [Path.cwd()]
    except OSError:
        current = []  # It was removed.
    return tuple(sorted(folder for folder in {*_excluded, *current, *more} if folder != Path(folder.anchor)))


def _absolute(path: str) -> Iterator[str]:
    return filter(os.path.isabs, path.split(os.pathsep))


def _trusted(path: str, untrusted: Sequence[Path]) -> Iterator[str]:
    """The folders of a list in which programs are looked for."""
    return (folder for folder in _absolute(path) if not _is_exposed(folder, untrusted))


def _trusted_program(folder: str, name: str, untrusted: Sequence[Path]) -> str | None:
    """The program if the folder has it and neither is exposed. That it is there is asked first: it rarely is."""
    program = os.path.join(folder, name)  # noqa: PTH118 - text in, text out
    if not _is_program(program) or _is_exposed(folder, untrusted) or _is_exposed(program, untrusted):
        return None
    return program


def _is_program(path: str) -> bool:
    return os.access(path, os.X_OK) and os.path.isfile(path)  # noqa: PTH113 - never raises


def _is_exposed(given: str, untrusted: Sequence[Path]) -> bool:
    """Whether commands or other users may write a folder or program, as it is named or where it leads."""
    named = Path(os.path.normpath(given))
    resolved = Path(os.path.realpath(given))
    if any(contains(folder, path) for folder in untrusted for path in {named, resolved}):
        return True
    return any(_is_open_to_others(path, is_inner=path == resolved) for path in (resolved, *resolved.parents))


def _is_open_to_others(path: Path, *, is_inner: bool) -> bool:
    try:
        found = path.stat()
    except OSError:
        return False
    if found.st_mode & stat.S_IWOTH and (is_inner or not found.st_mode & stat.S_ISVTX):
        return True
    # The group of a folder of root was chosen by who administers the machine.
    trusted_groups = {0, os.getegid(), *((_MACOS_ADMINISTRATORS,) if sys.platform == "darwin" else ())}
    return bool(found.st_mode & stat.S_IWGRP) and found.st_uid != 0 and found.st_gid not in trusted_groups


def contains(root: Path, path: Path) -> bool:
    """Whether a resolved path is in a resolved folder: by its parts, else by comparing the folders themselves.

    The comparison finds other spellings of the same folder, which case-insensitive file systems allow.
    """
    if path.is_relative_to(root):
        return True
    try:
        wanted = root.stat()
    except OSError:
        return False
    for folder in (path, *path.parents):
        with suppress(OSError):
            if os.path.samestat(folder.lstat(), wanted):
                return True
    return False
