"""`make bench`: print the comparisons as a table and write them to build/bench.json.

python -m tests.bench [--only NAME]... [--quick] [--page] [--release]
"""

import argparse
import compileall
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from tests.bench import starting, steps, storage, terminal, tool_work
from tests.bench.figures import Figure, Row
from tests.bench.ground import Ground
from tests.bench.report import as_line, describe_worse, heading, put_into_page, store_release, write_json

__all__: list[str] = []

_ROWS: Sequence[Row] = (*starting.ROWS, *steps.ROWS, *storage.ROWS, *terminal.ROWS, *tool_work.ROWS)
_RESULTS = Path("build/bench.json")
_PAGE = Path("docs/performance.md")
_CODE = ("graph_agent", "policy", "tools", "tests/bench", "tests/fakes")


def _main() -> None:
    options = _options()
    chosen = [row for row in _ROWS if not options.only or row.name in options.only]
    figures: dict[str, list[Figure]] = {}
    failed: list[str] = []
    _compile()
    sys.stdout.write(heading())
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        ground = Ground(Path(folder).resolve(), options.quick)
        for row in chosen:
            try:
                for figure in row.measure(ground):
                    figures.setdefault(row.name, []).append(figure)
                    sys.stdout.write(as_line(figure))
                    sys.stdout.flush()
            except Exception:  # noqa: BLE001 - one row that cannot be measured must not cost all the others
                failed.append(row.name)
                sys.stdout.write(f"{row.name} could not be measured:\n{traceback.format_exc(limit=-3)}\n")
    write_json(_RESULTS, figures)
    measured = [figure for row in figures.values() for figure in row]
    if options.page:
        put_into_page(_PAGE, measured)
    if options.release:
        store_release(measured)
    elif worse := describe_worse(measured):
        sys.stdout.write(f"\nWorse than in the last release by more than a tenth:\n{''.join(worse)}\n")
    if failed:
        sys.exit(f"not measured: {', '.join(failed)}; the others are in {_RESULTS}")
    sys.stdout.write(f"written to {_RESULTS}{f' and {_PAGE}' if options.page else ''}\n")


def _compile() -> None:
    """Leave bytecode as an installation does: where Python keeps none, each start would make it anew."""
    for folder in _CODE:
        compileall.compile_dir(folder, quiet=1)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench", description="Times the program against plain references on this machine."
    )
    names = [row.name for row in _ROWS]
    parser.add_argument("--only", action="append", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--quick", action="store_true", help="see that the rows work; nothing to quote")
    parser.add_argument("--page", action="store_true", help="put the table into docs/performance.md")
    parser.add_argument("--release", action="store_true", help="store the figures as those of this release")
    return parser.parse_args()


if __name__ == "__main__":
    _main()
