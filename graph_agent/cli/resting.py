"""How a turn came to rest, and where the chat stands, in words for the person in it. Asks nothing."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from graph_agent.cli.conversation import Conversation
from graph_agent.cli.escape import escape
from graph_agent.cli.views.screen import clipped, text_width
from graph_agent.cli.views.usage import short_usage, usage_text
from graph_agent.session.api import Rest

__all__ = ["FAILED", "Told", "has_fresh_budget", "rest_lines", "status_text"]

FAILED = ("model_error", "failed", "broken_off")
"""Rests after which nothing is sent by itself."""

_WHOLE_ID = 20
_BETWEEN = " · "
_HINTS = {
    "model_error": "The model did not answer; /retry asks it again.",
    "broken_off": "The last turn was broken off before the model answered; /retry asks it again.",
    "stopped": "Stopped.",
    "limit": "Say what to do instead, or let it go on with /retry.",
}
_OF_A_TURN = ("max_steps", "max_tokens", "max_cost")


class Told(NamedTuple):
    """A line and how it is marked."""

    text: str
    style: str


def has_fresh_budget(rest: Rest) -> bool:
    """Whether going on is all that it takes: the turn used up a budget of its own."""
    return rest.status == "limit" and rest.budget in _OF_A_TURN


def rest_lines(rest: Rest, *, was_asked: bool = False) -> Iterator[Told]:
    """What is not plain to see of how a turn ended. What the person `was_asked` about is not told again."""
    if rest.error and not was_asked:
        yield Told(rest.error, "red")
    if hint := _HINTS.get(rest.status):
        yield Told(hint, "yellow")
    if rest.usage.get("total_tokens"):
        count = rest.usage["requests"]
        yield Told(f"{count} {'request' if count == 1 else 'requests'}, {usage_text(rest.usage)}", "dim")


def status_text(session: Conversation, sandbox: str, usage: Mapping[str, Any], width: int = 1000) -> str:
    """The line below the prompt; where it is too wide it loses what matters least, never the thread."""
    # The whole id does not fit beside the model, and what is cut off is the end that the tables show.
    thread = session.thread_id if len(session.thread_id) <= _WHOLE_ID else f"…{session.thread_id[-8:]}"
    used = short_usage(usage).split(_BETWEEN) if usage.get("total_tokens") else []
    model, _, _ = session.model_label.partition(" @ ")
    mode = f"mode {session.mode}"
    ways = (
        (session.model_label, mode, sandbox, *used, f"thread {thread}"),
        (model, mode, sandbox, *used, thread),
        (model, session.mode, sandbox, *used[:1], thread),
        (model, session.mode, *used[:1], thread),
        (session.mode, *used[:1], thread),
        (session.mode, thread),
    )
    lines = [escape(_BETWEEN.join(filter(None, way))) for way in ways]
    return next((line for line in lines if text_width(line) <= width), clipped(thread, width))
