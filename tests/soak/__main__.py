"""`python -m tests.soak`: see tests.soak.soak."""

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

from tests.soak.soak import soak


def main(arguments: list[str]) -> int:
    """Soak once and print one line; where a promise was broken, what, and the folder to look at."""
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Soak one thread.")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument(
        "--seed", type=int, default=random.randrange(2**32), help="repeat a soak, but for its timing"
    )
    options = parser.parse_args(arguments)
    root = Path(tempfile.mkdtemp(prefix="soak-"))
    result = soak(root / "world", steps=options.steps, kills=options.kills, seed=options.seed)
    print(result)  # noqa: T201 - a report
    for line in result.broken:
        print(f"  {line}")  # noqa: T201 - a report
    if result.broken:
        print(f"  in {root}")  # noqa: T201 - a report
        return 1
    shutil.rmtree(root)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
