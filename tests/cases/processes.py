"""Which processes of this machine run with given words on their command line."""

import os
from pathlib import Path

__all__ = ["running_with"]


def running_with(words: str) -> list[int]:
    """The ids of living processes whose command line holds the words, this one not among them."""
    others = [entry for entry in Path("/proc").iterdir() if entry.name.isdigit() and entry.name != str(os.getpid())]
    return [int(entry.name) for entry in others if words in _command_line(entry)]


def _command_line(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
    except OSError:
        return ""
