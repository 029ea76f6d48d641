"""Starts commands and servers in a sandbox: finds the backend that works here, and prepares each launch."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from tools.paths import find_program
from tools.sandbox import landlock
from tools.sandbox.bubblewrap import NAMESPACE_OPTIONS, bubblewrap_arguments, without_die_with_parent
from tools.sandbox.landlock import is_known_machine, landlock_abi, seccomp_filter
from tools.sandbox.mounts import Mount, SandboxRules, path_exists
from tools.sandbox.protected_paths import (
    placeholders,
    private_folder,
    protected_mounts,
    remove_stale_placeholders,
    restore,
    watched_paths,
)

__all__ = ["Sandbox", "SandboxBackend", "SandboxLaunch", "SandboxUnavailable", "detect_backend"]

_CACHES = (("GOCACHE", "go-build"), ("UV_CACHE_DIR", "uv"), ("npm_config_cache", "npm"))
"""Caches without which programs fail, and do not only get slower, as they cannot write them in the home folder."""


class SandboxBackend(NamedTuple):
    """What enforces a sandbox on this machine."""

    kind: Literal["bubblewrap", "landlock", "none"]
    program: str = ""
    """Path of bubblewrap."""
    abi: int = 0
    """Version of Landlock."""
    why: str = ""
    """Why it is not a better one."""


class SandboxUnavailable(Exception):
    """There is no sandbox here, or it cannot be set up, and nothing may run without one; the message says why."""


@dataclass(frozen=True)
class SandboxLaunch:
    """How one program is started in the sandbox."""

    kind: Literal["bubblewrap", "landlock"]
    prefix: tuple[str, ...]
    """Precedes the program and its arguments."""
    environment: Mapping[str, str]
    """Variables in addition to the program's own."""
    restored: list[Path] = field(default_factory=list)
    """Known afterwards: protected names that the program changed, and that were restored."""
    placeholders: tuple[str, ...] = ()
    """Names that are absent, and that the program sees as empty placeholders while it runs."""

    @property
    def has_pid_namespace(self) -> bool:
        """Whether it has a process namespace, which ends with its first process and with the agent."""
        return self.kind == "bubblewrap"


class Sandbox:
    """The sandbox of one workspace.

    Args:
        rules: what it allows.
        is_required: whether nothing may run if there is no backend.
        look: finds the backend.
    """

    def __init__(
        self, rules: SandboxRules, *, is_required: bool = False, look: Callable[[], SandboxBackend] | None = None
    ) -> None:
        self.rules = rules
        self.is_required = is_required
        self._look = look or detect_backend

    @property
    def backend(self) -> SandboxBackend:
        """What enforces it here. The first call in a process takes some milliseconds."""
        return self._look()

    @property
    def is_available(self) -> bool:
        """Whether there is a backend here."""
        return self.backend.kind != "none"

    @property
    def restrictions(self) -> str:
        """What a command may do in it, in words."""
        network = "the network is open" if self.rules.network else "there is no network"
        more = f" and {len(self.rules.writable) - 1} more folders" if len(self.rules.writable) > 1 else ""
        return f"files can be written in the workspace{more} and the temporary folder only, {network}"

    def with_rules(self, rules: SandboxRules) -> "Sandbox":
        """The same sandbox with other rules."""
        return Sandbox(rules, is_required=self.is_required, look=self._look)

    @contextmanager
    def launch(
        self, name: str, *, is_lasting: bool = False, outlives: bool = False
    ) -> Iterator[SandboxLaunch | None]:
        """Prepare the start of a program; None if there is no backend here.

        Everything that was started with it must have ended before the block is left.

        Args:
            name: commands with the same name share their temporary files.
            is_lasting: it runs as long as the agent does. Absent names in its folders then get no placeholders,
                because these would be visible to everybody all the time.
            outlives: it continues when the agent ends.

        Raises:
            SandboxUnavailable: a sandbox is required and cannot be set up.
        """
        backend = self.backend
        if backend.kind == "none":
            if self.is_required:
                raise SandboxUnavailable(
                    f'{backend.why}. With the setting sandbox = "required" nothing runs without a sandbox'
                )
            yield None
            return
        try:
            private = private_folder(name)
        except OSError as error:
            raise SandboxUnavailable(f"its folder for temporary files cannot be made: {error}") from error
        if backend.kind == "landlock":
            yield SandboxLaunch("landlock", self._landlock_prefix(private), _environment(private))
        elif is_lasting:
            launch = self._bubblewrap_launch(backend.program, private, self._protected_mounts())
            yield replace(launch, prefix=without_die_with_parent(launch.prefix)) if outlives else launch
        else:
            with self._with_placeholders(backend.program, private) as launch:
                yield launch

    def sweep(self) -> None:
        """Remove what a dead process left in the writable folders."""
        for root in self.rules.writable:
            remove_stale_placeholders(root, self.rules.names)

    @contextmanager
    def _with_placeholders(self, program: str, private: Path) -> Iterator[SandboxLaunch]:
        roots, names = self.rules.writable, self.rules.names
        with placeholders(roots, names) as placed:
            mounts = [*self._protected_mounts(), *(Mount(path, "read") for path in placed)]
            # Among the protected paths only folders of repositories are mounted as writable.
            watched = watched_paths(roots, names, [mount.path for mount in mounts if mount.kind == "write"])
            launch = self._bubblewrap_launch(program, private, mounts)
            try:
                yield replace(launch, placeholders=tuple(path.name for path in placed))
            finally:
                launch.restored.extend(restore(watched))

    def _protected_mounts(self) -> list[Mount]:
        return [mount for root in self.rules.writable for mount in protected_mounts(root, self.rules.names)]

    def _bubblewrap_launch(self, program: str, private: Path, mounts: list[Mount]) -> SandboxLaunch:
        prefix = tuple(bubblewrap_arguments(program, self.rules, private, mounts))
        return SandboxLaunch("bubblewrap", prefix, _environment(Path("/tmp")))  # noqa: S108 - private in there

    def _landlock_prefix(self, private: Path) -> tuple[str, ...]:
        rules = {
            "writable": [str(path) for path in (*self.rules.writable, private)],
            # The launcher finds what is around them, which for a large folder would be too long an argument.
            "hidden": [str(path) for path in self.rules.hidden if path_exists(path)],
            "network": self.rules.network,
            "filter": seccomp_filter(network=self.rules.network).hex(),
        }
        return sys.executable, "-I", "-S", str(landlock.__file__), json.dumps(rules)


def _environment(temporary: Path) -> dict[str, str]:
    caches = {variable: str(temporary / ".cache" / folder) for variable, folder in _CACHES}
    return {"TMPDIR": str(temporary), **caches}


_TIMEOUT_S = 5.0
_TRIAL = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run", "--", "/bin/sh", "-c", ":")
_RESTRICTED = "the system restricts user namespaces (on Ubuntu an AppArmor profile for bwrap lifts that)"
_CAUSES = (
    ("unknown option", "it is too old: version 0.8 or newer is needed"),
    ("uid map", _RESTRICTED),
    ("loopback", _RESTRICTED),
    ("namespace", "namespaces are not permitted here, as in most containers"),
    ("proc", "/proc cannot be mounted here, as in most containers"),
)


def detect_backend() -> SandboxBackend:
    """The best backend that works here; tried once per process and PATH."""
    return _detect_backend(os.environ.get("PATH", ""))


@cache
def _detect_backend(path: str) -> SandboxBackend:
    if sys.platform != "linux":
        return SandboxBackend("none", why="sandboxes need Linux")
    program = find_program("bwrap", path)
    problem = "bubblewrap (bwrap) is not installed" if program is None else _bubblewrap_problem(program)
    if program is not None and not problem:
        return SandboxBackend("bubblewrap", program=str(Path(program).absolute()))
    abi = landlock_abi()
    if abi > 0 and is_known_machine():
        return SandboxBackend("landlock", abi=abi, why=problem)
    missing = "Landlock is not enabled in the kernel" if abi <= 0 else "this processor's system calls are not known"
    return SandboxBackend("none", why=f"{problem}; {missing}")


def _bubblewrap_problem(program: str) -> str:
    """Why it does not work; empty if it does."""
    command = [program, *NAMESPACE_OPTIONS, *_TRIAL]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} does not work here: {type(error).__name__}"
    if done.returncode == 0:
        return ""
    message = done.stderr.decode("utf-8", "replace").strip().split("\n")[0][:160]
    cause = next((f"{text}: " for word, text in _CAUSES if word in message.lower()), "")
    return f"{program} does not work here: {cause}{message or f'exit code {done.returncode}'}"
