"""The files of a project folder that are read for effect, and whether the user trusted exactly their contents.

This module looks at names only: whoever opens the files safely passes in their contents. AGENTS.md files are also
looked for in folders below, a few levels down; hidden folders and repositories of their own are skipped.
"""

import os
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

__all__ = [
    "NOT_TRUSTED",
    "PROJECT_COMMANDS",
    "PROJECT_CONFIG",
    "PROJECT_FOLDERS",
    "PROJECT_HOOKS",
    "PROJECT_SKILLS",
    "PROJECT_TOOLS",
    "WATCHED",
    "Project",
    "ProjectFile",
    "Trust",
    "has_project_files",
    "is_nested",
    "nested_instructions",
]

_NESTED = "AGENTS.md"
"""The name of instructions in folders below the project's own."""
_MAX_DEPTH = 4
_MAX_FOLDERS = 500
_MAX_ENTRIES = 20_000
"""How many names are looked at: it happens before the first prompt."""
_MAX_NESTED = 30
_SKIPPED = frozenset(("node_modules", "vendor", "venv", "target", "build", "dist", "__pycache__", "site-packages"))

PROJECT_CONFIG = ".graph-agent/config.toml"

WATCHED: Mapping[str, str] = {
    PROJECT_CONFIG: "settings",
    "AGENTS.md": "instructions to the model",
    "CONTEXT.md": "instructions to the model",
}
"""Every file of a project that is read for effect, relative to its folder, and what it holds.

Whatever else a project may bring one day gets its line here, or below: what does not stand here is data."""

NOT_TRUSTED = "folder not trusted"

PROJECT_TOOLS = ".graph-agent/tools"
"""Folder of a project whose `*.py` files hold tools: each is code that runs, and is watched like the others."""

PROJECT_HOOKS = ".graph-agent/hooks"
"""Folder for what the commands of a project's hooks run: with another script the folder has to be trusted anew."""

PROJECT_COMMANDS = ".graph-agent/commands"
"""Folder of a project, with folders in it, whose `*.md` files are slash commands."""

PROJECT_SKILLS = (".agents/skills", ".graph-agent/skills")
"""Folders of a project with a folder for each skill and its `SKILL.md`; many agents look into the first."""

PROJECT_FOLDERS: Mapping[str, str] = {
    PROJECT_TOOLS: "code that is run when a chat begins: tools",
    PROJECT_HOOKS: "what hooks may run",
    PROJECT_COMMANDS: "a slash command",
    **dict.fromkeys(PROJECT_SKILLS, "a skill: instructions to the model"),
}
"""Folders whose files are watched, and what these hold."""

_NESTED_CHARS = 8_000
"""What the files of folders below may say together, before the model is only told to read them."""

Trust = Literal["none", "trusted", "once", "untrusted", "changed", "declined"]
"""none: there is nothing to trust; once: for this process only; changed: other contents were trusted."""


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """One file, as it was read once: what was hashed is what counts."""

    name: str
    sha256: str
    text: str
    news: Literal["", "new", "changed"] = ""
    """Against what was trusted before."""

    @property
    def is_command(self) -> bool:
        """Whether it holds a slash command."""
        return self.name.startswith(f"{PROJECT_COMMANDS}/")

    @property
    def is_instructions(self) -> bool:
        """Whether it holds instructions for every turn."""
        return (self.name != PROJECT_CONFIG and self.name in WATCHED) or is_nested(self.name)

    @property
    def holds(self) -> str:
        """What stands in it, in words."""
        if is_nested(self.name):
            return "instructions to the model, for what lies below"
        return WATCHED.get(self.name) or next(
            what for folder, what in PROJECT_FOLDERS.items() if self.name.startswith(f"{folder}/")
        )


@dataclass(frozen=True, slots=True)
class Project:
    """A folder with what it says."""

    folder: Path
    files: tuple[ProjectFile, ...] = ()
    refused: Mapping[str, str] = field(default_factory=dict)
    """Name to reason: what stands there and cannot be read safely never counts and is never asked about."""
    trust: Trust = "none"
    gone: tuple[str, ...] = ()
    """What was trusted before and is not there any more."""

    @property
    def is_trusted(self) -> bool:
        """Whether its files are read for effect."""
        return self.trust in ("trusted", "once")

    @property
    def config(self) -> ProjectFile | None:
        """Its settings."""
        return next((file for file in self.files if file.name == PROJECT_CONFIG), None)

    def with_config(self, text: str) -> "Project":
        """The folder as it would be with these settings, and the trust it has now."""
        others = (file for file in self.files if file.name != PROJECT_CONFIG)
        return replace(self, files=(*others, ProjectFile(PROJECT_CONFIG, "", text)))

    @property
    def config_path(self) -> Path:
        """Where its settings stand, or would."""
        return self.folder / PROJECT_CONFIG

    @property
    def digests(self) -> Mapping[str, str]:
        """Name to SHA-256."""
        return {file.name: file.sha256 for file in self.files}

    @property
    def instructions(self) -> str:
        """Its instructions to the model, each under the name of its file; empty where it is not trusted."""
        files = [file for file in self.files if self.is_trusted and file.is_instructions and file.text.strip()]
        return "\n\n".join(_format_instructions(files))

    @property
    def tools(self) -> tuple[tuple[str, str], ...]:
        """Its files with tools, each with its path and text; none if it is not trusted."""
        return self._trusted_files(PROJECT_TOOLS)

    @property
    def skills(self) -> tuple[tuple[str, str], ...]:
        """Its skills, each with the path and text of its file; none if it is not trusted."""
        return self._trusted_files(*PROJECT_SKILLS)

    def _trusted_files(self, *folders: str) -> tuple[tuple[str, str], ...]:
        places = tuple(f"{folder}/" for folder in folders)
        files = self.files if self.is_trusted else ()
        return tuple((str(self.folder / file.name), file.text) for file in files if file.name.startswith(places))


def _format_instructions(files: list[ProjectFile]) -> Iterator[str]:
    """Each file under its name; those of folders below up to a limit, beyond it only a hint to read them."""
    room = _NESTED_CHARS
    for file in files:
        text = file.text.strip()
        if not is_nested(file.name):
            yield f"## {file.name}\n\n{text}"
            continue
        about = f"## {file.name}, for files below {file.name.removesuffix(_NESTED)}\n\n"
        if len(text) <= room:
            room -= len(text)
            yield f"{about}{text}"
        else:
            yield f"{about}Read this file ({len(text)} characters) before you work on files there."


def has_project_files(folder: Path) -> bool:
    """A quick look, before anything heavy is loaded: whether any of the names is there at all."""
    names = (*WATCHED, *PROJECT_FOLDERS)
    return any(os.path.lexists(folder / name) for name in names) or bool(nested_instructions(folder))


def is_nested(name: str) -> bool:
    """Whether a project's file, named from its folder, holds instructions for a folder below."""
    return name.endswith(f"/{_NESTED}") and not name.startswith(".")


def nested_instructions(root: Path) -> tuple[str, ...]:
    """The names of AGENTS.md files in folders below, the nearest first; always the same for the same folders."""
    found: list[str] = []
    waiting, looked, seen = deque([("", 0)]), 0, 0
    while waiting and looked < _MAX_FOLDERS and seen < _MAX_ENTRIES and len(found) < _MAX_NESTED:
        place, depth = waiting.popleft()
        folders, files = _list_folder(root / place)
        looked, seen = looked + 1, seen + len(folders) + len(files)
        if place and ".git" in {*folders, *files}:
            continue
        if place and _NESTED in files:
            found.append(f"{place}{_NESTED}")
        if depth < _MAX_DEPTH:
            below = sorted(name for name in folders if not name.startswith(".") and name not in _SKIPPED)
            waiting += [(f"{place}{name}/", depth + 1) for name in below]
    return tuple(found)


def _list_folder(folder: Path) -> tuple[list[str], list[str]]:
    """Names of folders, and other names, links among them; nothing if it cannot be read."""
    folders: list[str] = []
    files: list[str] = []
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                (folders if entry.is_dir(follow_symlinks=False) else files).append(entry.name)
                if len(folders) + len(files) >= _MAX_ENTRIES:
                    break
    except OSError:
        return [], []
    return folders, files
