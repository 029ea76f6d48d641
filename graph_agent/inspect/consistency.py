"""Compares the list entry, transcript and call log of a thread with its checkpoints. Repairs nothing.

The tables are derived from checkpoints and journal, and every command reads them: a difference found here is shown
wrongly there. Messages and calls older than the head's state are compared with the journal and with each other.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from graph_agent.calls import FINAL
from graph_agent.errors import DamagedDatabase
from graph_agent.inspect.state import CheckpointState, expect_stored_shape, read_state
from graph_agent.ports.read_store import ReadStore, TranscriptEntry

__all__ = ["inconsistencies"]


def inconsistencies(store: ReadStore, thread_id: str) -> list[str]:
    """What the tables of a thread with checkpoints say differently from these, a phrase each; empty: nothing."""
    with store.snapshot():
        try:
            with expect_stored_shape("its head"):
                return list(_differences(store, thread_id))
        except DamagedDatabase as error:
            return [str(error)]


def _differences(store: ReadStore, thread_id: str) -> Iterator[str]:
    listed = store.head(thread_id)
    if listed is None:
        yield "it is missing in the list of threads"
        return
    yield from store.missing_rows(thread_id)
    damaged = store.damaged_checkpoints(thread_id)
    if damaged:
        first = next(iter(damaged))
        yield f"{len(damaged)} of its checkpoints are damaged, the first one {first}: {damaged[first]}"
    head = listed.checkpoint_id
    newest = store.newest_checkpoint(thread_id)
    if head is None or _is_wrong_head(store, thread_id, head, newest):
        yield f"its head is {head or 'none'}, but the newest checkpoint is {newest or 'missing'}"
        return
    state = read_state(store, thread_id, head, is_head=True)
    if {task.node for task in state.tasks} != set(listed.next_nodes):
        yield "the list of threads has different next nodes"
    if listed.outcome != _outcome(state):
        yield "the list of threads has a different outcome of its last turn"
    shown = list(store.messages(thread_id))
    if listed.turns != sum(entry.role == "user" for entry in shown):
        yield "the list of threads has a different number of turns"
    yield from _about_messages(state, shown)
    yield from _about_calls(store, state, shown)


def _is_wrong_head(store: ReadStore, thread_id: str, head: str, newest: str) -> bool:
    if head == newest:
        return False
    if store.checkpoint(thread_id, head) is None:
        return True
    # Ids follow the clock, which may have been set back: then the head is no ancestor of the highest id.
    return any(stored.id == head for stored in store.ancestors(thread_id, newest))


def _about_messages(state: CheckpointState, shown: Sequence[TranscriptEntry]) -> Iterator[str]:
    contents = {entry.message_id: entry.body.get("content") for entry in shown}
    messages = [message for message in state.values.get("messages") or () if message.get("id")]
    missing = [message["id"] for message in messages if message["id"] not in contents]
    if missing:
        yield f"{len(missing)} of its {len(messages)} messages are missing in the transcript"
    if any(_differ(message.get("content"), contents.get(message["id"])) for message in messages):
        yield "a message differs from the transcript"


def _differ(stored: Any, shown: Any) -> bool:
    """Compared where both are text; half a surrogate pair is stored as a question mark."""
    if not (isinstance(stored, str) and isinstance(shown, str)):
        return False
    return stored.encode("utf-8", "replace") != shown.encode("utf-8", "replace")


def _about_calls(store: ReadStore, state: CheckpointState, shown: Sequence[TranscriptEntry]) -> Iterator[str]:
    held: Mapping[str, Any] = state.values.get("calls") or {}
    logged = store.logged_calls(state.thread_id)
    # The calls of the newest message enter the call log with the next step; the journal of a fork has them already.
    asked, newest = _asked(shown[:-1]), _asked(shown[-1:])
    missing = sorted(
        (asked | held.keys() | (store.calls_only_in_journal(state.thread_id) - newest)) - logged.keys()
    )
    if missing:
        yield f"{len(missing)} calls are missing in the call log: {', '.join(missing[:3])}"
    for call_id, record in held.items():
        if call_id not in logged:
            continue
        status, known, _ = logged[call_id]
        if known.get("status") != status:
            yield f"call {call_id} is {record.get('status')}, and {status} in the call log, whose record differs"
        elif (status, known.get("attempt", 1)) != (record.get("status"), record.get("attempt", 1)):
            yield f"call {call_id} is {record.get('status')}, and {status} in the call log"
    for call_id, (status, _, is_abandoned) in logged.items():
        if status not in FINAL and not is_abandoned and call_id not in held:
            yield f"call {call_id} is {status} in the call log, and nothing waits for it"


def _asked(entries: Sequence[TranscriptEntry]) -> set[str]:
    return {str(call.get("id")) for entry in entries for call in entry.body.get("tool_calls") or ()}


def _outcome(state: CheckpointState) -> str:
    turn = state.values.get("turn")
    ended = turn.get("outcome") if isinstance(turn, Mapping) else None
    return ended if isinstance(ended, str) else ""
