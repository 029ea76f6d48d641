"""Which answers a question about a call may have: the one table that asking and applying both read."""

from collections.abc import Mapping
from typing import Final

from graph_agent.events import AnswerKind

__all__ = ["fitting_answers"]

_IN_WORDS: Final[tuple[AnswerKind, ...]] = ("answer", "reject")
_BY_STATUS: Final[dict[str, tuple[AnswerKind, ...]]] = {
    "awaiting_approval": ("approve", "edit", "reject"),
    "interrupted": ("retry", "done", "cancel"),
}


def fitting_answers(call: Mapping[str, object]) -> tuple[AnswerKind, ...]:
    """The kinds of answer a `ToolCallInfo` waits for; none where it waits for nothing."""
    if call["status"] == "awaiting_approval" and call.get("wants_answer"):
        return _IN_WORDS
    return _BY_STATUS.get(str(call["status"]), ())
