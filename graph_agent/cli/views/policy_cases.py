"""`policy test`: labelled cases and how they were decided, as lines and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import typer

from graph_agent.app.policy_cases import Score, Scored, score_file
from graph_agent.cli.escape import escape
from graph_agent.cli.views.screen import print_json, print_lines
from graph_agent.cli.views.table import table

__all__ = ["decide_cases"]


def decide_cases(file: str, *, as_json: bool) -> None:
    """Print every case that was decided otherwise than labelled, and the sums; exit 1 when one was looser.

    Raises:
        UsageError: the file cannot be read, or a line is no case.
    """
    scored, score = score_file(Path(file))
    if as_json:
        print_json({"cases": [asdict(one) for one in scored], "score": asdict(score)})
    else:
        print_lines(list(map(escape, _differences(scored))))
        print_lines(table(("FAMILY", "RIGHT", "STRICTER", "LOOSER"), _rows(score)))
    if score.looser:
        raise typer.Exit(1)


def _differences(scored: Sequence[Scored]) -> Iterator[str]:
    for one in scored:
        if not one.is_right:
            word = "LOOSER" if one.is_looser else "stricter"
            yield f"{word}: {one.id}: {one.decision}, expected {one.expected}; {one.rule}: {one.reason}"


def _rows(score: Score) -> list[tuple[str, ...]]:
    rows = [
        (name, *(str(counts[kind]) for kind in ("right", "stricter", "looser")))
        for name, counts in score.families.items()
    ]
    return [*rows, ("all", str(score.right), str(score.stricter), str(score.looser))]
