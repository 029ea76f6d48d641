"""The scripted chat program in a pseudo-terminal."""

import json
from pathlib import Path
from typing import Any

from tests.fakes.pty_program import PtyProgram

__all__ = ["PtyChat"]

_ROOT = Path(__file__).parents[2]


class PtyChat(PtyProgram):
    """One run of a scenario of `tests.fakes.chat_program`."""

    def __init__(self, scenario: str, folder: Path, **environment: str) -> None:
        self._log = folder / "log.json"
        arguments = ["-m", "tests.fakes.chat_program", scenario, str(self._log)]
        super().__init__(arguments, _ROOT, environment)

    def log(self) -> list[list[Any]]:
        """What the session was asked, without the closing."""
        entries: list[list[Any]] = json.loads(self._log.read_text())
        return [entry for entry in entries if entry != ["close"]]
