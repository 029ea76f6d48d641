"""The exit codes of the command line. Light: help is printed without what a run needs."""

from collections.abc import Mapping
from enum import IntEnum

__all__ = ["MEANING", "Exit"]


class Exit(IntEnum):
    """What scripts may rely on."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    APPROVALS_OPEN = 3
    RECOVERY_OPEN = 4
    LIMIT = 5
    MODEL = 6
    HELD = 7
    HANGUP = 129
    INTERRUPTED = 130
    TERMINATED = 143


MEANING: Mapping[Exit, str] = {
    Exit.DONE: "done",
    Exit.FAILED: "failed",
    Exit.USAGE: "wrong usage or settings",
    Exit.APPROVALS_OPEN: "paused: approvals are pending",
    Exit.RECOVERY_OPEN: "paused: interrupted calls need a decision",
    Exit.LIMIT: "a limit was reached",
    Exit.MODEL: "the model or its provider failed",
    Exit.HELD: "another process holds the thread",
    Exit.HANGUP: "ended by SIGHUP",
    Exit.INTERRUPTED: "stopped by Ctrl-C",
    Exit.TERMINATED: "ended by SIGTERM",
}
"""What each says, as help and docs print it."""
