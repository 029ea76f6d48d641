"""The conversation of a thread, as the append-only transcript holds it."""

from dataclasses import dataclass
from typing import Any

from graph_agent.inspect.database import ReadOnlyDatabase
from graph_agent.inspect.ledger import load_json

__all__ = ["TranscriptEntry", "read_transcript"]


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One message."""

    seq: int
    """1, 2, 3 … per thread over all branches."""
    branch: int
    message_id: str
    role: str
    """system, user, assistant, tool."""
    body: dict[str, Any]
    """content, and where they apply: tool_calls, tool_call_id, status, usage."""
    checkpoint_id: str
    """First checkpoint whose state holds the message."""
    at: str


def read_transcript(database: ReadOnlyDatabase, thread_id: str) -> list[TranscriptEntry]:
    """Every message of the thread in order, those of abandoned branches too."""
    rows = database.rows(
        """SELECT seq, branch, message_id, role, body, checkpoint_id, at FROM transcript
        WHERE thread_id = ? ORDER BY seq""",
        (thread_id,),
    )
    return [
        TranscriptEntry(seq, branch, message_id, role, load_json(body), checkpoint_id, at)
        for seq, branch, message_id, role, body, checkpoint_id, at in rows
    ]
