"""One line about a compaction."""

from graph_agent.events import Compacted

__all__ = ["compacted_line"]

_HOW = {
    "references": "old results as references",
    "summary": "summed up by the model",
    "outline": "summed up without a model",
}


def compacted_line(event: Compacted) -> str:
    """How far the conversation that the model is told shrank, and how."""
    return f"compacted: {event.tokens_before:,} -> {event.tokens_after:,} tokens ({_HOW[event.how]})"
