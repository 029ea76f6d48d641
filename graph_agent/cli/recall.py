"""The end of a conversation as it stands on disk, shown when a thread is taken up again. Reads only."""

from pathlib import Path

from graph_agent.cli.views.messages import message_lines
from graph_agent.inspect import Reader, TranscriptEntry

__all__ = ["recent_lines"]

_TURNS = 2


def recent_lines(database: Path, thread_id: str) -> list[str]:
    """The last turns with their tool results, as lines safe to print."""
    with Reader.open(database) as reader:
        transcript = [entry for entry in reader.transcript(thread_id) if entry.role != "system"]
    shown = _last_turns(transcript)
    lines = [line for entry in shown for line in message_lines(entry.role, entry.body, full=False)]
    hidden = len(transcript) - len(shown)
    return [f"… {hidden} earlier messages: /inspect or `graph-agent threads show`", *lines] if hidden else lines


def _last_turns(transcript: list[TranscriptEntry]) -> list[TranscriptEntry]:
    starts = [number for number, entry in enumerate(transcript) if entry.role in ("user", "human")]
    return transcript[starts[-_TURNS] :] if len(starts) >= _TURNS else transcript
