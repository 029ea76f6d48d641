from pathlib import Path

import pytest

from graph_agent.ports import Scope
from tests.fakes.tool_ports import ToolSurroundings
from tests.fakes.toolbox_world import World
from tests.fakes.walls import sandbox
from tools import create_default_tools
from tools.base import CommandTarget
from tools.shell_ops.powershell import PowershellTool, find_powershell


@pytest.fixture
def pwsh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Something in its place that writes down how it was started, and runs what it is given as a shell does."""
    folder = tmp_path / "programs"
    folder.mkdir()
    program = folder / "pwsh"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\nexec /bin/sh -c "$5"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return program


async def test_the_command_is_one_argument_without_profile_or_terminal(pwsh: Path, tmp_path: Path) -> None:
    around = ToolSurroundings(tmp_path)

    result = await PowershellTool().execute(command="echo 'a  b'; exit 200", context=around.context())

    started = "-NoLogo\n-NoProfile\n-NonInteractive\n-Command\necho 'a  b'; exit 200\na  b\n"
    assert pwsh.exists()
    assert result.output.startswith(f"{started}[exit code 200")


@pytest.mark.usefixtures("pwsh")
async def test_in_the_sandbox_an_exit_code_is_not_a_signal(tmp_path: Path) -> None:
    around = ToolSurroundings(tmp_path)
    around.sandbox = sandbox("bubblewrap", around.workspace, visible=(Path.home(), tmp_path / "programs"))

    result = await PowershellTool().execute(command="exit 200", context=around.context())

    assert result.metadata["exit_code"] == 200


def test_it_is_offered_only_where_it_is_installed_and_not_by_the_workspace(
    pwsh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = "powershell" in {tool.name for tool in create_default_tools(workspace=tmp_path / "elsewhere")}
    own = find_powershell(pwsh.parent)
    monkeypatch.setenv("PATH", "/nowhere")

    assert (offered, own, find_powershell(tmp_path / "elsewhere")) == (True, None, None)
    assert "powershell" not in {tool.name for tool in create_default_tools(workspace=tmp_path)}


@pytest.mark.usefixtures("pwsh")
@pytest.mark.parametrize(
    ("mode", "command", "verdict"),
    [
        ("default", "Get-ChildItem", "ask"),
        ("acceptEdits", "ls", "ask"),
        ("dontAsk", "ls", "deny"),
        ("plan", "ls", "deny"),
        ("bypassPermissions", "ls", "allow"),
        ("default", "Get-Content secret.txt", "ask"),
        ("bypassPermissions", "Remove-Item -Recurse -Force /", "deny"),
        ("bypassPermissions", "get-disk 1 | Clear-Disk -RemoveData", "deny"),
        ("bypassPermissions", "rm -r ~", "deny"),
    ],
)
async def test_no_rule_lets_an_unparsed_command_run_without_asking(
    tmp_path: Path, mode: str, command: str, verdict: str
) -> None:
    world = World(tmp_path, allow=["powershell", "powershell(ls)", "powershell(*)"])

    plan = await world.plan("powershell", mode, command=command)
    proposal = await world.box.propose("powershell", {"command": command}, Scope("t1", "default"))

    assert (plan.verdict, plan.risk, plan.summary) == (verdict, "high", f"PS> {command}")
    assert proposal.rules == ()


@pytest.mark.usefixtures("pwsh")
async def test_a_deny_rule_holds_for_what_it_names(tmp_path: Path) -> None:
    world = World(tmp_path, deny=["powershell(Invoke-WebRequest *)"])

    assert (await world.plan("powershell", command="$x = 1; Invoke-WebRequest a.example")).verdict == "deny"


async def test_an_error_is_returned_if_powershell_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    result = await PowershellTool(workspace=tmp_path).execute(command="ls")

    assert result.error == "PowerShell (pwsh) is not installed here; use bash."


def test_its_command_is_declared_as_not_for_bash() -> None:
    target = CommandTarget("ls", "", is_bash=False)

    assert PowershellTool().targets({"command": "ls"}) == [target]
