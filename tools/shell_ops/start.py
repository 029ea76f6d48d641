"""How a command is started: its shell, its variables, the walls around it; and what its end says of them.

What a command inherits: an allow-list of the agent's environment, and settings against programs that ask.
"""

import os
import re
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tools.context import ToolContext
from tools.result import ToolErrorType, ToolResult, failure
from tools.running import run_in_thread
from tools.sandbox.sandbox import SandboxLaunch
from tools.shell_ops.output import Spool, clean_output
from tools.shell_ops.process import CALL_MARK, ChildProcess

__all__ = [
    "INTERACTION_OFF",
    "ShellCommand",
    "child_environment",
    "exit_code",
    "exit_trap",
    "format_sandbox_failure",
    "sandbox_failure",
    "spawn",
    "strip_exit_trap",
    "walls",
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

_ALLOWED = frozenset(
    [
        "CARGO_HOME",
        "GOPATH",
        "GOROOT",
        "HOME",
        "HTTPS_PROXY",
        "HTTP_PROXY",
        "JAVA_HOME",
        "LANG",
        "LANGUAGE",
        "LOGNAME",
        "NO_PROXY",
        "NVM_DIR",
        "PATH",
        "PYENV_ROOT",
        "RUSTUP_HOME",
        "SHELL",
        "SSL_CERT_DIR",
        "SSL_CERT_FILE",
        "TMPDIR",
        "TZ",
        "USER",
        "VIRTUAL_ENV",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR",
        "http_proxy",
        "https_proxy",
        "no_proxy",
    ]
)


def child_environment(source: Mapping[str, str]) -> dict[str, str]:
    """The environment of a command; keys and tokens are not on the list, so they never get there."""
    kept = {name: value for name, value in source.items() if name in _ALLOWED or name.startswith("LC_")}
    kept.setdefault("PATH", "/usr/local/bin:/usr/bin:/bin")
    return {**kept, **INTERACTION_OFF}


_SHELL = "/bin/bash"
_SIGNALLED = 128
_OWN_END = re.compile(r"\b(?:exec|trap)\b")
"""What in a command may have the shell end without telling where."""
_TROUBLE_BYTES = 1_000
_PROLOGUE = re.compile(r"trap '(?:pwd -P|echo \$\?) >&\d+' EXIT; ")


@dataclass(frozen=True)
class ShellCommand:
    """A command with its place, ready to be started."""

    command: str
    timeout: float
    start: Path
    context: ToolContext
    shell: tuple[str, ...] = ()
    """Another shell than bash, with what goes before the command; it tells nothing at its end."""
    tells: Literal["folder", "code"] = "folder"
    """What its shell writes down when it ends: where it stands, or its exit code, where nobody may be there to
    see that."""


@asynccontextmanager
async def walls(
    context: ToolContext, lasts: Literal["call", "session", "always"] = "call"
) -> AsyncIterator[SandboxLaunch | None]:
    """What a command is confined with; None where there is nothing to do it with, or nobody wants it.

    Raises:
        NoSandbox: there is none, and nothing may run without.
    """
    if context.sandbox is None:
        yield None
        return
    name = context.thread_id or str(context.workspace)
    confining = context.sandbox.launch(name, is_lasting=lasts != "call", outlives=lasts == "always")
    confined = await run_in_thread(confining.__enter__)
    try:
        yield confined
    finally:
        await run_in_thread(confining.__exit__, None, None, None)


def spawn(run: ShellCommand, spool: Spool, report: int, confined: SandboxLaunch | None) -> ChildProcess:
    """Start the shell, held back; `report` takes what it tells at its end.

    Raises:
        OSError: the system refuses.
    """
    shell = [*run.shell, run.command] if run.shell else _bash(run, report)
    mark = run.context.mark or secrets.token_hex(16)
    marks = ",".join(filter(None, (os.environ.get(CALL_MARK), mark)))
    environment = {**child_environment(os.environ), "PWD": str(run.start), CALL_MARK: marks}
    prefix = confined.prefix if confined else ()
    around = prefix if confined and confined.has_pid_namespace else ()
    return ChildProcess(
        shell if around else [*prefix, *shell],
        cwd=run.start,
        environment={**environment, **confined.environment} if confined else environment,
        output=spool.sink,
        report=report,
        mark=mark,
        walls=around,
    )


def _bash(run: ShellCommand, report: int) -> list[str]:
    # The approved text follows on the same line, so that the shell's messages count lines as the model does.
    return [_SHELL, "--noprofile", "--norc", "-c", f"{exit_trap(report, run.tells)}{run.command}", "bash"]


def exit_trap(report: int, tells: Literal["folder", "code"] = "folder") -> str:
    """What is put before a command so that its shell tells where it ends, or how."""
    return f"trap '{'pwd -P' if tells == 'folder' else 'echo $?'} >&{report}' EXIT; "


def strip_exit_trap(text: str) -> str:
    """What a shell said, without what was put before its command."""
    return _PROLOGUE.sub("", text)


def sandbox_failure(spool: Spool) -> ToolResult:
    """What to tell of a command whose walls could not be put up."""
    return failure(
        ToolErrorType.EXECUTION, format_sandbox_failure(clean_output(spool.read(0, _TROUBLE_BYTES)).strip())
    )


def format_sandbox_failure(trouble: str) -> str:
    """The same in words."""
    told = f"The sandbox could not be set up, and the command did not run: {trouble or 'it said nothing'}"
    return f"{told}. The user can look with `graph-agent doctor`."


def exit_code(child: ChildProcess, run: ShellCommand, *, has_told: bool) -> int:
    """Exit code, or minus the signal. From within a sandbox both come as one number.

    A shell that exits tells what it is to tell before, unless the command took that away from it.
    """
    code = child.returncode or 0
    tells_nothing = bool(run.shell) or _OWN_END.search(run.command) is not None
    is_signal = child.is_sandboxed and code > _SIGNALLED and not has_told and not tells_nothing
    return _SIGNALLED - code if is_signal else code
