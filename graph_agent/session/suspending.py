"""Waits for a run that starts nothing new, and breaks it off where that takes too long. Knows no signal."""

import asyncio
from typing import TYPE_CHECKING

from graph_agent.errors import AgentError
from graph_agent.session.run import GraphRun

if TYPE_CHECKING:
    from graph_agent.session.api import Rest

__all__ = ["ended_or_broken_off"]

_GRACE_S = 5.0
"""How long a running call may go on before it is stopped."""


async def ended_or_broken_off(task: "asyncio.Task[Rest]", run: GraphRun) -> None:
    """Return once the task is done: after a grace by force, at once where no more than a request is under way."""
    _, running = await asyncio.wait({task}, timeout=0 if await _only_asks(run) else _GRACE_S)
    if running:
        task.cancel()
        await asyncio.wait({task})


async def _only_asks(run: GraphRun) -> bool:
    """Whether it waits for the model alone, which is asked again in the next life."""
    try:
        return (await run.position()).waits_for_model
    except AgentError:
        return False  # The run itself meets the same and says so.
