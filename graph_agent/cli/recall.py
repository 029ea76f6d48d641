"""The end of a conversation as it stands on disk, shown when a thread is taken up again. Reads only."""

from pathlib import Path

from graph_agent.cli.views.counting import counted
from graph_agent.cli.views.messages import message_lines
from graph_agent.inspect import Reader

__all__ = ["recent_lines"]

_TURNS, _MESSAGES = 2, 200


def recent_lines(database: Path, thread_id: str) -> list[str]:
    """The last turns with their tool results, as lines safe to print."""
    with Reader.open(database) as reader:
        recent = reader.recent(thread_id, _MESSAGES, turns=_TURNS)
    lines = [line for entry in recent.entries for line in message_lines(entry.role, entry.body, full=False)]
    if not recent.earlier:
        return lines
    return [f"… {counted(recent.earlier, 'earlier message')}: /inspect or `graph-agent threads show`", *lines]
