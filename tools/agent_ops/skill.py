"""Skills: instructions for a kind of task, which the model reads when the task comes up."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from tools.base import (
    BaseTool,
    ToolDescription,
    ToolErrorType,
    ToolExample,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
    failure,
)
from tools.files import read_all
from tools.paths import PathRefused, given_path, open_regular, quoted_path, resolve, shown_path
from tools.running import run_in_thread
from tools.text import decode, is_binary

__all__ = ["Skill", "SkillArgs", "SkillTool"]

_DESCRIPTION = ToolDescription(
    short="Read a skill: instructions for a kind of task.",
    long="The result names its further files.",
    usage_notes=("Pass `file` to read another file of the skill.",),
    examples=(ToolExample({"name": "release"}),),
    important=("If a skill matches what the user asks for, read it before you begin, and follow it.",),
)
_LINE_CHARS = 400
_LIST_CHARS = 16_000
"""For all lines together; further skills are listed by name only."""
_MOST_FILES = 50
_MOST_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Skill:
    """One skill."""

    name: str
    description: str
    """What it is for, and when to use it."""
    text: str
    folder: Path
    """Where its further files are."""


class SkillArgs(BaseModel):
    name: str = Field(description="name of the skill")
    file: str = Field(default="", description="a further file of the skill, by its path in the skill's folder")


class SkillTool(BaseTool):
    name = "skill"
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "agent"
    tags = ("agents", "read")
    args_schema = SkillArgs

    def __init__(self, skills: Sequence[Skill], *, workspace: str | Path | None = None) -> None:
        self.workspace = workspace
        self._skills = {skill.name: skill for skill in skills}
        self.description = replace(
            _DESCRIPTION, long="\n".join([_DESCRIPTION.long, "Skills:", *_skill_lines(skills)])
        )

    def validate(self, args: Mapping[str, Any]) -> str | None:
        if args["name"] in self._skills:
            return None
        return f"name: there is no skill {args['name']!r}; choose one of {', '.join(self._skills)}."

    def signature(self, args: Mapping[str, Any]) -> str:
        return str(args["name"])

    async def execute(self, *, name: str, file: str = "") -> ToolResult:
        """Return the instructions and the list of further files, or one of those files."""
        if problem := self.validate({"name": name}):
            return failure(ToolErrorType.NOT_FOUND, problem)
        skill = self._skills[name]
        if not file:
            files = await run_in_thread(list, _files_in(skill.folder))
            named = [f"- {one}" for one in files[:_MOST_FILES]] + (["- …"] if len(files) > _MOST_FILES else [])
            where = f"[This skill's folder is {skill.folder}."
            if named:
                where = "\n".join([f"{where} It also contains, readable with `file`:", *named, ""])
            return ToolResult(f"{skill.text}\n\n{where}]", display=f"skill {name}")
        try:
            text = await run_in_thread(_file_of, skill, file)
        except PathRefused as refused:
            return refused.as_result()
        return ToolResult(text, display=f"skill {name}: {file}")


def _skill_lines(skills: Sequence[Skill]) -> Iterator[str]:
    room = _LIST_CHARS
    for skill in skills:
        text = " ".join(skill.description.split())
        line = f"- {skill.name}: {text if len(text) <= _LINE_CHARS else f'{text[: _LINE_CHARS - 1]}…'}"
        room -= len(line)
        yield line.rstrip(": ") if room > 0 else f"- {skill.name}"


def _files_in(folder: Path) -> Iterator[str]:
    """The files beside SKILL.md, one more than is shown; links to folders are not followed."""
    found = 0
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = (Path(place) / name).relative_to(folder).as_posix()
            if path != "SKILL.md" and not name.startswith("."):
                yield shown_path(path)
                found += 1
            if found > _MOST_FILES:
                return


def _file_of(skill: Skill, file: str) -> str:
    """The text of a further file.

    Raises:
        PathRefused: it is outside the skill's folder, does not exist, or is not text.
    """
    found = resolve(given_path(file), workspace=skill.folder.resolve())
    if not found.inside:
        raise PathRefused(
            ToolErrorType.PERMISSION, f"{quoted_path(file)} is outside the skill's folder; read it with read_file."
        )
    with open_regular(found) as descriptor:
        size = os.fstat(descriptor).st_size
        data = read_all(descriptor) if size <= _MOST_BYTES else b"\0"
    if is_binary(data):
        raise PathRefused(
            ToolErrorType.VALIDATION,
            f"{quoted_path(file)} is not text, or larger than {_MOST_BYTES // 1024} KB.",
        )
    return decode(data)[0] or "(the file is empty)"
