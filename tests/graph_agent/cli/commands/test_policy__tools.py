from pathlib import Path

from tests.scenarios.command import Command


def test_the_real_command_lists_shows_and_counts_tools(tmp_path: Path) -> None:
    command = Command(tmp_path)
    command("run", "run true", "--mode", "bypassPermissions")

    listed = {tool["name"]: tool["risk"] for tool in command.json("tools", "list")["tools"]}
    shown = command("tools", "show", "bash").stdout
    [statistics] = command.json("tools", "stats")["tools"]

    assert (listed["bash"], listed["read_file"]) == ("high", "low")
    assert '"command"' in shown
    assert (statistics["tool"], statistics["executions"], statistics["successes"]) == ("bash", 1, 1)
    assert command("tools", "show", "nope").returncode == 2
