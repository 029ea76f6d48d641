"""`python -m tests.soak`: run the soak once and print one line, with the folder and the broken promises if any."""

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

from tests.soak.soak import soak

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description="Soak one thread.")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--kills", type=int, default=12)
    seed = random.randrange(2**32)
    parser.add_argument("--seed", type=int, default=seed, help="repeat a soak, except for its timing")
    options = parser.parse_args()
    root = Path(tempfile.mkdtemp(prefix="soak-"))
    result = soak(root / "world", steps=options.steps, kills=options.kills, seed=options.seed)
    print("\n  ".join([str(result), *result.broken, *([f"in {root}"] if result.broken else [])]))  # noqa: T201 - a report
    if not result.broken:
        shutil.rmtree(root)
    sys.exit(1 if result.broken else 0)
