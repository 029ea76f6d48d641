"""Which sub-agent is that of a call, and what they did since a checkpoint of their parent. Changes nothing.

A sub-agent that was at work at the checkpoint goes back to where it stood then; one that began later to its own
beginning, where it asks for nothing, and its call gets another.
"""

from dataclasses import dataclass, replace

from graph_agent.calls import FINAL
from graph_agent.ports import Done, Journal
from graph_agent.ports.descent import child_id
from graph_agent.session.open_calls import open_calls
from graph_agent.session.parts import SessionParts
from graph_agent.session.run import Position

__all__ = ["Since", "attempts_undone", "since"]


@dataclass(frozen=True, slots=True)
class Since:
    """What one thread did since it stood somewhere."""

    thread_id: str
    checkpoint_id: str
    """Where that was; empty for a sub-agent that never stood anywhere."""
    head: str
    done: tuple[Done, ...]
    delegated: frozenset[str] = frozenset()
    """Calls that sub-agents worked on: what those did stands by itself."""


async def since(thread_id: str, there: Position, parts: SessionParts) -> list[Since]:
    """What a thread and its sub-agents did since a checkpoint of it; itself first, parents before their own."""
    settled = _settled_calls(there)
    rows = await parts.rewinds.done_since(thread_id, there.created_at)
    done = tuple(one for one in rows if one.call_id not in settled)
    children = [item for item in await parts.rewinds.sub_agents(thread_id) if item[1] not in settled]
    delegated = frozenset(call_id for _, call_id in children)
    found = [Since(thread_id, there.checkpoint_id, await parts.head(thread_id), done, delegated)]
    begun_since = {one.call_id for one in done}
    for child, call_id in children:
        if await _was_at_work(child, (thread_id, call_id), there, parts.journal):
            run = parts.run.of(child)
            place = await run.position_at(there.created_at)
            found += await since(child, place, replace(parts, run=run)) if place.exists else []
        elif call_id in begun_since:
            found += await _whole(child, parts)
    return found


async def attempts_undone(journal: Journal, thread_id: str, call_id: str) -> int:
    """The newest attempt at a call that a rewind undid before the oldest that counts; 0 where there is none.

    An attempt undone after one that counts was that sub-agent's, too.
    """
    kept = [row.attempt for row in await journal.rows(thread_id, call_id) if row.may_have_begun]
    undone = [row.attempt for row in await journal.undone(thread_id, [call_id])]
    return max((attempt for attempt in undone if not kept or attempt < kept[0]), default=0)


async def _was_at_work(child: str, of: tuple[str, str], there: Position, journal: Journal) -> bool:
    thread_id, call_id = of
    if call_id not in open_calls(there.values):
        return False
    rows = await journal.rows(thread_id, call_id)
    before = [row for row in rows if row.may_have_begun and row.started_at < there.created_at]
    if not before or any(row.is_finished for row in before):
        return False
    return child == child_id(thread_id, call_id, await attempts_undone(journal, thread_id, call_id))


async def _whole(thread_id: str, parts: SessionParts) -> list[Since]:
    done = tuple(await parts.rewinds.done_since(thread_id, ""))
    children = await parts.rewinds.sub_agents(thread_id)
    delegated = frozenset(call_id for _, call_id in children)
    beginning = (await parts.run.of(thread_id).position_at("")).checkpoint_id
    own = Since(thread_id, beginning, await parts.head(thread_id), done, delegated)
    return [own, *[one for child, _ in children for one in await _whole(child, parts)]]


def _settled_calls(there: Position) -> set[str]:
    """Calls that had their end at the checkpoint."""
    messages = there.values.get("messages") or []
    records = there.values.get("calls") or {}
    answered = {str(message.tool_call_id) for message in messages if message.type == "tool"}
    return answered | {call_id for call_id, call in records.items() if call["status"] in FINAL}
