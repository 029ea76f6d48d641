"""Whether list, transcript and ledger of a thread say what its checkpoints say. Looks only; mends nothing.

The tables are derived from checkpoints and journal, and every command reads them: what disagrees here is shown
wrongly there. Older messages and calls than those of the head's state are held against the journal and each other.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graph_agent.errors import DamagedDatabase
from graph_agent.inspect.connection import ReadOnlyDatabase
from graph_agent.inspect.state import CheckpointState, of_a_shape, read_state
from graph_agent.inspect.threads import TranscriptEntry, read_transcript

__all__ = ["checkpointed_threads", "inconsistencies"]

_NEWEST = "SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ''"
_LISTED = "SELECT checkpoint_id, next_nodes, outcome, turns FROM threads WHERE thread_id = ?"
_IS_BEHIND = """
WITH RECURSIVE line (id) AS (
    SELECT :newest UNION SELECT c.parent_checkpoint_id FROM line JOIN checkpoints c
    ON c.thread_id = :thread_id AND c.checkpoint_ns = '' AND c.checkpoint_id = line.id)
SELECT 1 FROM line WHERE id = :head
"""
_STANDS = "SELECT 1 FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"
_LEDGER = "SELECT call_id, status, record, left_behind FROM ledger WHERE thread_id = ?"
_ONLY_IN_JOURNAL = """
SELECT DISTINCT call_id FROM journal j WHERE thread_id = ?
    AND NOT EXISTS (SELECT 1 FROM ledger l WHERE l.thread_id = j.thread_id AND l.call_id = j.call_id)
"""
_FINAL = ("success", "error", "cancelled")


def checkpointed_threads(database: ReadOnlyDatabase) -> list[str]:
    """Every thread that has a checkpoint, the one that was stored last first."""
    rows = database.rows(
        "SELECT thread_id FROM checkpoints WHERE checkpoint_ns = '' GROUP BY thread_id ORDER BY max(rowid) DESC"
    )
    return [thread_id for (thread_id,) in rows]


def inconsistencies(database: ReadOnlyDatabase, thread_id: str) -> list[str]:
    """What the tables of a thread with checkpoints say otherwise than these, a phrase each; empty: they agree."""
    with database.snapshot():
        try:
            with of_a_shape("its head"):
                return list(_found(database, thread_id))
        except DamagedDatabase as error:
            return [str(error)]


def _found(database: ReadOnlyDatabase, thread_id: str) -> Iterator[str]:
    listed = database.rows(_LISTED, (thread_id,))
    if not listed:
        yield "it is missing in the list of threads"
        return
    [(head, next_nodes, outcome, turns)] = listed
    newest = str(database.rows(_NEWEST, (thread_id,))[0][0])
    if _is_wrong_head(database, thread_id, head, newest):
        yield f"its head is {head or 'none'}, and the newest checkpoint {newest}"
        return
    state = read_state(database, thread_id, head, is_head=True)
    if {task.node for task in state.tasks} != set(_json(next_nodes, [])):
        yield "what runs next is told otherwise"
    if outcome != _outcome(state):
        yield "how its last turn ended is told otherwise"
    shown = read_transcript(database, thread_id)
    if turns != sum(entry.role == "user" for entry in shown):
        yield "its turns are counted otherwise"
    yield from _about_messages(state, shown)
    yield from _about_calls(database, state, shown)


def _is_wrong_head(database: ReadOnlyDatabase, thread_id: str, head: str | None, newest: str) -> bool:
    if head == newest:
        return False
    if head is None or not database.rows(_STANDS, (thread_id, head)):
        return True
    # Ids follow the clock, which may have been set back: then the head is on no line of the highest id.
    return bool(database.rows(_IS_BEHIND, {"thread_id": thread_id, "newest": newest, "head": head}))


def _about_messages(state: CheckpointState, shown: Sequence[TranscriptEntry]) -> Iterator[str]:
    contents = {entry.message_id: entry.body.get("content") for entry in shown}
    messages = [message for message in state.values.get("messages") or () if message.get("id")]
    missing = [message["id"] for message in messages if message["id"] not in contents]
    if missing:
        yield f"{len(missing)} of its {len(messages)} messages are missing in the transcript"
    if any(_differs(message.get("content"), contents.get(message["id"])) for message in messages):
        yield "a message reads otherwise in the transcript"


def _differs(stored: Any, shown: Any) -> bool:
    """Compared where both are text; half a character is not stored as it is."""
    return isinstance(stored, str) and isinstance(shown, str) and _bytes(stored) != _bytes(shown)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _about_calls(
    database: ReadOnlyDatabase, state: CheckpointState, shown: Sequence[TranscriptEntry]
) -> Iterator[str]:
    held: Mapping[str, Any] = state.values.get("calls") or {}
    call_log = {row[0]: row[1:] for row in database.rows(_LEDGER, (state.thread_id,))}
    # The calls of the newest message enter the ledger with the step after it; the journal of a fork knows of them.
    asked, newest = _asked(shown[:-1]), _asked(shown[-1:])
    unlisted = {row[0] for row in database.rows(_ONLY_IN_JOURNAL, (state.thread_id,))}
    missing = sorted((asked | held.keys() | (unlisted - newest)) - call_log.keys())
    if missing:
        yield f"{len(missing)} calls are missing in the ledger: {', '.join(missing[:3])}"
    for call_id, record in held.items():
        if call_id in call_log and _told(call_log[call_id]) != (record.get("status"), record.get("attempt", 1)):
            yield f"call {call_id} is {record.get('status')}, and {call_log[call_id][0]} in the ledger"
    for call_id, (status, _, is_left_behind) in call_log.items():
        if status not in _FINAL and not is_left_behind and call_id not in held:
            yield f"call {call_id} is {status} in the ledger, and nothing waits for it"


def _asked(entries: Sequence[TranscriptEntry]) -> set[str]:
    return {str(call.get("id")) for entry in entries for call in entry.body.get("tool_calls") or ()}


def _told(row: tuple[Any, ...]) -> tuple[Any, Any]:
    status, record, _ = row
    known = _json(record, {})
    same = known.get("status") == status
    return (status, known.get("attempt", 1)) if same else (f"{status}, with a record that says otherwise", 0)


def _outcome(state: CheckpointState) -> str:
    turn = state.values.get("turn")
    ended = turn.get("outcome") if isinstance(turn, Mapping) else None
    return ended if isinstance(ended, str) else ""


def _json(text: str, otherwise: Any) -> Any:
    try:
        return json.loads(text)
    except (ValueError, TypeError):
        return otherwise
