"""Allows a waiting call and its like always, from any process; lists nothing and runs nothing.

What is allowed is exact rules, stored in one step with the answer: where another answer stands, none is.
"""

from pathlib import Path

from graph_agent.app.answering import Answered, give
from graph_agent.app.waiting import judging, look_up
from graph_agent.errors import AnswerRefused
from graph_agent.ports import Always, Answer, Clock, GrantScope, SystemClock
from graph_agent.session.reviewing import with_grant

__all__ = ["allow_always"]


async def allow_always(
    database: Path, text: str, scope: GrantScope, *, by: str, clock: Clock | None = None
) -> tuple[Answered, Always]:
    """Approve a call, and what is exactly like it from now on; returns the answer that stands and the rules.

    Raises:
        UnknownId: no call has this id, or several have.
        AnswerRefused: nobody asks about the call, or no rule can be made of it; then it stays open.
    """
    clock = clock or SystemClock()
    call = look_up(database, text)
    answer = Answer("approve", by, clock.now())
    if call.view is None:
        return await give(database, call.name, answer), Always(scope, ())
    record = call.view.record
    async with judging(database, call, clock) as toolbox:
        proposal = await toolbox.propose(record["tool_name"], record["arguments"], call.scope)
    if not proposal.rules:
        raise AnswerRefused(
            f"call {call.call_id!r} cannot be allowed always, it still waits: {proposal.objection} "
            "Approve it once, without --always."
        )
    always = Always(scope, proposal.rules, proposal.place)
    granted = with_grant(answer, always, call.call_id, call.scope, str(call.workspace))
    return await give(database, call.name, granted), always
