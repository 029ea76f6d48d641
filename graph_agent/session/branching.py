"""Going on from an older checkpoint: a new branch of the thread, on which nothing that has run runs again.

Knows the calls of a state and their rows in the journal; what is asked and run afterwards is decided elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graph_agent.calls import FINAL
from graph_agent.errors import UnknownId
from graph_agent.ports import Journal
from graph_agent.session.parts import SessionParts

__all__ = ["Earlier", "found_earlier", "go_back"]


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
    there = await parts.run.position(checkpoint_id)
    if not there.exists:
        raise UnknownId(
            f"thread {thread_id!r} has no checkpoint {checkpoint_id!r} (any more); `graph-agent inspect`"
        )
    await parts.decisions.supersede(thread_id, _open_calls(there.values), parts.clock.now())
    await parts.run.branch(checkpoint_id)


async def found_earlier(thread_id: str, values: Mapping[str, Any], journal: Journal) -> Earlier:
    """What the journal knows of the calls that a state holds as open, or does not know yet."""
    rows = {call_id: await journal.rows(thread_id, call_id) for call_id in _open_calls(values)}
    undone = await journal.undone(thread_id, list(rows)) if rows else []
    # What a rewind undid without knowing what it had changed may have left its effect behind.
    lasting = {row.call_id for row in undone if row.may_have_begun and row.intent is None}
    begun = {call_id for call_id, found in rows.items() if any(row.may_have_begun for row in found)}
    return Earlier(
        frozenset(call_id for call_id, found in rows.items() if any(row.is_finished for row in found)),
        frozenset(begun | lasting),
        {row.call_id: row.attempt for row in undone},
    )


def _open_calls(values: Mapping[str, Any]) -> list[str]:
    """The calls of the newest model message without an end, those that have no record yet among them."""
    records = values.get("calls") or {}
    messages = values.get("messages") or []
    newest = messages[-1].tool_calls if messages and messages[-1].type == "ai" else []
    still_open = [call_id for call_id, call in records.items() if call["status"] not in FINAL]
    return [*still_open, *(str(call["id"]) for call in newest if call["id"] not in records)]
