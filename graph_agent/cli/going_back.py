"""`/rewind` in the chat: shows what it takes, asks, and carries it out on a thread that nobody holds meanwhile."""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from graph_agent.cli.views.rewinds import survey_lines, tell_rewind
from graph_agent.cli.views.screen import print_lines
from graph_agent.errors import UsageError
from graph_agent.ports import RewindScope

if TYPE_CHECKING:
    from graph_agent.app.rewinding import Order

__all__ = ["order_of", "rewind_here"]

_SCOPES: dict[str, RewindScope] = {"--files-only": "files", "--chat-only": "chat"}
_OPTIONS = frozenset(("--undo", "--force", "--dry-run", *_SCOPES))


def order_of(wish: str, thread_id: str) -> "Order":
    """What was typed, as an order about this thread.

    Raises:
        UsageError: it is not to be understood.
    """
    from graph_agent.app.rewinding import Order

    words = wish.split()
    options = [word for word in words if word.startswith("--")]
    places = [word for word in words if not word.startswith("--")]
    unknown = [option for option in options if option not in _OPTIONS]
    scopes = [_SCOPES[option] for option in options if option in _SCOPES]
    is_undo = "--undo" in options
    if unknown or len(scopes) > 1 or len(places) != (not is_undo):
        raise UsageError(
            "/rewind takes a CHECKPOINT, or --undo in place of one, and then --files-only or --chat-only, --force, "
            "--dry-run; /history lists the checkpoints"
        )
    return Order(
        thread_id if is_undo else f"{thread_id}:{places[0]}",  # never a checkpoint of another thread
        scope=scopes[0] if scopes else "both",
        is_undo=is_undo,
        is_dry="--dry-run" in options,
        is_forced="--force" in options,
    )


async def rewind_here(database: Path, order: "Order", agrees: Callable[[], Awaitable[bool]]) -> None:
    """Carry it out once the person agrees, who sees first what it takes. Fails as `rewind` does."""
    from graph_agent.app.rewinding import rewind

    seen = await rewind(database, replace(order, is_dry=True), lambda _: False)
    is_stopped = bool(seen.survey.conflicts) and not order.is_forced
    done, was_shown = seen, False
    if not (order.is_dry or is_stopped):
        print_lines(survey_lines(seen.survey))
        was_shown = True
        if await agrees():
            done = await rewind(database, order, lambda _: True)
    with suppress(typer.Exit):
        tell_rewind(done, is_dry=order.is_dry, as_json=False, was_shown=was_shown)
