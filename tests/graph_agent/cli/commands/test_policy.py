from pathlib import Path

from tests.scenarios.command import Command


def test_a_call_allowed_always_runs_unasked_until_that_is_taken_back(tmp_path: Path) -> None:
    command = Command(tmp_path)
    command("run", "run echo a >/dev/null", "--thread", "t1")
    [asked] = command.json("approvals", "list")["approvals"]

    allowed = command.json("approvals", "approve", asked["call_id"], "--always", "--scope", "project")
    resumed = command("run", "--resume", "t1")
    other_thread = command("run", "run echo a >/dev/null", "--thread", "t2")
    other_command = command("run", "run echo b >/dev/null", "--thread", "t3")
    [grant] = command.json("policy", "list")["grants"]
    revoked = command("policy", "revoke", str(grant["id"]))
    again = command("run", "run echo a >/dev/null", "--thread", "t4")

    assert allowed["always"] == {"scope": "project", "rules": ["bash(echo a)"]}
    codes = [done.returncode for done in (resumed, other_thread, other_command, revoked, again)]
    assert codes == [0, 0, 3, 0, 3]
    [unasked] = command.json("calls", "t2")["calls"]
    assert unasked["reason"] == "Allowed always by grant 1 (this project): 'bash(echo a)'."
    assert (grant["workspace"], grant["mode"], grant["thread_id"]) == (str(command.workspace), "default", "t1")


def test_the_real_command_checks_tests_and_shows(tmp_path: Path) -> None:
    command = Command(tmp_path)
    cases = tmp_path / "cases"
    cases.write_text('{"id": "a-1", "tool": "bash", "args": {"command": "ls"}, "expected": "ask"}\n')

    asked = command("policy", "check", "bash", '{"command": "git status"}')

    assert (asked.returncode, "decision: ask" in asked.stdout) == (3, True)
    assert command.json("policy", "test", str(cases))["score"]["right"] == 1
    assert command.json("policy", "show")["mode"] == "default"
    assert command("policy", "check", "bash", "{").returncode == 2


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
