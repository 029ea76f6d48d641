"""Going on from an older checkpoint: a new branch of the thread, on which nothing that has run runs again.

Knows the calls of a state and their rows in the journal; what is asked and run afterwards is decided elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graph_agent.errors import UnknownId, UsageError
from graph_agent.ports import Journal
from graph_agent.session.open_calls import is_unjudged, open_calls
from graph_agent.session.parts import SessionParts
from graph_agent.session.run import Position

__all__ = ["Earlier", "found_earlier", "go_back", "judge_anew", "no_checkpoint"]

_BEFORE_CALLS = frozenset(("__start__", "reasoning", "tool_routing"))
"""Nodes that may be open while none of the newest calls has been judged."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """Open calls of which the journal knows more than the state."""

    recorded: frozenset[str] = frozenset()
    """They have their result."""
    begun: frozenset[str] = frozenset()
    """They may have had an effect."""
    undone: Mapping[str, int] = field(default_factory=dict)
    """The newest attempt at each that a rewind undid: its number is taken."""


async def go_back(thread_id: str, checkpoint_id: str, parts: SessionParts) -> None:
    """Make an older checkpoint of a held thread its head; killed on the way, it is simply done again.

    Answers about calls that are open there are taken back first: an approval is never used twice.

    Raises:
        UnknownId: the thread has no such checkpoint.
    """
    if checkpoint_id == await parts.head(thread_id):
        return
    there = await _known_beginning(thread_id, await parts.run.position(checkpoint_id), parts)
    if not there.exists:
        raise no_checkpoint(thread_id, checkpoint_id)
    await parts.decisions.supersede(thread_id, open_calls(there.values), parts.clock.now())
    await parts.run.branch(there.checkpoint_id)


def no_checkpoint(thread_id: str, checkpoint_id: str) -> UnknownId:
    """The error for a checkpoint that was never there, or was pruned."""
    return UnknownId(
        f"thread {thread_id!r} has no checkpoint {checkpoint_id!r} (any more); "
        f"`graph-agent history {thread_id}` lists those it has"
    )


async def judge_anew(thread_id: str, parts: SessionParts) -> None:
    """Let what is open at the head of a held thread be judged and asked from the start, if it came out of a file.

    Raises:
        UsageError: the thread says nowhere how these calls were asked for.
    """
    head = await parts.run.position()
    if head.at_rest or not await parts.is_imported(thread_id, head.checkpoint_id):
        return
    there = await _known_beginning(thread_id, head, parts)
    await parts.decisions.supersede(thread_id, open_calls(head.values), parts.clock.now())
    # Also where that is the head itself: what was stored of the step after it does not come along.
    await parts.run.branch(there.checkpoint_id)


async def _known_beginning(thread_id: str, there: Position, parts: SessionParts) -> Position:
    """The checkpoint itself; of one that came out of a file the last before any of its open calls was let through.

    Its records are somebody else's word. Taken up before there were any, the calls are judged by the rules here.
    """
    start = there.checkpoint_id
    while there.exists and await parts.is_imported(thread_id, there.checkpoint_id):
        if there.at_rest or (set(there.open_nodes) <= _BEFORE_CALLS and is_unjudged(there.values)):
            return there
        there = await parts.run.position(there.parent_id) if there.parent_id else Position(exists=False)
    if not there.exists and start:
        raise UsageError(
            f"checkpoint {start!r} of thread {thread_id!r} came out of a file that does not say how its open calls "
            f"were asked for; go on from one before them: `graph-agent history {thread_id}` lists them"
        )
    return there


async def found_earlier(thread_id: str, values: Mapping[str, Any], journal: Journal) -> Earlier:
    """What the journal knows of the calls that a state holds as open, or does not know yet."""
    rows = {call_id: await journal.rows(thread_id, call_id) for call_id in open_calls(values)}
    undone = await journal.undone(thread_id, list(rows)) if rows else []
    # What a rewind undid without knowing what it had changed may have left its effect behind.
    lasting = {row.call_id for row in undone if row.may_have_begun and row.intent is None}
    begun = {call_id for call_id, found in rows.items() if any(row.may_have_begun for row in found)}
    return Earlier(
        frozenset(call_id for call_id, found in rows.items() if any(row.is_finished for row in found)),
        frozenset(begun | lasting),
        {row.call_id: row.attempt for row in undone},
    )
