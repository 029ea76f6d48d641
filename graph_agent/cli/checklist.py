"""The plan of the work as a checklist: plain lines, escaped already. Knows neither terminal nor thread."""

from collections.abc import Mapping, Sequence
from typing import Any

from graph_agent.cli.escape import escape

__all__ = ["checklist"]

_MARKS = {"completed": "[x]", "in_progress": "[>]"}


def checklist(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """One line a step: done, under way, or still to do."""
    return [escape(f"{_MARKS.get(item.get('status', ''), '[ ]')} {item.get('content', '')}") for item in items]
