"""How a shell command is started: its shell, its environment, its sandbox; and how its exit is interpreted."""

import os
import re
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from policy import destructive_reason, parse_shell, unparsed_shell
from tools.base import ToolContext
from tools.running import run_in_thread
from tools.sandbox.sandbox import NO_LIMITS, ResourceLimits, SandboxLaunch
from tools.shell_ops.bash_parser import parse_bash
from tools.shell_ops.output import Spool, clean_output
from tools.shell_ops.process import CALL_MARK, ChildProcess, shell_prelude

__all__ = [
    "INTERACTION_OFF",
    "LimitStop",
    "ShellCommand",
    "child_environment",
    "command_sandbox",
    "exceeded_limit",
    "exit_code",
    "format_sandbox_failure",
    "refused_in_every_mode",
    "sandbox_error",
    "spawn",
]

INTERACTION_OFF: Mapping[str, str] = {
    "CI": "1",
    "DEBIAN_FRONTEND": "noninteractive",
    "EDITOR": "false",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "MANPAGER": "cat",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "PIP_NO_INPUT": "1",
    "TERM": "dumb",
}
"""Set for every command, whatever the agent's own environment says."""

_INHERITED = frozenset(
    (
        "CARGO_HOME", "GOPATH", "GOROOT", "HOME", "HTTPS_PROXY", "HTTP_PROXY", "JAVA_HOME", "LANG", "LANGUAGE",
        "LOGNAME", "NO_PROXY", "NVM_DIR", "PATH", "PYENV_ROOT", "RUSTUP_HOME", "SHELL", "SSL_CERT_DIR",
        "SSL_CERT_FILE", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
        "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "http_proxy", "https_proxy", "no_proxy",
    )
)  # fmt: skip


def child_environment(source: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command: an allow-list of the agent's own, which holds no keys and tokens."""
    kept = {name: value for name, value in source.items() if name in _INHERITED or name.startswith("LC_")}
    kept.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")
    return {**kept, **INTERACTION_OFF}


@dataclass(frozen=True)
class ShellCommand:
    """A command that is ready to be started."""

    command: str
    timeout: float
    start: Path
    """The folder it starts in."""
    context: ToolContext
    shell: tuple[str, ...] = ()
    """The words before the command for another shell than bash, which reports nothing when it exits."""


@asynccontextmanager
async def command_sandbox(
    context: ToolContext, lasts: Literal["call", "session", "always"] = "call"
) -> AsyncIterator[SandboxLaunch | None]:
    """The sandbox of a command while it runs; None if there is none here, or the user wants none.

    Raises:
        SandboxUnavailable: a sandbox is required and there is none.
    """
    if context.sandbox is None:
        yield None
        return
    name = context.thread_id or str(context.workspace)
    launching = context.sandbox.launch(name, is_lasting=lasts != "call", outlives=lasts == "always")
    launch = await run_in_thread(launching.__enter__)
    try:
        yield launch
    finally:
        await run_in_thread(launching.__exit__, None, None, None)


_SHELL = "/bin/bash"


def spawn(command: ShellCommand, spool: Spool, report: int, launch: SandboxLaunch | None) -> ChildProcess:
    """Start the shell, which waits for `release`; `report` receives what `shell_prelude` describes.

    Raises:
        OSError: the system refuses.
    """
    # The approved text follows on the same line, so that the shell's messages count lines as the model does.
    script = f"{shell_prelude(command.command, report)}{command.command}"
    bash = [_SHELL, "--noprofile", "--norc", "-c", script, "bash"]
    words = [*command.shell, command.command] if command.shell else bash
    mark = command.context.mark or secrets.token_hex(16)
    marks = ",".join(filter(None, (os.environ.get(CALL_MARK), mark)))
    environment = {**child_environment(os.environ), "PWD": str(command.start), CALL_MARK: marks}
    prefix = launch.prefix if launch else ()
    namespace = prefix if launch and launch.has_pid_namespace else ()
    return ChildProcess(
        words if namespace else [*prefix, *words],
        cwd=command.start,
        environment={**environment, **launch.environment} if launch else environment,
        output=spool.sink,
        report=report,
        mark=mark,
        namespace=namespace,
        descriptors=launch.descriptors if launch else (),
    )


LimitStop = Literal["memory_limit", "process_limit"]
"""The limit of the sandbox for which a command is stopped."""


def exceeded_limit(child: ChildProcess, limits: ResourceLimits) -> LimitStop | None:
    """Which limit the command exceeds now with all that it started."""
    if limits == NO_LIMITS:
        return None
    usage = child.usage()
    if limits.processes is not None and usage.processes > limits.processes:
        return "process_limit"
    return "memory_limit" if limits.memory is not None and usage.memory > limits.memory else None


_SIGNALLED = 128
_ENDS_ITSELF = re.compile(r"\b(?:exec|trap)\b")
"""Words by which a command may keep its shell from reporting anything."""


def exit_code(child: ChildProcess, command: ShellCommand, *, has_reported: bool) -> int:
    """Exit code, or minus the signal. From a sandbox both come as one number.

    A shell that exits normally reports first, unless the command prevents that.
    """
    code = child.returncode or 0
    may_be_silent = bool(command.shell) or _ENDS_ITSELF.search(command.command) is not None
    is_signal = child.is_sandboxed and code > _SIGNALLED and not has_reported and not may_be_silent
    return _SIGNALLED - code if is_signal else code


_MESSAGE_BYTES = 1_000


def sandbox_error(spool: Spool) -> str:
    """What a sandbox printed that could not be set up."""
    return clean_output(spool.read(0, _MESSAGE_BYTES)).strip()


def refused_in_every_mode(command: str, *, is_bash: bool = True) -> str:
    """Why a command must never run; empty for most. For calls that no policy has decided about."""
    text = parse_shell(command, parse_bash) if is_bash else unparsed_shell(command)
    return destructive_reason(command, text)


def format_sandbox_failure(message: str) -> str:
    """The error of a command whose sandbox could not be set up."""
    return (
        f"The sandbox could not be set up, and the command did not run: {message or 'it printed no reason'}. "
        "The user can check it with `graph-agent doctor`."
    )
