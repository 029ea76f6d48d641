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
from tools.sandbox.bubblewrap import WALLS, bubblewrap_arguments, without_parent
from tools.sandbox.landlock import compiled, is_known_machine, landlock_abi
from tools.sandbox.mounts import Mount, Terms, is_there
from tools.sandbox.protected_paths import closed, private_folder, protected_mounts, put_back, swept, tripwires

__all__ = ["Confined", "Means", "NoSandbox", "Sandbox", "probed"]

_WAIT_S = 5.0
_TRIED = ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run", "--", "/bin/sh", "-c", ":")
_REASONS = (
    ("unknown option", "it is too old: version 0.8 or newer is needed"),
    ("uid map", "the system restricts user namespaces (on Ubuntu an AppArmor profile for bwrap lifts that)"),
    ("loopback", "the system restricts user namespaces (on Ubuntu an AppArmor profile for bwrap lifts that)"),
    ("namespace", "namespaces are not permitted here, as in most containers"),
    ("proc", "/proc cannot be mounted here, as in most containers"),
)


class Means(NamedTuple):
    """What a sandbox can be made of here."""

    kind: Literal["bubblewrap", "landlock", "none"]
    program: str = ""
    """Of bubblewrap, its path."""
    abi: int = 0
    """Of Landlock, its version."""
    why: str = ""
    """Why it is nothing better, in words."""


def probed() -> Means:
    """The best there is; what was found once stands for the process, as long as the same programs are named."""
    return _probed(os.environ.get("PATH", ""))


@cache
def _probed(path: str) -> Means:
    if sys.platform != "linux":
        return Means("none", why="only Linux has what it is made of")
    program = find_program("bwrap", path)
    trouble = "bubblewrap (bwrap) is not installed" if program is None else _tried(program)
    if program is not None and not trouble:
        return Means("bubblewrap", program=str(Path(program).absolute()))
    abi = landlock_abi()
    if abi > 0 and is_known_machine():
        return Means("landlock", abi=abi, why=trouble)
    missing = "Landlock is not enabled in the kernel" if abi <= 0 else "this processor's system calls are not known"
    return Means("none", why=f"{trouble}; {missing}")


def _tried(program: str) -> str:
    """What is wrong with it; empty when it works."""
    command = [program, *WALLS, *_TRIED]
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


class NoSandbox(Exception):
    """There is none here, or it cannot be set up, and without one nothing may be run; the message says why."""


@dataclass(frozen=True)
class Confined:
    """How one program is started behind walls."""

    kind: Literal["bubblewrap", "landlock"]
    prefix: tuple[str, ...]
    """Goes before the program and its arguments."""
    environment: Mapping[str, str]
    """Variables besides the program's own."""
    undone: list[Path] = field(default_factory=list)
    """Known afterwards: names that were not to change, did, and were put back."""
    stand_ins: tuple[str, ...] = ()
    """Names that are absent and closed by something empty while it runs, which the program sees."""

    @property
    def has_own_processes(self) -> bool:
        """Whether its processes are a world of their own, which ends with its first one and with the agent."""
        return self.kind == "bubblewrap"


class Sandbox:
    """The walls of one workspace.

    Args:
        terms: what they let through.
        is_required: whether nothing may run where there are none.
        look: says what there is to make them of.
    """

    def __init__(self, terms: Terms, *, is_required: bool = False, look: Callable[[], Means] = probed) -> None:
        self.terms = terms
        self.is_required = is_required
        self._look = look

    @property
    def means(self) -> Means:
        """What it is made of here. The first look in a process takes some milliseconds."""
        return self._look()

    @property
    def stands(self) -> bool:
        """Whether there is one here."""
        return self.means.kind != "none"

    @property
    def limits(self) -> str:
        """What a command may do in it, in words."""
        network = "the network is open" if self.terms.network else "there is no network"
        more = f" and {len(self.terms.writable) - 1} more folders" if len(self.terms.writable) > 1 else ""
        return f"files can be written in the workspace{more} and the temporary folder only, {network}"

    def with_terms(self, terms: Terms) -> "Sandbox":
        """The same with other terms."""
        return Sandbox(terms, is_required=self.is_required, look=self._look)

    @contextmanager
    def confined(self, name: str, *, is_lasting: bool = False, outlives: bool = False) -> Iterator[Confined | None]:
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
        means = self.means
        if means.kind == "none":
            if self.is_required:
                raise NoSandbox(f'{means.why}. The setting sandbox = "required" lets nothing run without one')
            yield None
            return
        private = self._private(name)
        if means.kind == "landlock":
            yield Confined("landlock", self._launcher(private), self._environment(private))
            return
        if is_lasting:
            confined = self._behind_walls(means.program, private, self._protected())
            yield replace(confined, prefix=without_parent(confined.prefix)) if outlives else confined
            return
        with self._closed_walls(means.program, private) as confined:
            yield confined

    def sweep(self) -> None:
        """Take away what a process that died left in the writable folders."""
        for root in self.terms.writable:
            swept(root, self.terms.names)

    @contextmanager
    def _closed_walls(self, program: str, private: Path) -> Iterator[Confined]:
        roots, names = self.terms.writable, self.terms.names
        with closed(roots, names) as placeholders:
            mounts = self._protected()
            mounts += [Mount(path, "read") for path in placeholders]
            # Of what is mounted to be written, only folders of repositories are among them.
            wires = tripwires(roots, names, [mount.path for mount in mounts if mount.kind == "write"])
            walls = self._behind_walls(program, private, mounts)
            confined = replace(walls, stand_ins=tuple(path.name for path in placeholders))
            try:
                yield confined
            finally:
                confined.undone.extend(put_back(wires))

    def _protected(self) -> list[Mount]:
        return [mount for root in self.terms.writable for mount in protected_mounts(root, self.terms.names)]

    def _behind_walls(self, program: str, private: Path, mounts: list[Mount]) -> Confined:
        prefix = bubblewrap_arguments(program, self.terms, private, mounts)
        return Confined("bubblewrap", tuple(prefix), self._environment(Path("/tmp")))  # noqa: S108 - private in there

    def _launcher(self, private: Path) -> tuple[str, ...]:
        terms = {
            "writable": [str(path) for path in (*self.terms.writable, private)],
            # What is around it is found by the launcher: of a large folder that would be too long an argument.
            "hidden": [str(path) for path in self.terms.hidden if is_there(path)],
            "network": self.terms.network,
            "filter": compiled(network=self.terms.network).hex(),
        }
        return sys.executable, "-I", "-S", str(landlock.__file__), json.dumps(terms)

    def _private(self, name: str) -> Path:
        try:
            return private_folder(name)
        except OSError as error:
            raise NoSandbox(f"its folder for temporary files cannot be made: {error}") from error

    def _environment(self, temporary: Path) -> dict[str, str]:
        caches = {variable: str(temporary / ".cache" / folder) for variable, folder in _CACHES}
        return {"TMPDIR": str(temporary), **caches}
