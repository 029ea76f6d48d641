import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.sandboxes import needs, sandbox
from tests.fakes.tool_ports import ToolEnvironment
from tests.fakes.waiting import is_running, names_in, until
from tools.base import ToolResult
from tools.sandbox import Sandbox, SandboxBackend, SandboxRules
from tools.shell_ops.bash import BashTool
from tools.shell_ops.shell_command import INTERACTION_OFF, child_environment


@pytest.fixture
def around(tmp_path: Path) -> ToolEnvironment:
    surroundings = ToolEnvironment(tmp_path)
    surroundings.sandbox = sandbox("bubblewrap", surroundings.workspace)
    return surroundings


async def _bash(around: ToolEnvironment, command: str, *, limit: float = 20, **context: Any) -> ToolResult:
    return await BashTool().execute(command=command, timeout=limit, context=around.context(**context))


def _is_there(words: str) -> bool:
    return any(words.encode() in _command_line(pid) for pid in names_in("/proc") if pid.isdigit())


def _command_line(pid: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
    except OSError:
        return b""


async def test_a_signal_to_the_whole_group_and_a_late_process_are_harmless(around: ToolEnvironment) -> None:
    signalled = await _bash(around, "kill 0")
    result = await _bash(around, "echo one > >(sleep 0.05; cat > copy)", call_id="c2")

    assert signalled.output == "(no output)\n[exit code 143, which usually means signal SIGTERM]"
    assert ("ended with the call" in result.output, (around.workspace / "copy").read_text()) == (False, "one\n")


async def test_the_environment_is_the_same_as_without_a_sandbox(around: ToolEnvironment, tmp_path: Path) -> None:
    script = (
        "import os, signal; print(len(os.listdir('/proc/self/fd')), [signal.getsignal(n) for n in (2, 13, 15)])"
    )
    (tmp_path / "ws" / "look.py").write_text(script)

    inside = await _bash(around, "python3 look.py")
    outside = await _bash(around, "python3 look.py", sandbox=None, call_id="c2")

    assert inside.output == outside.output


@pytest.mark.slow
async def test_leftover_processes_are_named_and_ended_wherever_they_went(around: ToolEnvironment) -> None:
    command = (
        "sleep 71.1 & setsid -f sleep 71.2 >/dev/null 2>&1; env -i setsid -f sleep 71.3 >/dev/null 2>&1; sleep 0.2"
    )

    result = await _bash(around, command)

    told = result.output.rpartition("ended with the call: ")[2]
    assert [f"sleep 71.{number} (pid" in told for number in (1, 2, 3)] == [True, True, True]
    assert not _is_there("sleep 71.")


@pytest.mark.slow
async def test_at_its_time_limit_a_command_is_asked_to_end_before_it_is_killed(around: ToolEnvironment) -> None:
    command = "trap 'echo asked > asked; exit' TERM; echo before; while :; do sleep 0.05; done"

    result = await _bash(around, command, limit=1.5)

    assert (result.metadata["error_type"], result.output.startswith("before\n")) == ("timeout", True)
    assert (around.workspace / "asked").read_text() == "asked\n"


@pytest.mark.slow
async def test_a_cancellation_ends_everything_and_keeps_the_partial_output(around: ToolEnvironment) -> None:
    task = asyncio.ensure_future(_bash(around, "echo started; setsid -f sleep 72.1; sleep 72.2"))
    await until(lambda: _is_there("sleep 72.1") and _is_there("sleep 72.2"))

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert not _is_there("sleep 72.")
    assert around.blobs.spool("t1", "c1", 1).read_text() == "started\n"


@pytest.mark.parametrize(
    ("command", "is_hinted"),
    [
        ("echo x > /etc/new", True),
        ("echo x > /etc/new; true", True),
        ("python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80))'", True),
        ("false", False),
        ("echo 'Permission denied'", False),
    ],
)
async def test_a_failure_that_the_sandbox_may_have_caused_gets_a_hint(
    around: ToolEnvironment, command: str, *, is_hinted: bool
) -> None:
    output = (await _bash(around, command)).output

    assert ("[it ran in the sandbox, where files can be written" in output) == is_hinted
    assert ("sandbox_write and sandbox_network" in output) == is_hinted


async def test_nothing_runs_if_the_sandbox_cannot_be_set_up(around: ToolEnvironment, tmp_path: Path) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text("#!/bin/sh\necho 'bwrap: no room' >&2\nexit 1\n")
    broken.chmod(0o755)
    walls = Sandbox(
        SandboxRules((around.workspace,)), look=lambda: SandboxBackend("bubblewrap", program=str(broken))
    )

    result = await _bash(around, "touch witness", sandbox=walls)

    assert result.error == (
        "The sandbox could not be set up, and the command did not run: bwrap: no room. "
        "The user can check it with `graph-agent doctor`."
    )
    assert not (around.workspace / "witness").exists()


_AGENT = """
import asyncio, sys
from pathlib import Path
from tools.base import ToolContext
from tools.sandbox import Sandbox, SandboxRules
from tools.shell_ops.bash import BashTool

workspace = Path(sys.argv[1])
context = ToolContext(workspace, sandbox=Sandbox(SandboxRules((workspace,))))
asyncio.run(BashTool().execute(command=sys.argv[2], context=context))
"""


@pytest.mark.slow
def test_a_command_dies_with_the_agent(tmp_path: Path) -> None:
    needs("bubblewrap")
    command = "setsid -f env -i sleep 73.1 >/dev/null 2>&1; touch ready; sleep 73.2"
    agent = subprocess.Popen([sys.executable, "-c", _AGENT, tmp_path, command], cwd=Path(__file__).parents[3])
    deadline = time.monotonic() + 20
    while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
        time.sleep(0.02)

    was_running = _is_there("sleep 73.1") and _is_there("sleep 73.2")
    os.kill(agent.pid, signal.SIGKILL)
    agent.wait()

    while _is_there("sleep 73.") and time.monotonic() < deadline:
        time.sleep(0.02)
    assert (was_running, _is_there("sleep 73."), is_running(agent.pid)) == (True, False, False)


_SECRETS = (
    "ANTHROPIC_API_KEY", "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
    "AZURE_CLIENT_SECRET", "AZURE_OPENAI_API_KEY", "CARGO_REGISTRY_TOKEN", "CI_JOB_TOKEN",
    "CLOUDFLARE_API_TOKEN", "DATABASE_URL", "DOCKER_AUTH_CONFIG", "GEMINI_API_KEY", "GH_TOKEN",
    "GITHUB_TOKEN", "GITLAB_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS", "GPG_AGENT_INFO",
    "GRAPH_AGENT_BASE_URL", "HF_TOKEN", "KUBECONFIG", "LANGSMITH_API_KEY", "MYSQL_PWD", "NETRC", "NPM_TOKEN",
    "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENROUTER_API_KEY", "PGPASSWORD", "PIP_INDEX_URL",
    "SENTRY_AUTH_TOKEN", "SLACK_BOT_TOKEN", "SSH_AUTH_SOCK", "STRIPE_SECRET_KEY", "TWINE_PASSWORD",
    "UV_INDEX_URL", "VAULT_TOKEN",
)  # fmt: skip
_RUNS_SOMETHING = (
    "BASH_ENV", "BASH_FUNC_git%%", "DYLD_INSERT_LIBRARIES", "ENV", "GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND",
    "IFS", "LD_LIBRARY_PATH", "LD_PRELOAD", "LESSOPEN", "NODE_OPTIONS", "PERL5OPT", "PROMPT_COMMAND", "PS4",
    "PYTHONPATH", "PYTHONSTARTUP", "RIPGREP_CONFIG_PATH", "RUBYOPT", "SHELLOPTS",
)  # fmt: skip


def test_only_listed_variables_are_inherited_and_interaction_is_off() -> None:
    kept = {"PATH": "/bin", "HOME": "/home/u", "LC_ALL": "C", "https_proxy": "http://me:geheim@proxy:3128"}
    source = {**kept, **dict.fromkeys((*_SECRETS, *_RUNS_SOMETHING), "sk-secret"), "PAGER": "less", "EDITOR": "vi"}

    assert child_environment(source) == {**kept, **INTERACTION_OFF}
    assert child_environment({})["PATH"] == "/usr/local/bin:/usr/bin:/bin"
