"""Finds the skills, folders with a `SKILL.md`: the user's own and those of a trusted project. Runs nothing."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from graph_agent.config.front_matter import parted
from graph_agent.config.paths import config_dir
from graph_agent.config.plain import plain_text
from graph_agent.config.settings import Settings
from tools.agent_ops.skill import Skill

__all__ = ["skill_files", "skills_of"]

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


def skills_of(settings: Settings, env: Mapping[str, str]) -> tuple[Skill, ...]:
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
                    yield _skill(path, plain_text(path, errors="replace"))
            except OSError:
                continue


def _skill(file: Path, text: str) -> Skill:
    said, body = parted(text)
    first = next((line.lstrip("# ") for line in body.split("\n") if line.strip()), "")
    return Skill(file.parent.name, said.get("description") or first, body, file.parent)
