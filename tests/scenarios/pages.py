"""Follows a page of the docs: types what its console blocks type, and sets what comes beside what they show."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from docs._generate.recording import normalize

__all__ = ["Follower", "steps_of"]

_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_STEP = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
_TAIL = re.compile(r"(?<![0-9a-f])[0-9a-f-]*([0-9a-f]{8})\b")


def steps_of(page: str) -> list[tuple[str, str]]:
    """Each command of the page's console blocks with what it printed."""
    return [(step[1], step[2]) for block in _BLOCK.findall(page) for step in _STEP.finditer(block)]


@dataclass
class Follower:
    """One reader of one page; ids that were made up for the page stand for those that come in their place."""

    type_in: Callable[[str], str]
    """Runs a command line; what it prints."""
    _shown: str = ""
    _came: str = ""
    _ids: dict[str, str] = field(default_factory=dict)

    def follow(self, steps: list[tuple[str, str]]) -> tuple[str, str]:
        """All that the page shows, and all that came, without what differs from run to run."""
        for command, shown in steps:
            typed = self._with_own_ids(command)
            came = self.type_in(typed)
            self._ids |= dict(zip(_tails(shown), _tails(came), strict=False))
            self._shown += f"$ {command}\n{shown}"
            self._came += f"$ {typed}\n{came}"
        return normalize(self._shown), normalize(self._came)

    def _with_own_ids(self, command: str) -> str:
        for theirs, ours in self._ids.items():
            command = command.replace(theirs, ours)
        return command


def _tails(text: str) -> Iterator[str]:
    return iter(dict.fromkeys(_TAIL.findall(text)))
