"""`python -m docs._generate`, called by `make docs`: write the generated pages of this checkout."""

import sys
from pathlib import Path

from docs._generate.pages import write_pages

__all__: list[str] = []

if __name__ == "__main__":
    changed = write_pages(Path(__file__).resolve().parents[2])
    sys.stdout.write("\n".join(f"wrote {path}" for path in changed) or "generated pages are up to date")
    sys.stdout.write("\n")
