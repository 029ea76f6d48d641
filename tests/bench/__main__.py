"""`make bench`: print the comparisons as a table and write them to build/bench.json."""

import json
import sys
import tempfile
from pathlib import Path

from tests.bench.many_threads import fill_home
from tests.bench.timing import Comparison, Contest, compare

__all__: list[str] = []

_THREADS = 1_000
_PYTHON = sys.executable
_AGENT = (_PYTHON, "-m", "graph_agent")
_TYPER = (_PYTHON, "-c", "import typer")
_READER = (_PYTHON, "-c", "import sqlite3, json, typer, rich")
_RESULTS = Path("build/bench.json")


def _contests(database: Path) -> tuple[Contest, ...]:
    return (
        Contest("--version / import typer", (*_AGENT, "--version"), _TYPER, 1.5),
        Contest("--help / import typer", (*_AGENT, "--help"), _TYPER, 1.5),
        Contest("threads list / import sqlite3, typer, rich", (*_AGENT, "threads", "list"), _READER, 3),
        Contest("approvals list / the same", (*_AGENT, "approvals", "list"), _READER, 3),
        Contest("calls / the same", (*_AGENT, "calls"), _READER, 3),
        Contest("inspect / the same", (*_AGENT, "inspect", "--db", str(database)), _READER, 3),
    )


def _line(name: str, *cells: str) -> str:
    return f"{name:<44}{''.join(f'{cell:>12}' for cell in cells)}\n"


def _row(result: Comparison) -> str:
    seconds = (f"{result.ours_s * 1000:.0f} ms", f"{result.reference_s * 1000:.0f} ms")
    return _line(result.name, *seconds, f"{result.ratio:.2f}", f"<= {result.target:g}")


def _main() -> None:
    results = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        env = fill_home(home, _THREADS)
        sys.stdout.write(f"{_THREADS} threads in the database; medians\n\n")
        sys.stdout.write(_line("ours / reference", "ours", "reference", "ratio", "target"))
        for contest in _contests(home / "data" / "graph-agent.db"):
            results.append(compare(contest, env))
            sys.stdout.write(_row(results[-1]))
            sys.stdout.flush()
    _RESULTS.parent.mkdir(exist_ok=True)
    rows = [
        {"name": r.name, "ours_s": r.ours_s, "reference_s": r.reference_s, "ratio": r.ratio, "target": r.target}
        for r in results
    ]
    _RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    _main()
