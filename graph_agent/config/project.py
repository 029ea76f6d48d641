"""The files of a project folder that are read for effect, and whether the user trusted exactly their contents.

This module looks at names only: the caller opens the files safely and passes in their contents. AGENTS.md files
are also looked for in folders below, a few levels down; hidden folders and repositories of their own are skipped.
Where a project has no file for this agent, its file of the same kind for another agent is read instead, as a
fall-back.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from graph_agent.config.user_commands import field_items, split_front_matter

__all__ = [
    "FALLBACKS",
    "NOT_TRUSTED",
    "PROJECT_AGENTS",
    "PROJECT_COMMANDS",
    "PROJECT_CONFIG",
    "PROJECT_FOLDERS",
    "PROJECT_HOOKS",
    "PROJECT_RULES",
    "PROJECT_SKILLS",
    "PROJECT_TOOLS",
    "WATCHED",
    "Project",
    "ProjectFile",
    "Trust",
    "has_project_files",
    "instructions_above",
    "instructions_in",
    "is_nested",
    "nested_instructions",
    "repository_above",
]

_INSTRUCTIONS = ("AGENTS.md", "CLAUDE.md", "GEMINI.md")
"""Names of instructions; of those in one folder the first counts. The others were written for other agents."""
_MAX_DEPTH = 4
_MAX_FOLDERS = 500
_MAX_ENTRIES = 20_000
"""How many names are looked at: it happens before the first prompt."""
_MAX_NESTED = 30
_ABOVE = "../"
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

PROJECT_AGENTS = ".graph-agent/agents"
"""Folder of a project whose `*.md` files define agents."""

FALLBACKS: Mapping[str, tuple[str, ...]] = {
    ".claude/commands": (PROJECT_COMMANDS,),
    ".claude/skills": PROJECT_SKILLS,
    ".claude/agents": (PROJECT_AGENTS,),
}
"""Folders of another agent, each with ours for the same kind of file; a file in ours hides its namesake."""

PROJECT_RULES = ".cursor/rules"
"""Folder with `*.mdc` files: instructions that another editor sends always, for some files, or for some tasks."""

PROJECT_FOLDERS: Mapping[str, str] = {
    PROJECT_TOOLS: "code that is run when a chat begins: tools",
    PROJECT_HOOKS: "what hooks may run",
    **dict.fromkeys((PROJECT_COMMANDS, ".claude/commands"), "a slash command"),
    **dict.fromkeys((*PROJECT_SKILLS, ".claude/skills"), "a skill: instructions to the model"),
    **dict.fromkeys((PROJECT_AGENTS, ".claude/agents"), "an agent: instructions to the model"),
    PROJECT_RULES: "instructions to the model, in place of AGENTS.md",
}
"""Folders whose files are watched, and what these hold."""

_SCOPED_CHARS = 8_000
"""What the instructions for parts of the project may say together; the model reads the rest itself."""

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
    def place(self) -> tuple[str, str]:
        """Our folder for files of its kind, and its path in its own; without a folder where it is in none."""
        for folder in PROJECT_FOLDERS:
            if self.name.startswith(f"{folder}/"):
                return FALLBACKS.get(folder, (folder,))[0], self.name.removeprefix(f"{folder}/")
        return "", self.name

    @property
    def is_instructions(self) -> bool:
        """Whether it holds instructions for every turn."""
        is_first = self.name in (*WATCHED, *_INSTRUCTIONS) and self.name != PROJECT_CONFIG
        return is_first or self.name.startswith(_ABOVE) or is_nested(self.name) or self.place[0] == PROJECT_RULES

    @property
    def holds(self) -> str:
        """What stands in it, in words."""
        if self.name.startswith(_ABOVE):
            return "instructions to the model, for the repository around this folder"
        if is_nested(self.name):
            return "instructions to the model, for what lies below"
        if self.name in _INSTRUCTIONS[1:]:
            return f"instructions to the model, in place of {_INSTRUCTIONS[0]}"
        return WATCHED.get(self.name) or PROJECT_FOLDERS[self.place[0]]


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

    @property
    def agents(self) -> tuple[tuple[str, str], ...]:
        """Its agents, each with the path and text of its file; none if it is not trusted."""
        return self._trusted_files(PROJECT_AGENTS)

    def _trusted_files(self, *folders: str) -> tuple[tuple[str, str], ...]:
        files = [file for file in self.files if file.place[0] in folders] if self.is_trusted else []
        return tuple((str(self.folder / file.name), file.text) for file in files)


def _format_instructions(files: list[ProjectFile]) -> Iterator[str]:
    """Each file under its name; those for parts of the project up to a limit, then only a hint to read them."""
    room = _SCOPED_CHARS
    for file in files:
        scope, text = _scope_and_text(file)
        heading = f"## {file.name}{scope and f', {scope}'}"
        if not scope:
            yield from [f"{heading}\n\n{text}"] if text else []
        elif not text:
            yield f"{heading}\n\nRead this file before you work on that."
        elif len(text) <= room:
            room -= len(text)
            yield f"{heading}\n\n{text}"
        else:
            yield f"{heading}\n\nRead this file ({len(text)} characters) before you work on files there."


def _scope_and_text(file: ProjectFile) -> tuple[str, str]:
    """What the instructions of a file are for, empty for everything, and their text as the model gets it.

    A rule of Cursor says that in its head: always, for some files, or where its description fits, when the model
    reads it itself. One that says nothing of that is for whoever names its file: then both are empty.
    """
    if is_nested(file.name):
        return f"for files below {file.name.rpartition('/')[0]}/", file.text.strip()
    if file.place[0] != PROJECT_RULES:
        return "", file.text.strip()
    fields, text = split_front_matter(file.text)
    if fields.get("alwaysapply", "").lower() == "true":
        return "", text
    if patterns := field_items(fields.get("globs", "")):
        return f"for files that match {', '.join(patterns)}", text
    description = " ".join(fields.get("description", "").split())
    return (f"about: {description}" if description else ""), ""


def has_project_files(folder: Path) -> bool:
    """A quick look, before anything heavy is loaded: whether any of the names is there at all."""
    names = (*WATCHED, *_INSTRUCTIONS, *PROJECT_FOLDERS)
    has_own = any(os.path.lexists(folder / name) for name in names)
    return has_own or bool(nested_instructions(folder)) or bool(instructions_above(folder))


def instructions_in(names: Iterable[str], *, fallbacks: bool = True) -> str:
    """Which of the names in one folder is that of its instructions; empty for none."""
    there = set(names)
    return next((name for name in _INSTRUCTIONS[: None if fallbacks else 1] if name in there), "")


def is_nested(name: str) -> bool:
    """Whether a project's file, named from its folder, holds instructions for a folder below."""
    folder, _, last = name.rpartition("/")
    return bool(folder) and last in _INSTRUCTIONS and not name.startswith(".")


def repository_above(folder: Path) -> Path | None:
    """The root of the repository around a folder; None if it is the folder itself, or of another user."""
    folder = folder.resolve()
    root = next((one for one in (folder, *folder.parents) if _has_repository(one)), folder)
    return root if root != folder and (root / ".git").lstat().st_uid == os.geteuid() else None


def _has_repository(folder: Path) -> bool:
    git = folder / ".git"
    # Names that the sandbox protects may for a moment be empty folders.
    return os.path.isfile(git) or os.path.islink(git) or os.path.lexists(git / "HEAD")  # noqa: PTH113, PTH114 - no error


def instructions_above(folder: Path, *, fallbacks: bool = True) -> tuple[str, ...]:
    """The names of instructions between the root of the repository and a folder in it, the root's first."""
    root, folder = repository_above(folder), folder.resolve()
    above = [one for one in reversed(folder.parents) if root is not None and one.is_relative_to(root)]
    found = [
        (number, instructions_in(_list_folder(one)[1], fallbacks=fallbacks)) for number, one in enumerate(above)
    ]
    return tuple(f"{_ABOVE * (len(above) - number)}{name}" for number, name in found if name)


def nested_instructions(root: Path, *, fallbacks: bool = True) -> tuple[str, ...]:
    """The names of instructions in folders below, the nearest first; always the same for the same folders."""
    found: list[str] = []
    waiting, looked, seen = deque([("", 0)]), 0, 0
    while waiting and looked < _MAX_FOLDERS and seen < _MAX_ENTRIES and len(found) < _MAX_NESTED:
        place, depth = waiting.popleft()
        folders, files = _list_folder(root / place)
        looked, seen = looked + 1, seen + len(folders) + len(files)
        if place and ".git" in {*folders, *files}:
            continue
        if place and (name := instructions_in(files, fallbacks=fallbacks)):
            found.append(f"{place}{name}")
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
