"""Finds the slash commands of the user's own: Markdown files beside config.toml, and those of a trusted project.

Reads files; runs nothing.
"""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from graph_agent.app.project import project_at
from graph_agent.config.paths import config_dir
from graph_agent.config.plain import plain_text
from graph_agent.config.project import PROJECT_COMMANDS, Project
from graph_agent.config.user_commands import UserCommand, command_in, command_name, message_of
from graph_agent.errors import UsageError

__all__ = ["UserCommands", "user_commands"]

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
            return message_of(found, arguments)
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
    if project.counts:
        return UserCommands({**theirs, **own})
    return UserCommands(own, {name: one.place for name, one in theirs.items() if name not in own})


def _of_project(project: Project) -> Iterator[tuple[str, UserCommand]]:
    for file in project.files:
        if file.is_command and (name := command_name(file.name.removeprefix(f"{PROJECT_COMMANDS}/"))):
            yield name, command_in(name, file.text, str(project.folder / file.name))


def _own() -> Iterator[UserCommand]:
    folder = config_dir(os.environ) / _FOLDER
    for number, path in enumerate(sorted(folder.rglob("*.md"))):
        name = command_name(path.relative_to(folder).as_posix())
        if number >= _MOST_FILES or not name:
            continue
        try:
            if path.stat().st_size <= _MOST_BYTES:
                yield command_in(name, plain_text(path, errors="replace"), str(path))
        except OSError:
            continue
