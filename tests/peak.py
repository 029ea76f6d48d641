"""The most memory that a program ever held, and nothing of what the process held that started it."""

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["peak_mb"]

_LAUNCHER = """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""A process counts as its own what the one that started it held: one that holds little stands between them."""


def peak_mb(command: Sequence[str], *, env: Mapping[str, str], folder: Path) -> tuple[int, float]:
    """The exit code of a program without input, and its most megabytes; what it prints is dropped."""
    launched = subprocess.run(
        [sys.executable, "-c", _LAUNCHER, *command],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    code, most = map(int, launched.stdout.split())
    return code, most / (1024 if sys.platform.startswith("linux") else 1024 * 1024)
