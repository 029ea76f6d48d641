"""What `doctor` says: of one thing that it looked at, and of one that it mends. Knows nothing of what they are."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Check", "Said"]


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


@dataclass(frozen=True, slots=True)
class Said:
    """What a step says."""

    step: str
    stage: Literal["will", "done", "left"]
    """`left`: it could not be done, and why."""
    text: str
