"""Input of the chat: the user's own slash commands, file names in the workspace, images, and the editor."""

import base64
import contextlib
import hashlib
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from graph_agent.app.project_trust import project_at
from graph_agent.config.paths import (
    config_dir,
    make_private_folder,
    pasted_dir,
    read_plain_text,
    special_file_kind,
)
from graph_agent.config.project import PROJECT_COMMANDS
from graph_agent.config.user_commands import UserCommand, command_name, expand_user_command, parse_user_command
from graph_agent.errors import UsageError
from graph_agent.wording import fuzzy_pattern
from tools.base import ToolContext
from tools.file_ops.images import MAX_BYTES, image_size, is_whole_image, media_type_of
from tools.ignore_files import IgnoreRules, is_hidden
from tools.paths import PathRefused, resolve
from tools.programs import find_program, program_words
from tools.walk import WalkSelection, walk

__all__ = [
    "FileNames",
    "PastedImage",
    "UserCommands",
    "clipboard_image",
    "dropped_images",
    "editor_words",
    "label_file",
    "read_tree",
    "save_image",
    "user_commands",
]

_MAX_COMMANDS = 500
_MAX_BYTES = 256 * 1024


def editor_words(command: str) -> list[str]:
    """The words of an editor's command line, as $EDITOR names it.

    Raises:
        OSError: there is no such program, or only where commands may write.
        ValueError: the text is no command line.
    """
    return program_words(shlex.split(command))


@dataclass(frozen=True, slots=True)
class UserCommands:
    """The user-defined commands of a workspace."""

    known: Mapping[str, UserCommand] = field(default_factory=dict)
    """By name; a command of the user hides one of the project."""
    untrusted: Mapping[str, str] = field(default_factory=dict)
    """Name to place: commands of a project that is not trusted."""

    def message(self, name: str, arguments: str) -> str | None:
        """The message that a command stands for; None if there is none of this name.

        Raises:
            UsageError: there is one, in a folder that is not trusted.
        """
        if (found := self.known.get(name)) is not None:
            return expand_user_command(found, arguments)
        if name in self.untrusted:
            raise UsageError(
                f"/{name} is defined in {self.untrusted[name]}, in a folder that you have not trusted. "
                "Review it with: graph-agent config trust"
            )
        return None


def user_commands(workspace: Path, *, once: bool = False) -> UserCommands:
    """Every command in a workspace; with `once` its project is trusted, whatever the user decided.

    Raises:
        StorageError: the trust file cannot be read.
    """
    project = project_at(workspace, once=once)
    of_project = {
        name: parse_user_command(name, file.text, str(project.folder / file.name))
        for file in project.files
        if file.place[0] == PROJECT_COMMANDS and (name := command_name(file.place[1]))
    }
    own = {command.name: command for command in _own_commands()}
    if project.is_trusted:
        return UserCommands({**of_project, **own})
    return UserCommands(own, {name: one.place for name, one in of_project.items() if name not in own})


def _own_commands() -> Iterator[UserCommand]:
    folder = config_dir(os.environ) / "commands"
    for path in sorted(folder.rglob("*.md"))[:_MAX_COMMANDS]:
        if not (name := command_name(path.relative_to(folder).as_posix())):
            continue
        with contextlib.suppress(OSError):
            if path.stat().st_size <= _MAX_BYTES:
                yield parse_user_command(name, read_plain_text(path, errors="replace"), str(path))


_MAX_NAMES = 30
_WALK_S = 0.4
"""How long the tree is searched; the user goes on typing meanwhile."""
_FRESH_S = 5.0


class _OutOfTime(Exception):
    """The rest of the tree is left out."""


class FileNames:
    """The names in one workspace; those of the whole tree are kept for some seconds.

    Hidden and git-ignored files are offered once they are typed. Large trees are read only as far as time allows.
    """

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace.resolve()
        self._tree: list[str] = []
        self._read_at: float | None = None

    def like(self, typed: str) -> list[str]:
        """What may be meant, the likeliest first; folders end with a slash."""
        typed = typed.removeprefix("./")
        beside = list(self._beside(typed))
        wanted = typed.lower()
        if not wanted or typed.startswith(("/", "~", "../")):
            return beside[:_MAX_NAMES]
        if self._read_at is None or time.monotonic() - self._read_at > _FRESH_S:
            self._tree = read_tree(self._workspace)
            self._read_at = time.monotonic()
        pattern = fuzzy_pattern(wanted)
        names = [name for name in self._tree if pattern.match(name) and name != typed]
        names.sort(key=lambda name: (_rank(name.lower(), wanted), len(name), name))
        return list(dict.fromkeys((*beside, *names)))[:_MAX_NAMES]

    def _beside(self, typed: str) -> Iterator[str]:
        """The names in the typed folder that begin with the rest of the text."""
        folder, slash, start = typed.rpartition("/")
        place = Path(folder + slash or ".").expanduser()
        path = place if place.is_absolute() else self._workspace / place
        rules = IgnoreRules(self._workspace)
        try:
            with os.scandir(path) as found:
                entries = sorted((one.name, one.is_dir()) for one in found if one.name.startswith(start))
        except OSError:
            return
        for name, is_folder in entries:
            is_left_out = is_hidden(name) or rules.ignores(path / name, is_folder=is_folder)
            if not is_left_out or (start and start[0] == name[0]):
                yield f"{folder}{slash}{name}{'/' if is_folder else ''}"


def read_tree(workspace: Path) -> list[str]:
    """Folders and files below, as far as time allows."""
    until = time.monotonic() + _WALK_S
    files: list[str] = []

    def take(prefix: str, names: list[str]) -> list[str]:
        if time.monotonic() > until:
            raise _OutOfTime
        files.extend(f"{prefix}{name}" for name in names)
        return []

    with contextlib.suppress(_OutOfTime, PathRefused, OSError):
        walk(resolve(".", workspace=workspace), ToolContext(workspace), WalkSelection(take, lambda _: False))
    folders = {f"{folder}/" for name in files if (folder := name.rpartition("/")[0])}
    return [*folders, *files]


def _rank(name: str, wanted: str) -> int:
    last = name.rstrip("/").rpartition("/")[2]
    if name.startswith(wanted):
        return 0
    if last.startswith(wanted):
        return 1
    return 2 if wanted in last else 3 if wanted in name else 4


class PastedImage(NamedTuple):
    """A copy of an image that goes with a message, so a later change of the original does not matter."""

    path: Path
    label: str
    """Name and size, for the placeholder on the line."""


_POWERSHELL = (
    "$i = Get-Clipboard -Format Image; if ($i) { $m = New-Object IO.MemoryStream; "
    "$i.Save($m, [Drawing.Imaging.ImageFormat]::Png); [Convert]::ToBase64String($m.ToArray()) }"
)
_CLIPBOARD_PROGRAMS = (
    ("wl-paste", "--no-newline", "--type", "image/png"),
    ("xclip", "-selection", "clipboard", "-target", "image/png", "-out"),
    ("pngpaste", "-"),
    (
        "powershell.exe",
        "-NoProfile",
        "-Command",
        _POWERSHELL,
    ),
)
"""Each writes the image to stdout, PowerShell as base64."""
_CLIPBOARD_S = 5.0
_KEPT_S = 7 * 24 * 3600.0
"""How long copies are kept; sent images are stored with the thread."""
_NAME_CHARS = 40


def clipboard_image() -> PastedImage:
    """The image in the clipboard.

    Raises:
        UsageError: there is none, no program can read it, or it cannot be sent.
    """
    found = [command for command in _CLIPBOARD_PROGRAMS if find_program(command[0])]
    if not found:
        raise UsageError(
            "No program can read images from the clipboard. Install wl-clipboard (Wayland), xclip (X11) or "
            "pngpaste (macOS), or drop an image file."
        )
    for command in found:
        if data := _output_of(command):
            return save_image(data, "clipboard.png")
    raise UsageError("The clipboard contains no image.")


def dropped_images(text: str) -> list[PastedImage]:
    """The images that a pasted text names: paths, quoted or with escaped blanks, or file:// URLs.

    Empty if anything else is in it.

    Raises:
        UsageError: one of them cannot be sent.
    """
    whole = text.strip()
    try:
        words = shlex.split(whole)
    except ValueError:
        words = []
    paths = [_dropped_path(word) for word in words]
    if not paths or not all(path is not None and path.is_file() for path in paths):
        paths = [_dropped_path(whole)]
    found = []
    for path in paths:
        if path is None or special_file_kind(path) or not path.is_file():
            return []
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if media_type_of(data) is None:
            return []
        found.append((data, path.name))
    return [save_image(data, name) for data, name in found]


def _dropped_path(word: str) -> Path | None:
    """The absolute path in a word, which may be a file:// URL."""
    path = Path(unquote(urlsplit(word).path) if word.startswith("file://") else word)
    return path if path.is_absolute() and "\0" not in word else None


def _output_of(command: Sequence[str]) -> bytes:
    """The stdout of a clipboard program, up to the size limit of an image; empty if it fails."""
    try:
        with subprocess.Popen(
            program_words(command), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            timer = threading.Timer(_CLIPBOARD_S, process.kill)
            timer.start()
            try:
                data = process.stdout.read(2 * MAX_BYTES) if process.stdout else b""
            finally:
                timer.cancel()
                process.kill()
    except OSError:
        return b""
    if command[0] == "powershell.exe":
        with contextlib.suppress(ValueError):
            return base64.b64decode(data)
    return data


def label_file(path: Path) -> str:
    """Name and size of an image that can be sent.

    Raises:
        UsageError: it cannot be sent, or read.
    """
    try:
        with path.open("rb") as file:
            return _label(file.read(MAX_BYTES + 1), path.name)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}.") from error


def _label(data: bytes, name: str) -> str:
    media_type = media_type_of(data)
    if media_type is None:
        raise UsageError(f"{name} is not a PNG, JPEG, GIF or WebP image.")
    if len(data) > MAX_BYTES:
        raise UsageError(f"{name} is larger than {MAX_BYTES // 1024 // 1024} MB. Attach a smaller copy.")
    if not is_whole_image(data, media_type):
        raise UsageError(f"{name} is damaged or truncated. It was not attached.")
    size, name = image_size(data, media_type), _plain_name(name, media_type)
    shown = name if len(name) <= _NAME_CHARS else f"{name[: _NAME_CHARS - 9]}…{name[-8:]}"
    return f"{shown}, {size[0]}x{size[1]}" if size else shown


def save_image(data: bytes, name: str) -> PastedImage:
    """Keep a copy of an image under this name, for a message that mentions it.

    Raises:
        UsageError: it is not an image that can be sent, or it cannot be stored.
    """
    label = _label(data, name)
    folder = pasted_dir(os.environ)
    path = folder / hashlib.sha256(data).hexdigest()[:16] / _plain_name(name, media_type_of(data) or "")
    try:
        _remove_old(folder)
        make_private_folder(path.parent)
        path.touch(mode=0o600)
        path.write_bytes(data)
    except OSError as error:
        raise UsageError(f"The image could not be saved in {folder}: {error.strerror or error}.") from error
    return PastedImage(path, label)


def _plain_name(name: str, media_type: str) -> str:
    return name if name.isprintable() and '"' not in name else f"image.{media_type.partition('/')[2]}"


def _remove_old(folder: Path) -> None:
    until = time.time() - _KEPT_S
    for old in folder.glob("*/*"):
        with contextlib.suppress(OSError):
            if old.stat().st_mtime < until:
                old.unlink()
                old.parent.rmdir()
