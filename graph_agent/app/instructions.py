"""The system prompt of a new thread, and the skills that it may load.

Stable parts come first, so that a provider can cache them.
"""

import contextlib
import logging
import os
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from graph_agent.config.paths import config_dir, read_plain_text
from graph_agent.config.settings import Settings
from graph_agent.config.user_commands import split_front_matter
from tools.agent_ops.skill import Skill

__all__ = ["load_skills", "read_context_file", "skill_files", "system_prompt"]

_log = logging.getLogger(__name__)

_CONTEXT_FILE_CHARS = 16_000
"""Of a longer context file the prompt has the beginning and the end."""
_PROJECT_CHARS = 24_000
"""The same for the instructions of a project; those of its folders come last."""
_SKILL_NAME = re.compile(r"\w[\w.-]{0,63}")
_MAX_SKILLS = 200
_MAX_SKILL_BYTES = 256 * 1024

_STABLE = """\
You are graph-agent, a coding agent that works in a terminal, in one workspace folder of the user.

Work:
- Explore before you act: list and read the relevant files first. Never invent file contents.
- Use the tools; do not describe what the user should do when you can do it.
- Read a file before you overwrite it. Keep its style. Make the smallest change that does the job.
- Check your work where a command can check it.
- Paths are relative to the workspace unless they are absolute.

Calls:
- The user must approve calls with effects. If a call is rejected, do not repeat it; find another way.
- If a result says that a call was interrupted and its outcome is unknown, check what it did before you continue.
- Shell commands have no input and no terminal, and end with their call.

Answers: short, plain, truthful; say what was done, what was not, and what failed."""


def system_prompt(
    workspace: Path, today: str, memories: str = "", of_project: str = "", roots: Sequence[Path] = ()
) -> str:
    """The system prompt of a new thread.

    `today` is an ISO date, `memories` the text of the user's context file, `of_project` that of a trusted project's
    instruction files.
    """
    parts = [_STABLE]
    if memories:
        parts.append(f"Notes from the user and from earlier conversations:\n\n{memories}")
    if of_project:
        instructions = _shortened(of_project, max_chars=_PROJECT_CHARS)
        parts.append(f"Instructions of this project:\n\n{instructions}")
    also = "".join(f"\nYou may also work here, by absolute paths: {root}" for root in roots)
    parts.append(f"Workspace: {workspace}{also}\nPlatform: {platform.system()} {platform.machine()}\nDate: {today}")
    return "\n\n".join(parts)


def read_context_file(context_file: Path) -> str:
    """The user's context file, bounded; empty if there is none, or it cannot be read, which is logged."""
    try:
        text = read_plain_text(context_file, errors="replace").strip()
    except FileNotFoundError:
        return ""
    except OSError as error:
        _log.warning("the context file %s cannot be read: %s", context_file, error)
        return ""
    return _shortened(text, f" of {context_file}", max_chars=_CONTEXT_FILE_CHARS)


def _shortened(text: str, whose: str = "", *, max_chars: int) -> str:
    """The beginning and the end of a text that is too long."""
    if len(text) <= max_chars:
        return text
    half = max_chars // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[… {left_out} characters{whose} are left out here …]\n{text[-half:]}"


def skill_files(folder: Path) -> list[str]:
    """The `SKILL.md` of each skill in a folder of skills, as a path in that folder."""
    try:
        names = sorted(entry.name for entry in folder.iterdir())
    except OSError:
        return []
    files = (f"{name}/SKILL.md" for name in names if _SKILL_NAME.fullmatch(name))
    return [file for file in files if os.path.lexists(folder / file)][:_MAX_SKILLS]


def load_skills(settings: Settings, env: Mapping[str, str]) -> tuple[Skill, ...]:
    """Every skill, by name; one of the user hides one of the project."""
    texts = [(Path(place), text) for place, text in settings.project_skills]
    home = Path(env.get("HOME") or Path.home())
    for folder in (home / ".agents" / "skills", config_dir(env) / "skills"):
        for file in skill_files(folder):
            with contextlib.suppress(OSError):
                if (folder / file).stat().st_size <= _MAX_SKILL_BYTES:
                    texts.append((folder / file, read_plain_text(folder / file, errors="replace")))
    found = {file.parent.name: _parse_skill(file, text) for file, text in texts}
    return tuple(found[name] for name in sorted(found))


def _parse_skill(file: Path, text: str) -> Skill:
    fields, body = split_front_matter(text)
    first = next((line.lstrip("# ") for line in body.split("\n") if line.strip()), "")
    return Skill(file.parent.name, fields.get("description") or first, body, file.parent)
