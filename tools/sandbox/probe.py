"""Finds out which means there are on this machine: by starting them, once in the life of a process."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from tools.programs import find_program
from tools.sandbox.bubblewrap import WALLS
from tools.sandbox.landlock import landlock_abi
from tools.sandbox.seccomp import is_known_machine

__all__ = ["Means", "probed"]

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
