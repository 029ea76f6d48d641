from pathlib import Path

from tests.scenarios.command import Command


def test_what_was_remembered_is_shown_and_edited_by_the_real_command(tmp_path: Path) -> None:
    command = Command(tmp_path, extra_env={"EDITOR": "sed -i s/tabs/blanks/", "VISUAL": ""})
    command("run", "remember I like tabs")

    before = command("memory", "show").stdout
    edited = command("memory", "edit")
    after = command.json("memory", "show")["text"]

    assert ("I like tabs" in before, edited.returncode, "I like blanks" in after) == (True, 0, True)
