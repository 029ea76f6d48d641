"""Print the version. A module of its own, because it must load nothing else: scripts ask for the version often."""

import sys

__all__ = ["print_version"]


def print_version() -> int:
    """Print the version on stdout; returns the exit code."""
    from importlib.metadata import version  # slow to load, and no other command needs it

    sys.stdout.write(f"graph-agent {version('graph-agent')}\n")
    return 0
