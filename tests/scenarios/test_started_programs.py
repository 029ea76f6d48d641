import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.openai_server import TC, TXT
from tests.fakes.sandboxed_process import OTHER_USER, sandboxed_process
from tests.fakes.sandboxes import needs
from tests.scenarios.command import Command, scripted

_NAMES = ("bwrap", "git", "rg", "shfmt", "bash", "sh", "setpriv", "pwsh", "ps", "cat", "vi", "npx", "python3")


def _plant(folder: Path, witness: Path) -> None:
    """A program of each name that the agent may look for, which tells that it ran."""
    folder.mkdir(parents=True)
    for name in _NAMES:
        (folder / name).write_text(f'#!/bin/sh\necho {name} >> "{witness}"\nexit 1\n')
        (folder / name).chmod(0o755)


@pytest.fixture(params=["workspace", "add_dirs", "sandbox_write", "open to others"])
def planted(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Command, Path, str]:
    """A command whose PATH begins with a folder that commands may write, and the file that tells what ran."""
    place = request.param
    folder = tmp_path / "workspace" / ".venv" if place == "workspace" else tmp_path / "other"
    witness = tmp_path / "witness"
    _plant(folder / "bin", witness)
    if place == "open to others":
        (folder / "bin").chmod(0o777)
    settings = f'{place} = ["{folder}"]\n' if place in ("add_dirs", "sandbox_write") else ""
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return Command(tmp_path, extra_env={"PATH": path}, settings=settings), witness, place


def test_doctor_and_a_turn_start_none_of_them(planted: tuple[Command, Path, str]) -> None:
    command, witness, _ = planted
    subprocess.run(["/usr/bin/git", "init", "-q"], cwd=command.workspace, check=False)

    command("doctor")
    command("run", "list")
    command("run", "$ echo ran", "--mode", "bypassPermissions")
    command("mcp", "list")

    assert not witness.exists() or witness.read_text() == ""


def test_a_hook_finds_none_of_them_by_name_and_each_by_its_path(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    _plant(tmp_path / "workspace" / ".venv" / "bin", witness)
    path = f"{tmp_path}/workspace/.venv/bin{os.pathsep}{os.environ['PATH']}"
    hooks = '[[hooks.turn_end]]\ncommand = "python3 --version; .venv/bin/git; command -v npx"\n'
    with scripted(tmp_path, [TXT("done")], settings=hooks) as command:
        command.extra_env = {"PATH": path}
        command.run_json("go")

    assert witness.read_text() == "git\n"


def test_a_server_s_program_is_not_taken_from_there_and_the_reason_is_told(tmp_path: Path) -> None:
    _plant(tmp_path / "workspace" / "bin", tmp_path / "witness")
    folder = tmp_path / "workspace" / "bin"
    command = Command(
        tmp_path,
        extra_env={"PATH": f"{folder}{os.pathsep}/nowhere"},
        settings=f'[mcp_servers.a]\ncommand = "npx"\n[mcp_servers.b]\ncommand = "{folder}/npx"\n',
    )

    listed = json.loads(command("mcp", "list", "--json").stdout)
    problems = {server["name"]: server["problem"] for server in listed["servers"]}

    assert problems["a"] == (
        f"program 'npx' {folder}/npx is not used, because commands or other users may write there; "
        "write its path as `command` if you trust it"
    )
    assert problems["b"] == ""


def test_a_folder_of_the_path_in_the_workspace_cannot_be_written_by_a_command_and_asks_otherwise(
    tmp_path: Path,
) -> None:
    needs("bubblewrap")
    programs = tmp_path / "workspace" / ".venv" / "bin"
    programs.mkdir(parents=True)
    attack = (
        "echo x > .venv/bin/git; mv .venv/bin old; mv .venv old; rm -rf .venv; mkdir -p .venv/bin; "
        "echo x > .venv/bin/git; echo y > .venv/other"
    )
    script = [
        TC("c1", "bash", {"command": attack}),
        TC("c2", "write_file", {"file_path": ".venv/bin/git", "content": "x"}),
        TXT("done"),
    ]
    with scripted(tmp_path, script) as command:
        command.extra_env = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
        code, result = command.run_json("go", "--mode", "acceptEdits", "--thread", "t1")
        if code == 3:
            command("approvals", "approve", "--all")
        checked = command("policy", "check", "write_file", '{"file_path": ".venv/bin/git", "content": "x"}')

    assert (code, result["status"]) == (3, "awaiting_approval")
    assert (checked.returncode, "is in a folder of PATH" in checked.stdout) == (3, True)


_READ = "tr '\\0' '\\n' < /proc/$PPID/environ | grep -a sk-of-the-agent; head -c 9 /proc/$PPID/maps"


@pytest.mark.parametrize(("is_protected", "found"), [(True, False), (False, True)])
def test_a_command_of_the_same_user_cannot_read_the_environment_of_its_agent(
    *, is_protected: bool, found: bool
) -> None:
    # Becoming another user has closed it already, so it is opened first.
    before = "import ctypes; ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)\n"
    if is_protected:
        before += "from graph_agent.cli.startup import forbid_reading_memory; forbid_reading_memory()"
    with sandboxed_process("none", OTHER_USER) as process:
        secret = {"SOME_API_KEY": "sk-of-the-agent"}
        output, _ = process.run(_READ, before=before, environment=secret, is_cold=True)

    assert ("sk-of-the-agent" in output, "Permission denied" in output) == (found, is_protected)


_IS_READABLE = "import ctypes; print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"


def test_the_command_line_closes_its_memory_and_a_program_that_imports_the_agent_stays_as_it_is(
    tmp_path: Path,
) -> None:
    run = "import sys; sys.argv[1:] = ['threads', 'list']; from graph_agent.__main__ import main; main()"
    imported = "import graph_agent.app.opening, graph_agent.cli.main, graph_agent.__main__, tools, policy"
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GRAPH_AGENT_HOME": str(tmp_path)}

    def readable(code: str, **more: str) -> str:
        words = [sys.executable, "-c", f"{code}\n{_IS_READABLE}"]
        done = subprocess.run(words, env=environment | more, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()[-1]

    assert (readable(run), readable(imported)) == ("0", "1")
    # The outer agent finds the processes of its commands by what is in their environment.
    assert readable(run, GRAPH_AGENT_CALL="mark") == "1"
