"""The throwaway folder of a demo: a small shop to work on, and a home that knows no settings, keys or threads.

Knows nothing of the commands that run in it.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from graph_agent.errors import UsageError

__all__ = ["CHARGES", "SCRIPT", "Place", "made_place"]

CHARGES = "charges.txt"
"""What the command leaves behind: a line for each time the customer was charged."""
SCRIPT = "charge.sh"
_PRINTED = "card charged, waiting for the bank"
_FILES: Mapping[str, str] = {
    "order.txt": "order 17\nstatus: open\ntotal: 12.40\n",
    SCRIPT: f"""\
echo "order 17: 12.40" >> {CHARGES}
echo "{_PRINTED}"
sleep 5
echo "the bank said yes"
""",
}
_FOREIGN = ("GRAPH_AGENT_", "OPENAI_")
"""Variables of these names would bring the user's own model, mode or database into the demo."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one demo takes place."""

    folder: Path

    @property
    def workspace(self) -> Path:
        """The folder its commands work in."""
        return self.folder / "shop"

    @property
    def home(self) -> Path:
        """Where its settings would be, and its database is."""
        return self.folder / "home"

    @property
    def environment(self) -> dict[str, str]:
        """What its commands run with: this home, none of the user's settings, temporary files that go with it."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
        return {**kept, "GRAPH_AGENT_HOME": str(self.home), "TMPDIR": str(self.folder / "tmp")}

    def is_in_the_middle(self) -> bool:
        """Whether the command has charged and said so, and has not ended yet: both are in files by then."""
        spools = self.home.rglob("*.out")
        return (self.workspace / CHARGES).exists() and any(_PRINTED.encode() in one.read_bytes() for one in spools)


@contextmanager
def made_place(*, is_kept: bool) -> Iterator[Place]:
    """A place for one demo; it is gone afterwards, however the demo ends, unless it is kept.

    Raises:
        UsageError: no temporary folder can be made.
    """
    try:
        place = Place(Path(tempfile.mkdtemp(prefix="graph-agent-demo-")).resolve())
        place.workspace.mkdir()
        (place.folder / "tmp").mkdir()
        for name, text in _FILES.items():
            (place.workspace / name).write_text(text, encoding="utf-8")
    except OSError as failure:
        raise UsageError(
            f"the demo needs a temporary folder and cannot have one ({failure}); name another place with TMPDIR"
        ) from failure
    try:
        yield place
    finally:
        if not is_kept:
            shutil.rmtree(place.folder, ignore_errors=True)
