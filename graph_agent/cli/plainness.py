"""Whether this terminal is written to plainly: nothing is drawn anew, every line is written once."""

import os
from collections.abc import Mapping

__all__ = ["is_plain", "moves_cursor"]

_DUMB = ("dumb", "unknown")


def is_plain(environment: Mapping[str, str] | None = None) -> bool:
    """GRAPH_AGENT_PLAIN asks for it, as screen readers need it; a dumb terminal can do nothing else."""
    known = os.environ if environment is None else environment
    return known.get("GRAPH_AGENT_PLAIN", "") not in ("", "0") or not moves_cursor(known)


def moves_cursor(environment: Mapping[str, str] | None = None) -> bool:
    """Whether the terminal understands sequences at all."""
    known = os.environ if environment is None else environment
    return known.get("TERM", "").lower() not in _DUMB
