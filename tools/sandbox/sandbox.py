"""Puts commands and servers behind walls: the one thing that knows both means and when to use which.

Finds out which means there are on this machine: by starting them, once in the life of a process.
"""

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
from tools.sandbox.landlock import compiled, is_known_machine, landlock_abi
from tools.sandbox.mounts import Mount, SandboxRules, path_exists
from tools.sandbox.protected_paths import (
    closed,
    private_folder,
    protected_mounts,
    put_back,
    remove_stale_placeholders,
    watched_paths,
)

__all__ = ["Sandbox", "SandboxBackend", "SandboxLaunch", "SandboxUnavailable", "detect_backend"]

_WAIT_S = 5.0
_TRIED = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run", "--", "/bin/sh", "-c", ":")
_REASONS = (
    ("unknown option", "it is too old: version 0.8 or newer is needed"),
    ("uid map", "the system restricts user namespaces (on Ubuntu an AppArmor profile for bwrap lifts that)"),
    ("loopback", "the system restricts user namespaces (on Ubuntu an AppArmor profile for bwrap lifts that)"),
    ("namespace", "namespaces are not permitted here, as in most containers"),
    ("proc", "/proc cannot be mounted here, as in most containers"),
)


class SandboxBackend(NamedTuple):
    """What a sandbox can be made of here."""

    kind: Literal["bubblewrap", "landlock", "none"]
    program: str = ""
    """Of bubblewrap, its path."""
    abi: int = 0
    """Of Landlock, its version."""
    why: str = ""
    """Why it is nothing better, in words."""


def detect_backend() -> SandboxBackend:
    """The best there is; what was found once stands for the process, as long as the same programs are named."""
    return _probed(os.environ.get("PATH", ""))


@cache
def _probed(path: str) -> SandboxBackend:
    if sys.platform != "linux":
        return SandboxBackend("none", why="only Linux has what it is made of")
    program = find_program("bwrap", path)
    trouble = "bubblewrap (bwrap) is not installed" if program is None else _tried(program)
    if program is not None and not trouble:
        return SandboxBackend("bubblewrap", program=str(Path(program).absolute()))
    abi = landlock_abi()
    if abi > 0 and is_known_machine():
        return SandboxBackend("landlock", abi=abi, why=trouble)
    missing = "Landlock is not enabled in the kernel" if abi <= 0 else "this processor's system calls are not known"
    return SandboxBackend("none", why=f"{trouble}; {missing}")


def _tried(program: str) -> str:
    """What is wrong with it; empty when it works."""
    command = [program, *NAMESPACE_OPTIONS, *_TRIED]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_WAIT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{program} does not work here: {type(error).__name__}"
    if done.returncode == 0:
        return ""
    said = done.stderr.decode("utf-8", "replace").strip().split("\n")[0][:160]
    reason = next((f"{text}: " for word, text in _REASONS if word in said.lower()), "")
    return f"{program} does not work here: {reason}{said or f'exit code {done.returncode}'}"


_CACHES = (("GOCACHE", "go-build"), ("UV_CACHE_DIR", "uv"), ("npm_config_cache", "npm"))
"""Programs that fail, and do not only work slower, when they cannot write a cache in the home folder."""


class SandboxUnavailable(Exception):
    """There is none here, or it cannot be set up, and without one nothing may be run; the message says why."""


@dataclass(frozen=True)
class SandboxLaunch:
    """How one program is started behind walls."""

    kind: Literal["bubblewrap", "landlock"]
    prefix: tuple[str, ...]
    """Goes before the program and its arguments."""
    environment: Mapping[str, str]
    """Variables besides the program's own."""
    undone: list[Path] = field(default_factory=list)
    """Known afterwards: names that were not to change, did, and were put back."""
    placeholders: tuple[str, ...] = ()
    """Names that are absent and closed by something empty while it runs, which the program sees."""

    @property
    def has_pid_namespace(self) -> bool:
        """Whether its processes are a world of their own, which ends with its first one and with the agent."""
        return self.kind == "bubblewrap"


class Sandbox:
    """The walls of one workspace.

    Args:
        rules: what they let through.
        is_required: whether nothing may run where there are none.
        look: says what there is to make them of.
    """

    def __init__(
        self, rules: SandboxRules, *, is_required: bool = False, look: Callable[[], SandboxBackend] = detect_backend
    ) -> None:
        self.rules = rules
        self.is_required = is_required
        self._look = look

    @property
    def backend(self) -> SandboxBackend:
        """What it is made of here. The first look in a process takes some milliseconds."""
        return self._look()

    @property
    def is_available(self) -> bool:
        """Whether there is one here."""
        return self.backend.kind != "none"

    @property
    def restrictions(self) -> str:
        """What a command may do in it, in words."""
        network = "the network is open" if self.rules.network else "there is no network"
        more = f" and {len(self.rules.writable) - 1} more folders" if len(self.rules.writable) > 1 else ""
        return f"files can be written in the workspace{more} and the temporary folder only, {network}"

    def with_rules(self, rules: SandboxRules) -> "Sandbox":
        """The same with other terms."""
        return Sandbox(rules, is_required=self.is_required, look=self._look)

    @contextmanager
    def launch(
        self, name: str, *, is_lasting: bool = False, outlives: bool = False
    ) -> Iterator[SandboxLaunch | None]:
        """What a program is to be started with, valid while the block runs; None where there is no sandbox here.

        When the block is left, everything that was started with it must have ended.

        Args:
            name: commands of the same name share their temporary files.
            is_lasting: it runs for as long as the agent: names that are absent in its folders are not closed, as
                that would be in everybody's way all the time.
            outlives: it goes on when the agent ends.

        Raises:
            NoSandbox: none can be had, and it is required.
        """
        backend = self.backend
        if backend.kind == "none":
            if self.is_required:
                raise SandboxUnavailable(
                    f'{backend.why}. The setting sandbox = "required" lets nothing run without one'
                )
            yield None
            return
        private = self._private(name)
        if backend.kind == "landlock":
            yield SandboxLaunch("landlock", self._launcher(private), self._environment(private))
            return
        if is_lasting:
            confined = self._behind_walls(backend.program, private, self._protected())
            yield replace(confined, prefix=without_die_with_parent(confined.prefix)) if outlives else confined
            return
        with self._closed_walls(backend.program, private) as confined:
            yield confined

    def sweep(self) -> None:
        """Take away what a process that died left in the writable folders."""
        for root in self.rules.writable:
            remove_stale_placeholders(root, self.rules.names)

    @contextmanager
    def _closed_walls(self, program: str, private: Path) -> Iterator[SandboxLaunch]:
        roots, names = self.rules.writable, self.rules.names
        with closed(roots, names) as placeholders:
            mounts = self._protected()
            mounts += [Mount(path, "read") for path in placeholders]
            # Of what is mounted to be written, only folders of repositories are among them.
            wires = watched_paths(roots, names, [mount.path for mount in mounts if mount.kind == "write"])
            walls = self._behind_walls(program, private, mounts)
            confined = replace(walls, placeholders=tuple(path.name for path in placeholders))
            try:
                yield confined
            finally:
                confined.undone.extend(put_back(wires))

    def _protected(self) -> list[Mount]:
        return [mount for root in self.rules.writable for mount in protected_mounts(root, self.rules.names)]

    def _behind_walls(self, program: str, private: Path, mounts: list[Mount]) -> SandboxLaunch:
        prefix = bubblewrap_arguments(program, self.rules, private, mounts)
        return SandboxLaunch("bubblewrap", tuple(prefix), self._environment(Path("/tmp")))  # noqa: S108 - private in there

    def _launcher(self, private: Path) -> tuple[str, ...]:
        terms = {
            "writable": [str(path) for path in (*self.rules.writable, private)],
            # What is around it is found by the launcher: of a large folder that would be too long an argument.
            "hidden": [str(path) for path in self.rules.hidden if path_exists(path)],
            "network": self.rules.network,
            "filter": compiled(network=self.rules.network).hex(),
        }
        return sys.executable, "-I", "-S", str(landlock.__file__), json.dumps(terms)

    def _private(self, name: str) -> Path:
        try:
            return private_folder(name)
        except OSError as error:
            raise SandboxUnavailable(f"its folder for temporary files cannot be made: {error}") from error

    def _environment(self, temporary: Path) -> dict[str, str]:
        caches = {variable: str(temporary / ".cache" / folder) for variable, folder in _CACHES}
        return {"TMPDIR": str(temporary), **caches}
