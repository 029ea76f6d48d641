"""The figures as a table for people, as JSON, and as the page docs/performance.md."""

import json
import os
import platform
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from tests.bench.figures import Figure, Spread

__all__ = ["as_line", "describe_worse", "heading", "put_into_page", "store_release", "write_json"]

_BEGIN, _END = "<!-- figures -->\n", "<!-- end of figures -->\n"
_WIDTHS = (46, 22, 22, 8, 10)


def heading() -> str:
    """Of the table that is printed while it grows."""
    return _laid_out(("what", "ours", "reference", "ratio", "target"))


def as_line(figure: Figure) -> str:
    """One figure, for the terminal."""
    return _laid_out(_cells(figure))


def _laid_out(cells: Sequence[str]) -> str:
    return "  ".join(f"{cell:<{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)).rstrip() + "\n"


def _cells(figure: Figure) -> tuple[str, str, str, str, str]:
    sign = ">=" if figure.is_least else "<="
    ratio = f"{figure.value:.2f}" if figure.reference else ""
    target = f"{sign} {figure.target:g}{'' if figure.reference else f' {figure.unit}'.rstrip()}"
    reference = _span(figure.reference, figure.unit) if figure.reference else ""
    return (
        figure.what,
        _span(figure.ours, figure.unit),
        reference,
        ratio,
        f"{target}{'' if figure.is_met else ' !'}",
    )


def _span(spread: Spread, unit: str) -> str:
    median, least, most = (_number(value, unit) for value in (spread.median, spread.least, spread.most))
    return f"{median} {_shown_unit(unit)}".rstrip() + ("" if least == most else f" ({least}-{most})")


def _number(value: float, unit: str) -> str:
    shown = value * 1000 if unit == "s" else value
    return f"{shown:.0f}" if shown >= 100 else f"{shown:.3g}"


def _shown_unit(unit: str) -> str:
    return "ms" if unit == "s" else unit


def write_json(path: Path, figures: Mapping[str, Sequence[Figure]]) -> None:
    """All figures with the machine they were measured on."""
    rows = [
        {"row": row, **asdict(figure), "value": figure.value, "is_met": figure.is_met}
        for row, measured in figures.items()
        for figure in measured
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"machine": _machine(), "figures": rows}, indent=1) + "\n", encoding="utf-8")


_RELEASE = Path(__file__).with_name("release.json")
"""The figures of the last release: the ratio of each, or its value where there is no reference."""
_TOLERATED = 1.1


def store_release(figures: Iterable[Figure]) -> None:
    """Store these figures as those of the last release; what was stored of others stays."""
    kept = _released() | {_key(figure): round(figure.value, 4) for figure in figures}
    _RELEASE.write_text(json.dumps(dict(sorted(kept.items())), indent=1) + "\n", encoding="utf-8")


def describe_worse(figures: Iterable[Figure]) -> list[str]:
    """A line for each figure that is worse than in the last release by more than a tenth."""
    released, lines = _released(), []
    for figure in figures:
        before, now = released.get(_key(figure)), figure.value
        if before is None or before <= 0:
            continue
        change = before / max(now, 1e-9) if figure.is_least else now / before
        if change > _TOLERATED:
            unit = "" if figure.reference else f" {_shown_unit(figure.unit)}"
            old, new = (_number(value, "" if figure.reference else figure.unit) for value in (before, now))
            lines.append(f"{figure.what}: {old}{unit} -> {new}{unit}, {change - 1:.0%} worse\n")
    return lines


def _key(figure: Figure) -> str:
    return f"{figure.what} | {figure.against}".removesuffix(" | ")


def _released() -> dict[str, float]:
    released: dict[str, float] = json.loads(_RELEASE.read_text(encoding="utf-8"))
    return released


def put_into_page(page: Path, figures: Iterable[Figure]) -> None:
    """Replace the table of the page; everything else on it stays."""
    lines = ["| what | ours | reference | ratio | target |", "| --- | --- | --- | --- | --- |"]
    for figure in figures:
        what, ours, reference, ratio, target = _cells(figure)
        against = f"{figure.against}: {reference}" if figure.against else reference
        cells = (what, ours, against, ratio, target.replace(" !", ", missed"))
        lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    machine = ", ".join(f"{name} {value}" for name, value in _machine().items())
    body = f"Measured on: {machine}. Median, in brackets least and most.\n\n" + "\n".join(lines) + "\n"
    text = page.read_text(encoding="utf-8")
    found = re.compile(f"{re.escape(_BEGIN)}.*{re.escape(_END)}", re.DOTALL)
    page.write_text(found.sub(lambda _: f"{_BEGIN}{body}{_END}", text), encoding="utf-8")


def _machine() -> Mapping[str, str]:
    """What matters of the machine, without its name."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3
    return {
        "cores": str(os.cpu_count()),
        "GiB of memory": f"{memory:.0f}",
        "Python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "load": f"{os.getloadavg()[0]:.1f}",
    }
