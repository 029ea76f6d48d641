"""What the chat completes and expands in typed text: user-defined slash commands, and file names of the workspace.

Hidden and git-ignored files are offered once they are typed. Large trees are read only as far as time allows.
"""

import contextlib
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from graph_agent.app.project_trust import project_at
from graph_agent.config.paths import config_dir, read_plain_text
from graph_agent.config.project import PROJECT_COMMANDS, Project
from graph_agent.config.user_commands import UserCommand, command_name, expand_user_command, parse_user_command
from graph_agent.errors import UsageError
from tools.base import ToolContext
from tools.ignore_files import IgnoreRules, is_hidden
from tools.paths import PathRefused, resolve
from tools.walk import WalkSelection, walk

__all__ = ["FileNames", "UserCommands", "user_commands"]

_FOLDER = "commands"
_MOST_FILES = 500
_MOST_BYTES = 256 * 1024


@dataclass(frozen=True, slots=True)
class UserCommands:
    """What there is."""

    known: Mapping[str, UserCommand] = field(default_factory=dict)
    """By name, the user's own before those of the project."""
    untrusted: Mapping[str, str] = field(default_factory=dict)
    """Name to place: what a project brings that does not count."""

    def message(self, name: str, arguments: str) -> str | None:
        """The message that a command stands for; None where there is none of this name.

        Raises:
            UsageError: there is one, in a folder that is not trusted.
        """
        if (found := self.known.get(name)) is not None:
            return expand_user_command(found, arguments)
        if name in self.untrusted:
            raise UsageError(
                f"/{name} stands in {self.untrusted[name]}, and the folder is not trusted; "
                "see what it would turn on with: graph-agent config trust"
            )
        return None


def user_commands(workspace: Path, *, once: bool = False) -> UserCommands:
    """Every command there is in a workspace; with `once` those of its project count, whatever was answered.

    Raises:
        StorageError: the trust file cannot be read.
    """
    project = project_at(workspace, once=once)
    theirs = dict(_of_project(project))
    own = {one.name: one for one in _own()}
    if project.is_trusted:
        return UserCommands({**theirs, **own})
    return UserCommands(own, {name: one.place for name, one in theirs.items() if name not in own})


def _of_project(project: Project) -> Iterator[tuple[str, UserCommand]]:
    for file in project.files:
        if file.is_command and (name := command_name(file.name.removeprefix(f"{PROJECT_COMMANDS}/"))):
            yield name, parse_user_command(name, file.text, str(project.folder / file.name))


def _own() -> Iterator[UserCommand]:
    folder = config_dir(os.environ) / _FOLDER
    for number, path in enumerate(sorted(folder.rglob("*.md"))):
        name = command_name(path.relative_to(folder).as_posix())
        if number >= _MOST_FILES or not name:
            continue
        try:
            if path.stat().st_size <= _MOST_BYTES:
                yield parse_user_command(name, read_plain_text(path, errors="replace"), str(path))
        except OSError:
            continue


_MOST = 30
_SECONDS = 0.4
"""So long the tree is looked through; whoever waits for the names types on meanwhile."""
_FRESH_SECONDS = 5.0


class _Enough(Exception):
    """There was time for no more."""


class FileNames:
    """The names in one workspace; those of the whole tree are kept for some seconds."""

    def __init__(self, workspace: Path) -> None:
        self._workspace = workspace.resolve()
        self._tree: list[str] = []
        self._seen_at: float | None = None

    def like(self, typed: str) -> list[str]:
        """What may be meant, the likeliest first; folders end with a slash."""
        typed = typed.removeprefix("./")
        beside = list(self._beside(typed))
        wanted = typed.lower()
        if not wanted or typed.startswith(("/", "~", "../")):
            return beside[:_MOST]
        names = [name for name in self._names() if wanted in name.lower() and name != typed]
        ranked = sorted(names, key=lambda name: (_rank(name.lower(), wanted), len(name), name))
        return list(dict.fromkeys((*beside, *ranked)))[:_MOST]

    def _beside(self, typed: str) -> Iterator[str]:
        """What stands in the folder that was typed and begins as the rest of it."""
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

    def _names(self) -> list[str]:
        if self._seen_at is None or time.monotonic() - self._seen_at > _FRESH_SECONDS:
            self._tree = _tree(self._workspace)
            self._seen_at = time.monotonic()
        return self._tree


def _tree(workspace: Path) -> list[str]:
    """Files and folders below, as far as there was time."""
    until = time.monotonic() + _SECONDS
    files: list[str] = []

    def take(prefix: str, names: list[str]) -> list[str]:
        if time.monotonic() > until:
            raise _Enough
        files.extend(f"{prefix}{name}" for name in names)
        return []

    with contextlib.suppress(_Enough, PathRefused, OSError):
        walk(resolve(".", workspace=workspace), ToolContext(workspace), WalkSelection(take, lambda _: False))
    folders = {f"{folder}/" for name in files if (folder := name.rpartition("/")[0])}
    return [*folders, *files]


def _rank(name: str, wanted: str) -> int:
    last = name.rstrip("/").rpartition("/")[2]
    if name.startswith(wanted):
        return 0
    return 1 if last.startswith(wanted) else 2 if wanted in last else 3
