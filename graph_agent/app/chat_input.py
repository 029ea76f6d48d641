"""What the user types and edits: slash commands of the user, file names in the workspace, the user's editor."""

import contextlib
import os
import shlex
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from graph_agent.app.project_trust import project_at
from graph_agent.config.paths import config_dir, read_plain_text
from graph_agent.config.project import PROJECT_COMMANDS
from graph_agent.config.user_commands import UserCommand, command_name, expand_user_command, parse_user_command
from graph_agent.errors import UsageError
from tools.base import ToolContext
from tools.ignore_files import IgnoreRules, is_hidden
from tools.paths import PathRefused, resolve
from tools.programs import program_words
from tools.walk import WalkSelection, walk

__all__ = ["FileNames", "UserCommands", "editor_words", "read_tree", "user_commands"]

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
"""How long the tree is searched; whoever waits for the names types on meanwhile."""
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
        names = [name for name in self._tree if wanted in name.lower() and name != typed]
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
    return 1 if last.startswith(wanted) else 2 if wanted in last else 3
