"""What a message names with `@`, as the model is to be told of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from graph_agent.ports.toolbox import Scope

__all__ = ["NO_MENTIONS", "Mentioned", "Mentions"]


@dataclass(frozen=True, slots=True)
class Mentioned:
    """A message with what it names."""

    text: str
    """As it was typed, with the contents behind it."""
    images: Sequence[Mapping[str, Any]] = ()
    """References `{"blob", "media_type"}`."""
    notes: Sequence[str] = ()
    """What was not put in, a sentence each, for the user."""


class Mentions(Protocol):
    """Reads what messages name."""

    async def told(self, text: str, scope: Scope) -> Mentioned:
        """The message with the files it names, as far as they may be read unasked."""
        ...


class _NoMentions:
    async def told(self, text: str, scope: Scope) -> Mentioned:  # noqa: ARG002 - port
        return Mentioned(text)


NO_MENTIONS: Mentions = _NoMentions()
"""Where a message is nothing but its words."""
