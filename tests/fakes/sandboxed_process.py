"""The bash tool in a process of its own, as this user or another one: what a command gets from its agent."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor  # noqa: F401 - loaded while this user may still read it
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.fakes.forked_command import run_forked
from tests.fakes.sandboxes import NAMES, needs
from tools.base import ToolContext
from tools.sandbox import Sandbox, SandboxBackend, SandboxRules
from tools.shell_ops.bash import BashTool

__all__ = ["OTHER_USER", "SandboxedProcess", "sandboxed_process"]

OTHER_USER = 65534
_ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class SandboxedProcess:
    """Runs commands as a user in a form of the sandbox."""

    kind: str
    user: int
    folder: Path
    """Belongs to the user; the workspace is in it."""
    python: str
    """A Python that the user can run."""

    @property
    def workspace(self) -> Path:
        """Where commands run."""
        return self.folder / "workspace"

    def run(
        self,
        command: str,
        *,
        before: str = "",
        writable: tuple[Path, ...] = (),
        environment: Mapping[str, str] | None = None,
        memory: int | None = None,
        processes: int | None = None,
        is_cold: bool = False,
    ) -> tuple[str, dict[str, Any]]:
        """Output and metadata of a command; `before` is Python that the agent's process runs first, as the user.

        A cold process is one whose environment the system knows from its start.
        """
        backend = needs(self.kind) if self.kind != "none" else None
        wanted = {
            "kind": self.kind,
            "user": self.user,
            "program": backend.program if backend else "",
            "abi": backend.abi if backend else 0,
            "python": self.python,
            "workspace": str(self.workspace),
            "writable": [str(path) for path in writable],
            "before": before,
            "command": command,
            "memory": memory,
            "processes": processes,
        }
        known = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "PYTHONDONTWRITEBYTECODE": "1",
            **(environment or {}),
        }
        words = [json.dumps(wanted)]
        if is_cold:
            program = [sys.executable, "-m", __name__, *words]
            done = subprocess.run(program, cwd=_ROOT, env=known, capture_output=True, text=True, check=False)
        else:
            done = run_forked(words, _ROOT, known, "", module=__name__)
        assert (done.returncode, done.stderr) == (0, "")
        output, metadata = json.loads(done.stdout)
        return output, metadata


@contextmanager
def sandboxed_process(kind: str, user: int) -> Iterator[SandboxedProcess]:
    """A process for commands of this user, with a folder of its own; the test is skipped where that cannot be."""
    if kind != "none":
        needs(kind)
    if user != os.getuid() and os.getuid() != 0:
        pytest.skip("NOT TESTED: another user, whom root alone can become")
    python = shutil.which("python3", path="/usr/bin:/usr/local/bin")
    if python is None:
        pytest.skip("NOT TESTED, no Python here that another user can run")
    # Not below the folder of the test: its parents are closed to other users.
    folder = Path(tempfile.mkdtemp())
    (folder / "workspace").mkdir()
    for path in (folder, folder / "workspace"):
        os.chown(path, user, user)
    try:
        yield SandboxedProcess(kind, user, folder, python)
    finally:
        shutil.rmtree(folder)


def _run_command(wanted: dict[str, Any]) -> None:
    if wanted["user"] != os.getuid():
        os.setgroups([])
        os.setgid(wanted["user"])
        os.setuid(wanted["user"])
    sys.executable = wanted["python"]  # The one of the tests may be out of reach for others.
    exec(wanted["before"])  # noqa: S102 - of a test
    workspace = Path(wanted["workspace"])
    box = None
    if wanted["kind"] != "none":
        backend = SandboxBackend(wanted["kind"], program=wanted["program"], abi=wanted["abi"])
        more = [Path(path) for path in wanted["writable"]]
        rules = SandboxRules(
            (workspace, *more), names=NAMES, memory=wanted["memory"], processes=wanted["processes"]
        )
        box = Sandbox(rules, look=lambda: backend)
    context = ToolContext(workspace, sandbox=box)
    result = asyncio.run(BashTool().execute(command=wanted["command"], timeout=300, context=context))
    sys.stdout.write(json.dumps([result.output, result.metadata]))


if __name__ == "__main__":
    _run_command(json.loads(sys.argv[1]))
