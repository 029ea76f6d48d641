"""What the files of a project folder would turn on, and the user's decision whether to trust them."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from graph_agent.app.instructions import skill_files
from graph_agent.app.toolset import rules_of
from graph_agent.config.paths import memory_file
from graph_agent.config.project import (
    PROJECT_COMMANDS,
    PROJECT_CONFIG,
    PROJECT_HOOKS,
    PROJECT_SKILLS,
    PROJECT_TOOLS,
    WATCHED,
    Project,
    ProjectFile,
    Trust,
    has_project_files,
    nested_instructions,
)
from graph_agent.config.settings import Settings
from graph_agent.config.sources import IgnoredValue, load_settings, read_layers
from graph_agent.config.trust import FolderAnswer, trust_file
from graph_agent.ports import SystemClock
from tools.paths import PathRefused, open_regular, resolve
from tools.result import ToolErrorType

__all__ = [
    "forget_trust",
    "project_at",
    "project_notices",
    "record_trust",
    "settings_at",
    "trust_effects",
    "trusted_effects",
]

_MOST_BYTES = 256 * 1024
_MOST_COMMANDS = 500
_MOST_NAMED = 8


def settings_at(workspace: Path, flags: Mapping[str, Any] | None = None) -> Settings:
    """The settings of this process for work in a folder.

    Raises:
        ConfigError: a value is wrong or a key unknown.
        StorageError: the trust file cannot be read.
    """
    return load_settings(os.environ, flags=flags, project=project_at(workspace))


def project_at(workspace: Path, *, once: bool = False) -> Project:
    """What a folder says about itself; with `once` it counts for this process, whatever was answered.

    Raises:
        StorageError: the trust file cannot be read.
    """
    folder = workspace.resolve()
    if not has_project_files(folder):
        return Project(folder)
    files: list[ProjectFile] = []
    refused: dict[str, str] = {}
    for name in (*WATCHED, *_in_folders(folder), *nested_instructions(folder)):
        try:
            if text := _text(folder, name):
                files.append(ProjectFile(name, hashlib.sha256(text).hexdigest(), text.decode(errors="replace")))
        except PathRefused as refusal:
            if refusal.kind is not ToolErrorType.NOT_FOUND:
                refused[name] = str(refusal).rstrip(".")
    return _judged(Project(folder, tuple(files), refused), once=once)


def trust_effects(project: Project) -> tuple[str, ...]:
    """Each thing that trusting the folder turns on, in a line of its own; values of project files are shown whole.

    Raises:
        ConfigError: its settings cannot be read.
    """
    as_trusted = Project(project.folder, project.files, project.refused, "once")
    rules_of(load_settings(os.environ, project=as_trusted))
    return tuple(_lines(as_trusted))


def record_trust(project: Project, *, trusted: bool) -> Project:
    """Keep the user's answer about exactly these contents, and look at the folder under it.

    Raises:
        ConfigError: its settings cannot be read, so that they cannot be trusted.
        StorageError: the answer cannot be kept.
    """
    lines = trust_effects(project) if trusted else ()
    said = FolderAnswer(trusted, project.digests, lines, SystemClock().now())
    trust_file(os.environ).answer(project.folder, said)
    return project_at(project.folder)


def forget_trust(folder: Path) -> bool:
    """Forget the user's decision about a folder; False if there was none.

    Raises:
        StorageError: the trust file cannot be read or written.
    """
    return trust_file(os.environ).forget_folder(folder)


def trusted_effects(project: Project) -> tuple[str, ...]:
    """What the user was shown when this folder was trusted last.

    Raises:
        StorageError: the trust file cannot be read.
    """
    said = trust_file(os.environ).answer_for(project.folder)
    return tuple(said.turns_on) if said and said.trusted else ()


def project_notices(project: Project) -> Iterator[str]:
    """What of a project does not count, each time a reader should be ignored: a line or two, or nothing."""
    for name, why in project.refused.items():
        yield f"{project.folder / name} is ignored: {why}"
    if project.files and not project.is_trusted:
        names = [file.name for file in project.files]
        more = [f"{len(names) - _MOST_NAMED} more"] if len(names) > _MOST_NAMED else []
        named = ", ".join([*names[:_MOST_NAMED], *more])
        changed = " since it changed" if project.trust == "changed" else ""
        yield (
            f"{named} of {project.folder} ignored: folder not trusted{changed}; "
            "see what it would turn on with: graph-agent config trust"
        )
    elif project.is_trusted:
        keys = _ignored_keys(project)
        if keys:
            ignored = "; ".join(f"{key} ({one.reason})" for key, one in keys.items())
            yield f"ignored in {project.config_path}: {ignored}"


def _in_folders(folder: Path) -> list[str]:
    """The names of a project's files in watched folders; what is wrong with one shows when it is read."""
    tools = [name for name in _names_in(folder / PROJECT_TOOLS) if name.endswith(".py") and name[0] not in "._"]
    hooks = [name for name in _names_in(folder / PROJECT_HOOKS) if name[0] != "."]
    skills = [(place, skill_files(folder / place)) for place in PROJECT_SKILLS]
    found = [(PROJECT_TOOLS, tools), (PROJECT_HOOKS, hooks), (PROJECT_COMMANDS, _commands(folder)), *skills]
    return [f"{place}/{name}" for place, names in found for name in names]


def _commands(folder: Path) -> list[str]:
    """The paths of the files with commands, those in folders of the folder too; links are not followed there."""
    root, names = folder / PROJECT_COMMANDS, list[str]()
    for number, (place, _, files) in enumerate(os.walk(root)):
        below = Path(place).relative_to(root)
        names += [(below / name).as_posix() for name in files if name.endswith(".md") and name[0] != "."]
        if max(len(names), number) >= _MOST_COMMANDS:
            break
    return sorted(names)[:_MOST_COMMANDS]


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []


def _text(folder: Path, name: str) -> bytes:
    """What stands in a file of the folder; empty where there is none.

    Raises:
        PathRefused: it is no regular file of this folder, or too big to be one of these.
    """
    found = resolve(name, workspace=folder)
    if found.path == memory_file(os.environ).resolve():
        return b""
    if not os.path.lexists(found.path):
        return b""
    if not found.inside:
        raise _refused(f"it leads to {found.path}, out of the folder")
    with open_regular(found) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
        text = file.read(_MOST_BYTES + 1)
    if len(text) > _MOST_BYTES:
        raise _refused(f"it is larger than {_MOST_BYTES // 1024} KB")
    return text


def _judged(project: Project, *, once: bool) -> Project:
    said = trust_file(os.environ).answer_for(project.folder) if project.files else None
    known = said.files if said else {}
    files = tuple(
        ProjectFile(
            file.name,
            file.sha256,
            file.text,
            "" if not said or known.get(file.name) == file.sha256 else "changed" if file.name in known else "new",
        )
        for file in project.files
    )
    gone = tuple(name for name in known if name not in project.digests)
    return Project(project.folder, files, project.refused, _trust(project, said, once=once), gone)


def _trust(project: Project, said: FolderAnswer | None, *, once: bool) -> Trust:
    if not project.files:
        return "none"
    if once:
        return "once"
    if said is None:
        return "untrusted"
    if said.files == project.digests:
        return "trusted" if said.trusted else "declined"
    return "changed" if said.trusted else "untrusted"


def _lines(project: Project) -> Iterator[str]:
    layer = next(layer for layer in read_layers(os.environ, {}, project) if layer.name == "project")
    for key, found in layer.values.items():
        if isinstance(found.value, list):
            yield from (f"{key}: {_shown(item)}" for item in found.value)
        elif isinstance(found.value, dict):
            yield from (f"{key}.{name}: {_shown(item)}" for name, item in found.value.items())
        else:
            yield f"{key}: {_shown(found.value)}"
    for file in project.files:
        if file.name != PROJECT_CONFIG:
            count = len(file.text.splitlines())
            yield f"{file.name}: {count} lines of {file.holds}, sha256 {file.sha256[:12]}"
    for key, one in layer.ignored.items():
        yield f"not {key}: {one.reason}"


def _ignored_keys(project: Project) -> dict[str, IgnoredValue]:
    layers = read_layers(os.environ, {}, project)
    return {key: one for layer in layers for key, one in layer.ignored.items()}


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _refused(why: str) -> PathRefused:
    return PathRefused(ToolErrorType.VALIDATION, why)
