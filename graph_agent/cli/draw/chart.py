"""What is drawn: the nodes of a graph in their order, and the ways between them. Knows nothing of drawing."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

__all__ = ["Chart", "ChartEdge", "ChartNode", "Walked", "chart_of", "counted"]


@dataclass(frozen=True, slots=True)
class Walked:
    """Where a thread went."""

    nodes: Mapping[str, int]
    """How often each node ran."""
    edges: Mapping[tuple[str, str], int]
    """How often control went from one node to another."""
    live: Sequence[str] = ()
    """What has to run next; the end where nothing has."""


@dataclass(frozen=True, slots=True)
class ChartNode:
    """A node."""

    name: str
    is_end: bool = False
    """Whether it is where turns begin or end, and not a node that runs."""
    visits: int | None = None
    """How often it ran; None where nobody counted."""
    is_live: bool = False
    """Whether it is what has to run next, or where the thread rests."""


@dataclass(frozen=True, slots=True)
class ChartEdge:
    """All ways from one node to another: two outcomes that lead to the same node are one line."""

    source: str
    target: str
    outcomes: tuple[str, ...] = ()
    visits: int | None = None

    @property
    def label(self) -> str:
        """What stands at the line."""
        return " ".join(filter(None, ("/".join(self.outcomes), counted(self.visits))))


@dataclass(frozen=True, slots=True)
class Chart:
    """A graph to be drawn from top to bottom, in the order of its nodes."""

    nodes: tuple[ChartNode, ...]
    edges: tuple[ChartEdge, ...]


def chart_of(
    ways: Iterable[tuple[str, str, str]],
    ends: tuple[str, str],
    walked: Walked | None = None,
) -> Chart:
    """The chart of a table of (source, outcome, target), with what was walked on it and the ways that it lacks.

    The nodes stand as they first appear as a source, between the two ends.
    """
    table = list(ways)
    outcomes: dict[tuple[str, str], list[str]] = {}
    for source, outcome, target in table:
        outcomes.setdefault((source, target), []).append(outcome)
    for way in walked.edges if walked else ():
        outcomes.setdefault(way, [])
    first, last = ends
    seen = [*(source for source, _, _ in table), *(name for way in outcomes for name in way)]
    names = [first, *(name for name in dict.fromkeys(seen) if name not in ends), last]
    return Chart(
        tuple(_node(name, name in ends, walked) for name in names),
        tuple(
            ChartEdge(*way, tuple(said), None if walked is None else walked.edges.get(way, 0))
            for way, said in outcomes.items()
        ),
    )


def _node(name: str, is_end: bool, walked: Walked | None) -> ChartNode:
    if walked is None:
        return ChartNode(name, is_end)
    visits = None if is_end else walked.nodes.get(name, 0)
    return ChartNode(name, is_end, visits, name in walked.live)


def counted(visits: int | None) -> str:
    """How a count is written; nothing where nobody counted."""
    return "" if visits is None else f"×{visits}"
