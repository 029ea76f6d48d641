"""What the graph needs for reads that begin while a reply still streams in."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from graph_agent.ports.model import Delta
from graph_agent.ports.toolbox import Scope

__all__ = ["NOTHING_EARLY", "EarlyReads"]


class EarlyReads(Protocol):
    """Reads ahead of their calls. What was read is kept in memory, until the toolbox runs the very same call.

    Nothing of it shows: no record, no event, no note of what was read, unless the call itself runs.
    """

    def begin(self, scope: Scope) -> None:
        """A reply is asked for; whatever is left of an earlier one is dropped."""
        ...

    def arrive(self, delta: Delta) -> None:
        """Take in a piece of the reply; a call that is whole, and one of those that may, begins."""
        ...

    def settle(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """The reply is whole and holds these calls, by name and arguments; what is not among them is dropped."""
        ...


class _NothingEarly:
    def begin(self, scope: Scope) -> None:
        """Nothing will be read."""

    def arrive(self, delta: Delta) -> None:
        """Nothing is read."""

    def settle(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> None:
        """Nothing was read."""


NOTHING_EARLY: EarlyReads = _NothingEarly()
"""Every call waits until it is marked."""
