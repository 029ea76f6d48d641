"""Which exit code a rest of the graph ends with."""

from typing import TYPE_CHECKING

from graph_agent.cli.codes import Exit

if TYPE_CHECKING:
    from graph_agent.session.api import Rest, RestStatus

__all__ = ["exit_for"]


_BY_STATUS: "dict[RestStatus, Exit]" = {
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


def exit_for(rest: "Rest") -> Exit:
    """The code for a rest; with questions of both kinds open, recovery wins."""
    if any(item.question.kind == "recovery" for item in rest.questions):
        return Exit.RECOVERY_OPEN
    if rest.unmet:
        return Exit.FAILED
    return Exit.APPROVALS_OPEN if rest.questions else _BY_STATUS[rest.status]
