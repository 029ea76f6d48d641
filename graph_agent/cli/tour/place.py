"""The throwaway folder of a demo: a small shop to work on, and a home that knows no settings, keys or threads.

Knows nothing of the commands that run in it.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
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
_NAMED = "graph-agent-demo-"
_HELD = "held"
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


@contextlib.contextmanager
def made_place(*, is_kept: bool) -> Iterator[Place]:
    """A place for one demo; it is gone afterwards, however the demo ends, unless it is kept.

    What a demo left that was killed itself goes with the next one.

    Raises:
        UsageError: no temporary folder can be made.
    """
    _clear_away()
    try:
        place = Place(Path(tempfile.mkdtemp(prefix=_NAMED)).resolve())
        held = None if is_kept else _hold(place.folder)
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
        if held is not None:
            shutil.rmtree(place.folder, ignore_errors=True)
            os.close(held)


def _hold(folder: Path) -> int:
    """Keep the folder from being cleared away for as long as this process lives."""
    beginning = folder / f"{_HELD}.new"
    descriptor = os.open(beginning, os.O_CREAT | os.O_RDWR, 0o600)
    with contextlib.suppress(OSError):  # Where nothing can be held, nothing is taken for abandoned either.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    beginning.rename(folder / _HELD)
    return descriptor


def _clear_away() -> None:
    for folder in Path(tempfile.gettempdir()).glob(f"{_NAMED}*"):
        with contextlib.suppress(OSError):
            if _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _is_abandoned(folder: Path) -> bool:
    """Whether it is of a demo of this user that lives no more; a folder that is to be kept has nothing to hold."""
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        return False
    descriptor = os.open(folder / _HELD, os.O_RDWR | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True
