"""The scripted chat program in a pseudo-terminal."""

import json
import shlex
import sys
from pathlib import Path
from typing import Any

from tests.fakes.pty_program import PtyProgram

__all__ = ["PtyChat"]

_ROOT = Path(__file__).parents[2]


class PtyChat(PtyProgram):
    """One run of a scenario of `tests.fakes.chat_program`."""

    def __init__(
        self, scenario: str, folder: Path, size: tuple[int, int] | None = None, **environment: str
    ) -> None:
        self._log = folder / "log.json"
        arguments = ["-m", "tests.fakes.chat_program", scenario, str(self._log)]
        super().__init__(arguments, _ROOT, environment, size)

    @staticmethod
    def command_line(scenario: str, log: Path) -> str:
        """The same program as a line for a shell."""
        return shlex.join([sys.executable, "-m", "tests.fakes.chat_program", scenario, str(log)])

    def log(self) -> list[list[Any]]:
        """What the session was asked, without the closing."""
        entries: list[list[Any]] = json.loads(self._log.read_text())
        return [entry for entry in entries if entry != ["close"]]
