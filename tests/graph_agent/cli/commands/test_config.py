from pathlib import Path

from tests.scenarios.command import Command


def test_the_real_command_sets_a_key_that_the_next_one_shows(tmp_path: Path) -> None:
    command = Command(tmp_path)

    was_set = command("config", "set", "max_steps", "7")
    shown = {item["key"]: item["value"] for item in command.json("config", "show")["settings"]}
    refused = command("config", "set", "max_steps", "many")

    assert (was_set.returncode, shown["max_steps"]) == (0, 7)
    assert (refused.returncode, "max_steps = 'many'" in refused.stderr) == (2, True)
    assert str(tmp_path / "home" / "config.toml") in command("config", "path").stdout
    assert "→ user     7" in command("config", "explain", "max_steps").stdout
