"""The one place where paths are resolved and opened, for every tool and for the facts that policy checks.

A path is resolved step by step as the file system says, and the resolved path is then opened through directory
descriptors without following any further link.
"""

import errno
import os
import re
import stat
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tools.programs import contains
from tools.result import ToolErrorType, ToolResult, failure

__all__ = [
    "PathRefused",
    "ResolvedPath",
    "containing_root",
    "contains",
    "given_path",
    "open_directory",
    "open_regular",
    "quoted_path",
    "resolve",
    "resolve_target",
    "shown_given",
    "shown_path",
]

_MAX_LINKS = 40
_MAX_PATH_BYTES = 4096
_MAX_NAME_BYTES = 255
_PROCESS_INTERNALS = re.compile(
    r"/proc/\d+(?:/task/\d+)?/(?:environ|mem|maps|smaps|smaps_rollup|numa_maps|map_files|pagemap|auxv|fd|fdinfo)(?:/|$)"
)
_TRAVERSE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class PathRefused(Exception):
    """A path cannot be used; `kind` and the message go into the result."""

    def __init__(self, kind: ToolErrorType, message: str) -> None:
        super().__init__(message)
        self.kind = kind

    def as_result(self) -> ToolResult:
        """The refusal as a value."""
        return failure(self.kind, str(self))


@dataclass(frozen=True)
class ResolvedPath:
    """Where a path leads."""

    given: str
    path: Path
    """Absolute, without links; the last parts need not exist."""
    inside: bool
    """Whether it is in the workspace or one of the other roots."""
    exposes_process: bool
    """Whether it leads through the environment, memory or descriptors of a process."""


def resolve(given: str, *, workspace: Path, base: Path | None = None, roots: Sequence[Path] = ()) -> ResolvedPath:
    """Follow a path. Relative ones start at `base`, else at the workspace; workspace and `roots` must be resolved.

    Raises:
        PathRefused: the text is not a path, links form a loop, or a folder on the way may not be searched.
    """
    start = os.path.join(base or workspace, _expand_home(given))  # noqa: PTH118 - Path() would drop a trailing "/.."
    path, exposes_process = _follow(given, start, "/")
    is_inside = any(contains(root, path) for root in (workspace, *roots))
    return ResolvedPath(given, path, is_inside, exposes_process)


def resolve_target(given: str, base: str) -> Path:
    """Where a path leads from a resolved folder: a faster `resolve` for many paths.

    Raises:
        PathRefused: see `resolve`.
    """
    text = _expand_home(given)
    return _follow(given, text, "/" if text.startswith("/") else base)[0]


def _expand_home(given: str) -> str:
    """The text with `~` replaced; refused if no path can be written like this."""
    if refusal := _refused_text(given):
        raise PathRefused(ToolErrorType.VALIDATION, refusal)
    return os.path.expanduser(given) if given.startswith("~") else given  # noqa: PTH111 - Path() would drop a trailing "/.."


@lru_cache(maxsize=2048)
def _refused_text(given: str) -> str:
    """Why no path can be written like this; empty if one can."""
    try:
        raw = os.fsencode(given)
    except UnicodeEncodeError:
        return f"The path {quoted_path(given)} contains characters that no file name can have."
    if not given.strip():
        return "The path is empty; name a file or folder."
    if "\0" in given:
        return f"The path {quoted_path(given)} contains a NUL character, which no file name may contain."
    if len(raw) > _MAX_PATH_BYTES or any(len(part) > _MAX_NAME_BYTES for part in raw.split(b"/")):
        return (
            f"The path {quoted_path(given[:60])}… is too long ({len(raw)} bytes); "
            f"at most {_MAX_NAME_BYTES} bytes per name and {_MAX_PATH_BYTES} in total are possible."
        )
    return ""


_UNSEEN = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]")
"""Characters that count as printable and yet cannot be seen."""
_SHORT = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_LONG = {escape[1]: character for character, escape in _SHORT.items()}
# Nothing that no name holds: NUL, a slash, half a character.
_ESCAPE = (
    r"\\(?:[\\'ntr]|x(?!00|2f)[0-9a-f]{2}|u(?!0000|002f|d[89a-f])[0-9a-f]{4}"
    r"|U(?!0000(?:0000|002f|d[89a-f]))(?:000[0-9a-f]|0010)[0-9a-f]{4})"
)
_QUOTED = re.compile(rf"\$'((?:[^\\'/\0]|{_ESCAPE})+)'", re.DOTALL)
_ESCAPED = re.compile(_ESCAPE)


def shown_path(path: str) -> str:
    r"""A path on one line of visible characters, as the model and the user see it and as tools take it back.

    A name with a character that cannot be seen is written as bash quotes it: `$'a\u200b.txt'`, or `$'caf\xe9'` for
    a byte that is no UTF-8. So is a name that would be taken for something else: one that looks quoted itself,
    begins or ends with a blank, or begins with `~` or `blob:`. `given_path` reads each form back, so two paths
    never share one.
    """
    return "/".join(map(_shown_name, path.split("/")))


def shown_given(given: str) -> str:
    """The path of an argument as it was given, but for characters that cannot be seen."""
    parts = given.split("/")
    return "/".join(part if _is_visible(part) or _QUOTED.fullmatch(part) else _shown_name(part) for part in parts)


def quoted_path(given: str) -> str:
    """The path of an argument as a message shows it: in quotes, unless a part of it has them."""
    shown = shown_given(given)
    return shown if "$'" in shown else f'"{shown}"' if "'" in shown else f"'{shown}'"


def given_path(text: str) -> str:
    """The path that an argument means: every part of it that is quoted as `shown_path` does is read.

    The form alone decides, not what exists: a file whose name looks quoted is reached by its own quoted form.
    """
    if "$'" not in text:
        return text
    path = "/".join(map(_given_name, text.split("/")))
    # Quoted, these are names like others.
    is_name = text.startswith("$'") and (path.startswith("~") or not path.strip())
    return f"./{path}" if is_name else path


def _shown_name(name: str) -> str:
    is_misread = name.strip() != name or name.startswith(("~", "blob:")) or _QUOTED.fullmatch(name) is not None
    return f"$'{''.join(map(_shown_character, name))}'" if is_misread or not _is_visible(name) else name


def _is_visible(name: str) -> bool:
    return name.isprintable() and (name.isascii() or _UNSEEN.search(name) is None)


def _shown_character(character: str) -> str:
    if short := _SHORT.get(character):
        return short
    if character.isprintable() and _UNSEEN.match(character) is None:
        return character
    code = ord(character)
    if code < 0x80 or 0xDC80 <= code <= 0xDCFF:  # The latter is how Python holds a byte that is no UTF-8.
        return f"\\x{code & 0xFF:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _given_name(part: str) -> str:
    found = _QUOTED.fullmatch(part)
    if found is None:
        return part
    text = _ESCAPED.sub(lambda escape: _given_character(escape[0]), found[1])
    with suppress(UnicodeEncodeError):
        text = os.fsdecode(os.fsencode(text))  # Bytes that were escaped one by one may be UTF-8 together.
    return text


def _given_character(escape: str) -> str:
    if character := _LONG.get(escape[1]):
        return character
    code = int(f"0x{escape[2:]}", 0)
    return chr(0xDC00 + code) if escape[1] == "x" and code >= 0x80 else chr(code)


def containing_root(roots: Iterable[Path], path: Path) -> Path | None:
    """The first of these resolved folders that contains a resolved path."""
    return next((root for root in roots if contains(root, path)), None)


@contextmanager
def open_directory(path: Path, *, create: bool = False) -> Iterator[int]:
    """A descriptor of a resolved folder, opened part by part; refuses a part that became a link.

    Raises:
        PathRefused: a part is missing (and not to be created), is not a folder, or may not be entered.
    """
    fd = os.open("/", _TRAVERSE)
    try:
        for part in path.parts[1:]:
            try:
                below = _enter(part, fd, create=create)
            except OSError as error:
                raise _refusal(str(path), error) from error
            os.close(fd)
            fd = below
        yield fd
    finally:
        os.close(fd)


def _enter(name: str, parent: int, *, create: bool) -> int:
    try:
        return os.open(name, _TRAVERSE, dir_fd=parent)
    except FileNotFoundError:
        if not create:
            raise
    with suppress(FileExistsError):
        os.mkdir(name, dir_fd=parent)
    return os.open(name, _TRAVERSE, dir_fd=parent)


@contextmanager
def open_regular(resolved: ResolvedPath) -> Iterator[int]:
    """A descriptor for reading a regular file; never blocks on a pipe or device, never follows a link.

    Raises:
        PathRefused: the file does not exist, is not a regular file, or may not be read.
    """
    if resolved.exposes_process:
        raise PathRefused(
            ToolErrorType.PERMISSION,
            f"{quoted_path(resolved.given)} leads into memory, environment or files of a process: never read.",
        )
    with open_directory(resolved.path.parent) as parent:
        name = resolved.path.name or "."
        try:
            # Checked before it is opened too, because opening a device can have effects.
            _require_regular(resolved, os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
            fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=parent)
        except OSError as error:
            raise _refusal(resolved.given, error) from error
    try:
        _require_regular(resolved, os.fstat(fd).st_mode)
        yield fd
    finally:
        os.close(fd)


def _require_regular(resolved: ResolvedPath, mode: int) -> None:
    if stat.S_ISREG(mode):
        return
    if stat.S_ISDIR(mode):
        raise PathRefused(ToolErrorType.VALIDATION, f"{quoted_path(resolved.given)} is a folder; list it with ls.")
    kinds = {stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket", stat.S_IFLNK: "a link that just changed"}
    what = kinds.get(stat.S_IFMT(mode), "a device")
    raise PathRefused(
        ToolErrorType.VALIDATION, f"{quoted_path(resolved.given)} is {what}; only regular files can be used."
    )


def _follow(given: str, start: str, current: str) -> tuple[Path, bool]:
    """Where a path leads from a resolved folder, and whether on its way it exposes a process."""
    pending = deque(start.split("/"))
    links = 0
    exposes_process = False
    while pending:
        part = pending.popleft()
        if part in ("", "."):
            continue
        if part == "..":
            current = os.path.dirname(current)  # noqa: PTH120 - text on purpose: current is resolved already
            continue
        candidate = f"{current.rstrip('/')}/{part}"
        exposes_process |= candidate.startswith("/proc/") and _PROCESS_INTERNALS.match(candidate) is not None
        try:
            target = os.readlink(candidate)  # noqa: PTH115 - text in, text out
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOENT):
                raise _refusal(given, error) from error
            current = candidate  # Not a link, or nothing at all.
            continue
        links += 1
        if links > _MAX_LINKS:
            raise PathRefused(
                ToolErrorType.VALIDATION,
                f"{quoted_path(given)} leads through too many links; they may form a loop.",
            )
        current = "/" if target.startswith("/") else current
        pending.extendleft(reversed(target.split("/")))
    return _path(current), exposes_process


_path = lru_cache(maxsize=2048)(Path)
"""The same words of commands are looked up again and again; making a path of the text costs more than the look."""


def _refusal(given: str, error: OSError) -> PathRefused:
    match error.errno:
        case errno.ENOENT:
            return PathRefused(
                ToolErrorType.NOT_FOUND, f"{quoted_path(given)} does not exist; list the folder with ls."
            )
        case errno.EACCES | errno.EPERM:
            return PathRefused(ToolErrorType.PERMISSION, f"{quoted_path(given)} may not be accessed by this user.")
        case errno.ENOTDIR:
            return PathRefused(ToolErrorType.NOT_FOUND, f"A part of {quoted_path(given)} is not a folder.")
        case errno.ELOOP:
            return PathRefused(
                ToolErrorType.VALIDATION, f"{quoted_path(given)} became a link while it was being opened."
            )
        case _:
            return PathRefused(ToolErrorType.EXECUTION, f"{quoted_path(given)} cannot be used: {error.strerror}.")
