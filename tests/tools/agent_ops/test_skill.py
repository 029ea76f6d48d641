import os
from pathlib import Path

import pytest

from tests.contracts.example_calls import ExampleCalls
from tools.agent_ops.skill import Skill, SkillTool

EXAMPLE_CALLS = {
    "skill": ExampleCalls({"name": "release"}, {"name": "none"}),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "release"
    (made / "scripts").mkdir(parents=True)
    (made / "SKILL.md").write_text("unread")
    (made / "notes.md").write_text("Mind the tag.\n")
    (made / "scripts/tag.sh").write_text("git tag\n")
    (made / ".hidden").write_text("x")
    (made / "logo.png").write_bytes(b"\x89PNG\0\0")
    return made.resolve()


@pytest.fixture
def tool(folder: Path) -> SkillTool:
    return SkillTool(
        [Skill("release", "How to\nrelease.", "1. Tag.\n2. Push.", folder), Skill("bare", "", "", folder)]
    )


def test_the_description_tells_what_each_is_for_in_one_line(tool: SkillTool) -> None:
    assert str(tool.description).split("\n")[2:5] == ["Skills:", "- release: How to release.", "- bare"]


def test_many_long_descriptions_are_cut_and_then_left_out_but_every_name_is_there(folder: Path) -> None:
    many = [Skill(f"s{number}", "word " * 200, "", folder) for number in range(200)]

    lines = str(SkillTool(many).description).split("\n")

    assert max(map(len, lines[2:])) < 420
    assert sum(map(len, lines)) < 18_000
    assert "- s199" in lines


async def test_a_skill_is_told_with_the_files_that_lie_beside_it(tool: SkillTool, folder: Path) -> None:
    result = await tool.execute(name="release")

    assert result.output == (
        f"1. Tag.\n2. Push.\n\n[This skill's folder is {folder}. It also contains, readable with `file`:\n"
        "- logo.png\n- notes.md\n- scripts/tag.sh\n]"
    )
    assert (await tool.execute(name="release", file="scripts/tag.sh")).output == "git tag\n"
    assert tool.validate({"name": "x"}) == "name: there is no skill 'x'; choose one of release, bare."
    assert tool.suggest_rule({"name": "release", "file": ""}) == "skill(release)"


@pytest.mark.parametrize(
    ("file", "told"),
    [
        ("../release2/x", "outside the skill's folder"),
        ("/etc/passwd", "outside the skill's folder"),
        ("link", "outside the skill's folder"),
        ("none.md", "none.md"),
        ("scripts", "scripts"),
        ("logo.png", "not text"),
        ("pipe", "pipe"),
    ],
)
async def test_nothing_else_is_read(tool: SkillTool, folder: Path, file: str, told: str) -> None:
    (folder / "link").symlink_to("/etc/hostname")
    os.mkfifo(folder / "pipe")

    result = await tool.execute(name="release", file=file)

    assert result.output == ""
    assert told in (result.error or "")
