"""One thing that `doctor` looked at. Knows nothing of what it is."""

from dataclasses import dataclass

__all__ = ["Check"]


@dataclass(frozen=True, slots=True)
class Check:
    """What was found."""

    name: str
    ok: bool
    detail: str
    hint: str = ""
    """What to do; empty where nothing is to be done."""
    matters: bool = True
    """Whether the agent cannot do its work without it."""
