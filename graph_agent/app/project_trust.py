"""What the files of a project folder would turn on, and the user's decision whether to trust them."""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from graph_agent.app.instructions import skill_files
from graph_agent.app.toolset import rules_of
from graph_agent.config.paths import memory_file, plain_text
from graph_agent.config.project import (
    FALLBACKS,
    PROJECT_AGENTS,
    PROJECT_COMMANDS,
    PROJECT_CONFIG,
    PROJECT_HOOKS,
    PROJECT_RULES,
    PROJECT_SKILLS,
    PROJECT_TOOLS,
    WATCHED,
    Project,
    ProjectFile,
    Trust,
    has_project_files,
    instructions_above,
    instructions_in,
    nested_instructions,
)
from graph_agent.config.settings import Settings
from graph_agent.config.sources import load_settings, read_layers, uses_fallback_files
from graph_agent.config.trust import FolderAnswer, trust_file
from graph_agent.ports import SystemClock
from tools.paths import PathRefused, open_regular, resolve
from tools.result import ToolErrorType

__all__ = [
    "forget_trust",
    "project_at",
    "project_notices",
    "read_inside",
    "record_trust",
    "settings_at",
    "trust_effects",
    "trusted_effects",
    "used_files",
]

_MAX_BYTES = 256 * 1024
_MAX_COMMANDS = 500
_MAX_NAMES = 8


def settings_at(workspace: Path, flags: Mapping[str, Any] | None = None) -> Settings:
    """The settings of this process for work in a folder.

    Raises:
        ConfigError: a value is wrong or a key unknown.
        StorageError: the trust file cannot be read.
    """
    return load_settings(os.environ, flags=flags, project=project_at(workspace))


def project_at(workspace: Path, *, once: bool = False) -> Project:
    """The project files of a folder; with `once` they are trusted in this process, whatever the user decided.

    Raises:
        StorageError: the trust file cannot be read.
    """
    folder = workspace.resolve()
    if not has_project_files(folder):
        return Project(folder)
    contents: dict[str, bytes] = {}
    refused: dict[str, str] = {}
    for name in _names_to_read(folder, fallbacks=uses_fallback_files(os.environ)):
        try:
            up = name.count("../")
            if content := read_inside(folder.parents[up - 1] if up else folder, name[3 * up :]):
                contents[name] = content
        except PathRefused as refusal:
            if refusal.kind is not ToolErrorType.NOT_FOUND:
                refused[name] = str(refusal).rstrip(".")
    answer = trust_file(os.environ).answer_for(folder) if contents else None
    known = answer.files if answer else {}
    digests = {name: hashlib.sha256(content).hexdigest() for name, content in contents.items()}
    files = tuple(
        ProjectFile(
            name,
            digests[name],
            plain_text(content),
            "" if answer is None or known.get(name) == digests[name] else "changed" if name in known else "new",
        )
        for name, content in contents.items()
    )
    gone = tuple(name for name in known if name not in digests)
    return Project(folder, files, refused, _trust(digests, answer, once=once), gone)


def _trust(digests: Mapping[str, str], answer: FolderAnswer | None, *, once: bool) -> Trust:
    if not digests:
        return "none"
    if once:
        return "once"
    if answer is None:
        return "untrusted"
    if answer.files == digests:
        return "trusted" if answer.trusted else "declined"
    return "changed" if answer.trusted else "untrusted"


def _names_to_read(folder: Path, *, fallbacks: bool) -> tuple[str, ...]:
    """The names of a project's files that are read for effect; a problem with one is found when it is read."""
    there = _names_in(folder)
    instructions = instructions_in(there, fallbacks=fallbacks)
    first = dict.fromkeys((PROJECT_CONFIG, instructions or "AGENTS.md", *WATCHED))
    uses_rules = fallbacks and "AGENTS.md" not in there
    rules = _files_below(folder, PROJECT_RULES, ".mdc") if uses_rules else []
    below = nested_instructions(folder, fallbacks=fallbacks)
    return (
        *instructions_above(folder, fallbacks=fallbacks),
        *first,
        *(f"{PROJECT_RULES}/{name}" for name in rules),
        *_folder_files(folder, fallbacks=fallbacks),
        *below,
    )


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []


def _folder_files(folder: Path, *, fallbacks: bool) -> Iterator[str]:
    """The names of a project's files in watched folders."""
    tools = [name for name in _names_in(folder / PROJECT_TOOLS) if name.endswith(".py") and name[0] not in "._"]
    hooks = [name for name in _names_in(folder / PROJECT_HOOKS) if name[0] != "."]
    found = {PROJECT_TOOLS: tools, PROJECT_HOOKS: hooks}
    found |= {
        place: _list_kind(folder, place, place) for place in (PROJECT_COMMANDS, PROJECT_AGENTS, *PROJECT_SKILLS)
    }
    for place, ours in FALLBACKS.items() if fallbacks else ():
        hidden = {name for one in ours for name in found[one]}
        found[place] = [name for name in _list_kind(folder, place, ours[0]) if name not in hidden]
    return (f"{place}/{name}" for place, names in found.items() for name in names)


def _list_kind(folder: Path, place: str, kind: str) -> list[str]:
    """The files in another agent's folder that correspond to ours."""
    return skill_files(folder / place) if kind in PROJECT_SKILLS else _files_below(folder, place, ".md")


def _files_below(folder: Path, place: str, ending: str) -> list[str]:
    """Paths of the files with an ending, those in folders below too; links to folders are not followed."""
    root, names = folder / place, list[str]()
    for number, (inner, _, files) in enumerate(os.walk(root)):
        below = Path(inner).relative_to(root)
        names += [(below / name).as_posix() for name in files if name.endswith(ending) and name[0] != "."]
        if max(len(names), number) >= _MAX_COMMANDS:
            break
    return sorted(names)[:_MAX_COMMANDS]


def read_inside(folder: Path, name: str) -> bytes:
    """The content of a file of the folder; empty if there is none.

    Raises:
        PathRefused: it is no regular file of this folder, or too big to be one of these.
    """
    found = resolve(name, workspace=folder)
    if found.path == memory_file(os.environ).resolve() or not os.path.lexists(found.path):
        return b""
    if not found.inside:
        raise PathRefused(ToolErrorType.VALIDATION, f"it is a link to {found.path}, outside the folder")
    with open_regular(found) as descriptor, os.fdopen(os.dup(descriptor), "rb") as file:
        content = file.read(_MAX_BYTES + 1)
    if len(content) > _MAX_BYTES:
        raise PathRefused(ToolErrorType.VALIDATION, f"it is larger than {_MAX_BYTES // 1024} KB")
    return content


def trust_effects(project: Project) -> tuple[str, ...]:
    """Each thing that trusting the folder turns on, one per line; values of project files are shown whole.

    Raises:
        ConfigError: its settings cannot be read.
    """
    as_trusted = Project(project.folder, project.files, project.refused, "once")
    rules_of(load_settings(os.environ, project=as_trusted))
    return tuple(_effects(as_trusted))


def _effects(project: Project) -> Iterator[str]:
    layer = next(layer for layer in read_layers(os.environ, {}, project) if layer.name == "project")
    for key, found in layer.values.items():
        if isinstance(found.value, list):
            yield from (f"{key}: {_format_value(item)}" for item in found.value)
        elif isinstance(found.value, dict):
            yield from (f"{key}.{name}: {_format_value(item)}" for name, item in found.value.items())
        else:
            yield f"{key}: {_format_value(found.value)}"
    for file in project.files:
        if file.name != PROJECT_CONFIG:
            count = len(file.text.splitlines())
            lines = f"{count} line{'s' if count != 1 else ''}"
            yield f"{file.name}: {lines} of {file.holds}, sha256 {file.sha256[:12]}"
    for key, one in layer.ignored.items():
        yield f"not {key}: {one.reason}"


def _format_value(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def record_trust(project: Project, *, trusted: bool) -> Project:
    """Store the user's decision about exactly these contents; returns the folder under it.

    Raises:
        ConfigError: its settings cannot be read, so that they cannot be trusted.
        StorageError: the decision cannot be stored.
    """
    effects = trust_effects(project) if trusted else ()
    answer = FolderAnswer(trusted, project.digests, effects, SystemClock().now())
    trust_file(os.environ).answer(project.folder, answer)
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
    answer = trust_file(os.environ).answer_for(project.folder)
    return tuple(answer.turns_on) if answer and answer.trusted else ()


def project_notices(project: Project) -> Iterator[str]:
    """What of a project is ignored, in a line or two; nothing if all of it counts."""
    for name, reason in project.refused.items():
        yield f"{project.folder / name} is ignored: {reason}"
    if project.is_trusted:
        layers = read_layers(os.environ, {}, project)
        ignored = [f"{key} ({one.reason})" for layer in layers for key, one in layer.ignored.items()]
        if ignored:
            yield f"ignored in {project.config_path}: {'; '.join(ignored)}"
    elif project.files:
        changed = " since it changed" if project.trust == "changed" else ""
        yield (
            f"{_name_files(project)} of {project.folder} ignored: folder not trusted{changed}; "
            "see what it would enable with: graph-agent config trust"
        )


def used_files(project: Project) -> str:
    """The names of a trusted project's files; empty if there are none, or they are not trusted."""
    return _name_files(project) if project.is_trusted else ""


def _name_files(project: Project) -> str:
    names = [file.name for file in project.files]
    more = [f"{len(names) - _MAX_NAMES} more"] if len(names) > _MAX_NAMES else []
    return ", ".join([*names[:_MAX_NAMES], *more])
