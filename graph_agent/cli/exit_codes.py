"""The exit codes of the command line and their meanings. Help prints them, so this module imports nothing else."""

from collections.abc import Mapping
from enum import IntEnum

__all__ = ["MEANINGS", "ExitCode"]


class ExitCode(IntEnum):
    """The exit codes that scripts can rely on."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    APPROVALS_PENDING = 3
    RECOVERY_PENDING = 4
    LIMIT = 5
    MODEL = 6
    HELD = 7
    HANGUP = 129
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS: Mapping[ExitCode, str] = {
    ExitCode.DONE: "done",
    ExitCode.FAILED: "failed",
    ExitCode.USAGE: "wrong usage or settings",
    ExitCode.APPROVALS_PENDING: "paused: approvals are pending",
    ExitCode.RECOVERY_PENDING: "paused: interrupted calls need a decision",
    ExitCode.LIMIT: "a limit was reached",
    ExitCode.MODEL: "the model or its provider failed",
    ExitCode.HELD: "another process holds the thread",
    ExitCode.HANGUP: "ended by SIGHUP",
    ExitCode.INTERRUPTED: "stopped by Ctrl-C",
    ExitCode.TERMINATED: "ended by SIGTERM",
}
"""The meaning of each, as help and docs print it."""
