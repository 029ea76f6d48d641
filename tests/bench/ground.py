"""The ground the rows are measured on: folders, a home with many threads, a tree of many files, each made once."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tests.bench.many_threads import fill_home
from tests.fakes.openai_server import FakeOpenAI

__all__ = ["Ground", "home_of"]

_THREADS = 1_000
_FILES_PER_FOLDER = 100
_LINES = b"def value(number):\n    return number * 2\n# a line of text that says nothing at all\n" * 12
_NEEDLE = b"the needle stands here\n"


@dataclass(frozen=True)
class Ground:
    """Where everything is made; it goes when the run is over."""

    folder: Path
    quick: bool = False
    """Fewer repetitions, shorter threads, fewer files: to see that the rows work, not to quote."""

    @property
    def runs(self) -> int:
        """How often each of a pair is timed."""
        return 3 if self.quick else 9

    @property
    def files(self) -> int:
        """How many files the tree has."""
        return 20_000 if self.quick else 100_000

    def fresh(self, name: str) -> Path:
        """A new folder."""
        number = sum(1 for made in self.folder.iterdir() if made.name.startswith(f"{name}-"))
        made = self.folder / f"{name}-{number}"
        made.mkdir()
        return made

    @cached_property
    def crowd(self) -> Mapping[str, str]:
        """Environment of a home with many threads."""
        return fill_home(self.folder / "crowd", _THREADS)

    @cached_property
    def tree(self) -> Path:
        """A repository of many files, an ignored folder beside them; every thousandth file holds `the needle`."""
        root = self.folder / "tree"
        (root / ".git").mkdir(parents=True)
        (root / ".gitignore").write_text("*.log\nbuild/\n/dist\n", encoding="utf-8")
        (root / "build").mkdir()
        (root / "build" / "made.py").write_bytes(_NEEDLE)
        for number in range(self.files // _FILES_PER_FOLDER):
            below = root / f"package{number // 10:03}" / f"module{number % 10}"
            below.mkdir(parents=True)
            for place in range(_FILES_PER_FOLDER):
                holds = (number * _FILES_PER_FOLDER + place) % 1000 == 0
                ending = "py" if place % 10 else "ts"
                (below / f"file{place:02}.{ending}").write_bytes(_LINES + (_NEEDLE if holds else b""))
        return root


def home_of(folder: Path, server: FakeOpenAI | None = None) -> Mapping[str, str]:
    """The environment of a home of its own, with the scripted server as its endpoint."""
    bare = dict.fromkeys(("OPENAI_API_KEY", "OPENAI_BASE_URL", "GRAPH_AGENT_BASE_URL"), "")
    environment = {**os.environ, **bare, "GRAPH_AGENT_HOME": str(folder / "home")}
    if server is None:
        return environment
    return {**environment, "OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "any", "GRAPH_AGENT_MODEL": "fake"}
