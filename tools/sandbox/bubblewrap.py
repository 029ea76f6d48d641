"""The command line that puts a program into namespaces of its own. Starts nothing."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tools.sandbox.mounts import Mount, SandboxRules, in_order, is_folder, path_exists
from tools.sandbox.protected_paths import empty_file

__all__ = ["NAMESPACE_OPTIONS", "bubblewrap_arguments", "without_die_with_parent"]

_TIED = "--die-with-parent"
NAMESPACE_OPTIONS = (
    _TIED,
    "--new-session",
    "--unshare-user",
    "--unshare-all",
    "--disable-userns",
    "--cap-drop",
    "ALL",
)
"""What is always asked of it; a version that does not know a word of this is too old."""
_SHARED_TEMP = ("/tmp", "/var/tmp")  # noqa: S108 - these are hidden, not used
_SOCKETS = Path("/run")
_KEPT_OF_RUN = ("current-system", "booted-system", "opengl-driver")
"""Where NixOS keeps its programs."""
_RESOLVER = Path("/etc/resolv.conf")


def bubblewrap_arguments(program: str, terms: SandboxRules, private: Path, mounts: Sequence[Mount]) -> list[str]:
    """Everything up to the program that is to be run, which is left to be added.

    Args:
        program: bubblewrap itself.
        terms: what is let through.
        private: stands in place of the shared folders of temporary files.
        mounts: what is closed in the writable folders.
    """
    network = ("--share-net",) if terms.network else ()
    system = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", str(_SOCKETS))
    table = [*_of_run(terms), *_writable(terms, private), *_hidden(terms), *mounts]
    return [
        program,
        *NAMESPACE_OPTIONS,
        *network,
        *system,
        *(word for mount in in_order(table) for word in _words(mount)),
        "--",
    ]


def without_die_with_parent(arguments: Sequence[str]) -> tuple[str, ...]:
    """The same for a program that goes on when whoever started it has ended."""
    return tuple(word for word in arguments if word != _TIED)


def _of_run(terms: SandboxRules) -> Iterator[Mount]:
    yield from (Mount(_SOCKETS / name, "read") for name in _KEPT_OF_RUN if path_exists(_SOCKETS / name))
    resolver = _RESOLVER.resolve()
    if terms.network and resolver.is_relative_to(_SOCKETS) and path_exists(resolver):
        yield Mount(resolver, "read")


def _writable(terms: SandboxRules, private: Path) -> Iterator[Mount]:
    shared = _shared_temp(terms)
    yield from (Mount(folder, "write", private) for folder in shared)
    seen = [path for path in terms.visible if not _within(path, terms.writable)]
    yield from (Mount(path, "read") for path in seen if _below(path, shared) and path_exists(path))
    yield from (Mount(folder, "write") for folder in terms.writable if is_folder(folder))


def _hidden(terms: SandboxRules) -> Iterator[Mount]:
    shared = _shared_temp(terms)
    for path in terms.hidden:
        if _below(path, shared) and not _within(path, (*terms.writable, *terms.visible)):
            continue  # Hidden with everything beside it.
        if _is_covered(path, terms):
            continue
        if is_folder(path):
            yield Mount(path, "empty")
        elif path_exists(path):
            yield Mount(path, "read", empty_file())


def _is_covered(path: Path, terms: SandboxRules) -> bool:
    """Whether it lies in a hidden folder: there is nothing there any more that could be hidden."""
    opened = (*terms.writable, *terms.visible)
    return any(
        _below(path, (outer,)) and not any(_within(path, (seen,)) and _within(seen, (outer,)) for seen in opened)
        for outer in terms.hidden
        if is_folder(outer)
    )


def _shared_temp(terms: SandboxRules) -> list[Path]:
    """Folders of temporary files that everybody shares, unless it is one of them that is worked in."""
    named = dict.fromkeys(Path(name).resolve() for name in (*_SHARED_TEMP, tempfile.gettempdir()))
    return [folder for folder in named if is_folder(folder) and not _within(folder, terms.writable)]


def _within(path: Path, folders: Sequence[Path]) -> bool:
    return any(path.is_relative_to(folder) for folder in folders)


def _below(path: Path, folders: Sequence[Path]) -> bool:
    return _within(path, folders) and path not in folders


def _words(mount: Mount) -> tuple[str, ...]:
    place, source = str(mount.path), str(mount.source or mount.path)
    match mount.kind:
        case "write":
            return "--bind", source, place
        case "read":
            return "--ro-bind", source, place
        case "empty":
            return "--tmpfs", place, "--remount-ro", place
