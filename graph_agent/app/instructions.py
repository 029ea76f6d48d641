"""The system prompt of a new thread, and the skills that it may load.

Stable parts come first, so that a provider can cache them.
"""

import logging
import os
import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from graph_agent.config.paths import config_dir, read_plain_text
from graph_agent.config.settings import Settings
from graph_agent.config.user_commands import split_front_matter
from tools.agent_ops.skill import Skill

__all__ = ["load_skills", "read_context_file", "skill_files", "system_prompt"]

_log = logging.getLogger(__name__)

_MEMORY_CHARS = 16_000
"""Of a longer context file the beginning and the end are told."""
_PROJECT_CHARS = 24_000
"""The same of what a project says, with the files of its folders, which stand last."""

_STABLE = """\
You are graph-agent, a coding agent that works in a terminal, in one workspace folder of the user.

Work:
- Find out before you act: list and read what matters, then change it. Never invent file contents.
- Use the tools; do not describe what the user should do when you can do it.
- Read a file before you overwrite it. Keep its style. Make the smallest change that does the job.
- Check your work where a command can check it.
- Paths are relative to the workspace unless they are absolute.

Calls:
- The user is asked before calls with effects. A refusal is an answer: do not repeat the call, take another way.
- If a result says that a call was interrupted and its outcome is unknown, check what it did before you continue.
- Shell commands have no input and no terminal, and end with their call.

Answers: short, plain, truthful; say what was done, what was not, and what failed."""


def system_prompt(
    workspace: Path, today: str, memories: str = "", of_project: str = "", roots: Sequence[Path] = ()
) -> str:
    """The system prompt of a new thread.

    `today` is an ISO date, `memories` what the user's context file says, `of_project` what a trusted
    project's files say.
    """
    also = "".join(f"\nAlso yours to work in, by absolute paths: {root}" for root in roots)
    where = f"Workspace: {workspace}{also}\nPlatform: {platform.system()} {platform.machine()}\nDate: {today}"
    kept = f"What the user, and earlier conversations, want you to know:\n\n{memories}" if memories else ""
    project = (
        f"What the files of this project say about working on it:\n\n{_cut(of_project, most=_PROJECT_CHARS)}"
        if of_project
        else ""
    )
    return "\n\n".join(part for part in (_STABLE, kept, project, where) if part)


def read_context_file(context_file: Path) -> str:
    """The user's context file, bounded; empty where there is none, or it cannot be read: the log then says so."""
    try:
        text = read_plain_text(context_file, errors="replace").strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        _log.warning("the context file %s cannot be read: %s", context_file, error)
        return ""
    return _cut(text, f" of {context_file}")


def _cut(text: str, whose: str = "", *, most: int = _MEMORY_CHARS) -> str:
    if len(text) <= most:
        return text
    half = most // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[… {left_out} characters{whose} are left out here …]\n{text[-half:]}"


_FILE = "SKILL.md"
_NAME = re.compile(r"\w[\w.-]{0,63}")
_MOST = 200
_MOST_BYTES = 256 * 1024


def skill_files(folder: Path) -> list[str]:
    """The `SKILL.md` of each skill in a folder of skills, by its path in there."""
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []
    there = (f"{name}/{_FILE}" for name in names if _NAME.fullmatch(name))
    return [file for file in there if os.path.lexists(folder / file)][:_MOST]


def load_skills(settings: Settings, env: Mapping[str, str]) -> tuple[Skill, ...]:
    """Every skill there is, by name; the user's own stand before those of the project."""
    theirs = (_skill(Path(place), text) for place, text in settings.project_skills)
    found = {skill.name: skill for skill in (*theirs, *_own(env))}
    return tuple(found[name] for name in sorted(found))


def _own(env: Mapping[str, str]) -> Iterator[Skill]:
    home = Path(env.get("HOME") or Path.home())
    for folder in (home / ".agents" / "skills", config_dir(env) / "skills"):
        for file in skill_files(folder):
            path = folder / file
            try:
                if path.stat().st_size <= _MOST_BYTES:
                    yield _skill(path, read_plain_text(path, errors="replace"))
            except OSError:
                continue


def _skill(file: Path, text: str) -> Skill:
    said, body = split_front_matter(text)
    first = next((line.lstrip("# ") for line in body.split("\n") if line.strip()), "")
    return Skill(file.parent.name, said.get("description") or first, body, file.parent)
