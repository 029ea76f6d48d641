"""`make bench`: print the comparisons as a table and write them to build/bench.json.

python -m tests.bench [--steps N]...     with how many steps a thread is played whose growth is measured; else 1,000
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

from tests.bench.many_threads import fill_home
from tests.bench.storage import Law, contests_on_long_threads, laws
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


def _law(law: Law) -> str:
    return _line(law.name, f"{law.late:.1f}", f"{law.early:.1f}", f"{law.ratio:.2f}", f"<= {law.target:g}")


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, action="append")
    lengths = parser.parse_args().steps or [1_000]
    results, found = [], []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        env = fill_home(home, _THREADS)
        sys.stdout.write(f"{_THREADS} threads in the database; medians\n\n")
        sys.stdout.write(_line("ours / reference", "ours", "reference", "ratio", "target"))
        for contest in _contests(home / "data" / "graph-agent.db"):
            results.append(compare(contest, env))
            sys.stdout.write(_row(results[-1]))
            sys.stdout.flush()
        sys.stdout.write(f"\na thread that grows\n\n{_line('late / early', 'late', 'early', 'ratio', 'target')}")
        for length in lengths:
            for law in laws(_folder(folder, f"steps-{length}"), length):
                found.append(law)
                sys.stdout.write(_law(law))
                sys.stdout.flush()
        for contest in contests_on_long_threads(_folder(folder, "long")):
            results.append(compare(contest, env))
            sys.stdout.write(_row(results[-1]))
            sys.stdout.flush()
    _RESULTS.parent.mkdir(exist_ok=True)
    rows = [
        {"name": r.name, "ours_s": r.ours_s, "reference_s": r.reference_s, "ratio": r.ratio, "target": r.target}
        for r in results
    ]
    rows += [
        {"name": one.name, "late": one.late, "early": one.early, "ratio": one.ratio, "target": one.target}
        for one in found
    ]
    _RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _folder(root: str, name: str) -> Path:
    made = Path(root) / name
    made.mkdir()
    return made


if __name__ == "__main__":
    _main()
