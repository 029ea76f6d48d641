"""The exit codes of the command line, and which one a rest of the graph ends with."""

from enum import IntEnum

from graph_agent.session.api import Rest, RestStatus

__all__ = ["Exit", "exit_for"]


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


_BY_STATUS: dict[RestStatus, Exit] = {
    "done": Exit.DONE,
    "awaiting_approval": Exit.APPROVALS_OPEN,
    "interrupted": Exit.RECOVERY_OPEN,
    "limit": Exit.LIMIT,
    "model_error": Exit.MODEL,
    "held": Exit.HELD,
    "stopped": Exit.INTERRUPTED,
    "broken_off": Exit.FAILED,
    "failed": Exit.FAILED,
}


def exit_for(rest: Rest) -> Exit:
    """The code for a rest; with questions of both kinds open, recovery wins."""
    if any(item.question.kind == "recovery" for item in rest.questions):
        return Exit.RECOVERY_OPEN
    return Exit.APPROVALS_OPEN if rest.questions else _BY_STATUS[rest.status]
