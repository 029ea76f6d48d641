from pathlib import Path

import pytest

from graph_agent.ports import Scope
from tests.fakes.sandboxes import sandbox
from tests.fakes.tool_ports import ToolEnvironment
from tests.fakes.toolbox_world import World
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
    around = ToolEnvironment(tmp_path)

    result = await PowershellTool().execute(command="echo 'a  b'; exit 200", context=around.context())

    started = "-NoLogo\n-NoProfile\n-NonInteractive\n-Command\necho 'a  b'; exit 200\na  b\n"
    assert pwsh.exists()
    assert result.output.startswith(f"{started}[exit code 200")


@pytest.mark.usefixtures("pwsh")
async def test_in_the_sandbox_an_exit_code_is_not_a_signal(tmp_path: Path) -> None:
    around = ToolEnvironment(tmp_path)
    around.sandbox = sandbox("bubblewrap", around.workspace, visible=(Path.home(), tmp_path / "programs"))

    result = await PowershellTool().execute(command="exit 200", context=around.context())

    assert result.metadata["exit_code"] == 200


async def test_it_is_offered_only_where_it_is_installed_and_not_by_the_workspace(
    pwsh: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = "powershell" in {tool.name for tool in create_default_tools(workspace=tmp_path / "elsewhere")}
    own = find_powershell(pwsh.parent)
    monkeypatch.setenv("PATH", "/nowhere")
    removed = await PowershellTool(workspace=tmp_path).execute(command="ls")

    assert (offered, own, find_powershell(tmp_path / "elsewhere")) == (True, None, None)
    assert "powershell" not in {tool.name for tool in create_default_tools(workspace=tmp_path)}
    assert removed.error == "PowerShell (pwsh) is not installed here; use bash."


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
        ("default", "$x = 1; Invoke-WebRequest a.example", "deny"),
    ],
)
async def test_no_rule_lets_an_unparsed_command_run_without_asking(
    tmp_path: Path, mode: str, command: str, verdict: str
) -> None:
    deny = ["powershell(Invoke-WebRequest *)"] if "Invoke" in command else []
    world = World(tmp_path, allow=["powershell", "powershell(ls)", "powershell(*)"], deny=deny)

    plan = await world.plan("powershell", mode, command=command)
    proposal = await world.box.propose("powershell", {"command": command}, Scope("t1", "default"))

    assert (plan.verdict, plan.risk, plan.summary) == (verdict, "high", f"PS> {command}")
    assert proposal.rules == ()
    assert PowershellTool().targets({"command": command}) == [CommandTarget(command, "", is_bash=False)]
