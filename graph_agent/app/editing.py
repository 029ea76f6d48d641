"""Approves a call with other arguments from any process: judged here, and again when it is applied."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graph_agent.app.answering import Answered, give
from graph_agent.app.waiting import judging, look_up
from graph_agent.errors import AnswerRefused
from graph_agent.ports import Answer, Clock, SystemClock
from graph_agent.toolbox import MCP_PREFIX

__all__ = ["edit_approval"]


async def edit_approval(
    database: Path, text: str, arguments: Mapping[str, Any], *, by: str, clock: Clock | None = None
) -> Answered:
    """Change a waiting call's arguments and approve it with them. The first answer wins.

    Raises:
        UnknownId: no call has this id, or several have.
        AnswerRefused: nobody asks about the call, or it may not run with these arguments; then it stays open.
    """
    clock = clock or SystemClock()
    call = look_up(database, text)
    # A server's tool is known only where its server runs: there it is judged, when the answer is applied.
    if call.view is not None and not call.view.record["tool_name"].startswith(MCP_PREFIX):
        async with judging(database, call, clock) as toolbox:
            plan = await toolbox.plan(call.view.record["tool_name"], arguments, call.scope)
        if plan.verdict in ("unusable", "deny"):
            raise AnswerRefused(f"the arguments were not taken, call {call.call_id!r} still waits: {plan.reason}")
    return await give(database, call.name, Answer("edit", by, clock.now(), arguments))
