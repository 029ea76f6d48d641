"""What every kind of line of input is typed with. Values only."""

from collections.abc import Callable
from dataclasses import dataclass

from prompt_toolkit.history import History
from prompt_toolkit.input import Input

from graph_agent.cli.ask.unfinished import Unfinished

__all__ = ["Lines"]


@dataclass(frozen=True, slots=True)
class Lines:
    """The keyboard of one terminal."""

    source: Input
    suspend: Callable[[], None]
    """Stops this job until the shell takes it up again."""
    history: History
    unfinished: Unfinished
