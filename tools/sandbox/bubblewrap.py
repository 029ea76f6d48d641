"""The bubblewrap command line, which starts a program in namespaces of its own."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import assert_never

from tools.sandbox.mounts import Mount, SandboxRules, is_folder, ordered_mounts, path_exists
from tools.sandbox.protected_paths import empty_file

__all__ = ["NAMESPACE_OPTIONS", "bubblewrap_arguments", "without_die_with_parent"]

_DIE_WITH_PARENT = "--die-with-parent"
NAMESPACE_OPTIONS = (
    _DIE_WITH_PARENT,
    "--new-session",
    "--unshare-user",
    "--unshare-all",
    "--disable-userns",
    "--cap-drop",
    "ALL",
)
"""Always passed; a version that does not know one of these is too old."""
_SHARED_TEMP = ("/tmp", "/var/tmp")  # noqa: S108 - these are hidden, not used
_RUN = Path("/run")
_KEPT_OF_RUN = ("current-system", "booted-system", "opengl-driver")
"""Where NixOS keeps its programs."""
_RESOLVER = Path("/etc/resolv.conf")


def bubblewrap_arguments(program: str, rules: SandboxRules, private: Path, mounts: Sequence[Mount]) -> list[str]:
    """The command line up to the program that is to be run, which the caller appends.

    Args:
        program: bubblewrap itself.
        rules: what the sandbox allows.
        private: the folder that replaces the shared folders of temporary files.
        mounts: what is closed in the writable folders.
    """
    network = ("--share-net",) if rules.network else ()
    system = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", str(_RUN))
    table = [*_run_mounts(rules), *_writable_mounts(rules, private), *_hidden_mounts(rules), *mounts]
    options = (word for mount in ordered_mounts(table) for word in _mount_options(mount))
    return [program, *NAMESPACE_OPTIONS, *network, *system, *options, "--"]


def without_die_with_parent(arguments: Sequence[str]) -> tuple[str, ...]:
    """The same for a program that continues after the process that started it."""
    return tuple(word for word in arguments if word != _DIE_WITH_PARENT)


def _run_mounts(rules: SandboxRules) -> Iterator[Mount]:
    yield from (Mount(_RUN / name, "read") for name in _KEPT_OF_RUN if path_exists(_RUN / name))
    resolver = _RESOLVER.resolve()
    if rules.network and resolver.is_relative_to(_RUN) and path_exists(resolver):
        yield Mount(resolver, "read")


def _writable_mounts(rules: SandboxRules, private: Path) -> Iterator[Mount]:
    shared = _shared_temp_folders(rules)
    yield from (Mount(folder, "write", private) for folder in shared)
    visible = [path for path in rules.visible if not _is_in(path, rules.writable)]
    yield from (Mount(path, "read") for path in visible if _is_below(path, shared) and path_exists(path))
    yield from (Mount(folder, "write") for folder in rules.writable if is_folder(folder))


def _hidden_mounts(rules: SandboxRules) -> Iterator[Mount]:
    shared = _shared_temp_folders(rules)
    for path in rules.hidden:
        if _is_below(path, shared) and not _is_in(path, (*rules.writable, *rules.visible)):
            continue  # The private folder hides it already.
        if _is_in_hidden_folder(path, rules):
            continue
        if is_folder(path):
            yield Mount(path, "empty")
        elif path_exists(path):
            yield Mount(path, "read", empty_file())


def _is_in_hidden_folder(path: Path, rules: SandboxRules) -> bool:
    """Whether nothing is left at the path that could be hidden, because a hidden folder contains it."""
    opened = (*rules.writable, *rules.visible)
    return any(
        _is_below(path, (outer,)) and not any(_is_in(path, (seen,)) and _is_in(seen, (outer,)) for seen in opened)
        for outer in rules.hidden
        if is_folder(outer)
    )


def _shared_temp_folders(rules: SandboxRules) -> list[Path]:
    """Folders of temporary files that all users share, except one that contains the workspace."""
    named = dict.fromkeys(Path(name).resolve() for name in (*_SHARED_TEMP, tempfile.gettempdir()))
    return [folder for folder in named if is_folder(folder) and not _is_in(folder, rules.writable)]


def _is_in(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _is_below(path: Path, folders: Sequence[Path]) -> bool:
    return _is_in(path, folders) and path not in folders


def _mount_options(mount: Mount) -> tuple[str, ...]:
    place, source = str(mount.path), str(mount.source or mount.path)
    match mount.kind:
        case "write":
            return "--bind", source, place
        case "read":
            return "--ro-bind", source, place
        case "empty":
            return "--tmpfs", place, "--remount-ro", place
        case _:
            assert_never(mount.kind)
