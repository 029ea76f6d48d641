"""A chat in a pseudo-terminal, driven like a person would: wait for words, type, look at the bytes."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pexpect

__all__ = ["PtyChat"]

_ROOT = Path(__file__).parents[3]


class PtyChat:
    """One run of the scripted chat program."""

    def __init__(self, scenario: str, folder: Path, **environment: str) -> None:
        self._log = folder / "log.json"
        self.elsewhere = folder / "elsewhere.json"
        command = ["-m", "tests.fakes.chat_program", scenario, str(self._log), str(self.elsewhere)]
        variables = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40", **environment}
        self._child: pexpect.spawn[str] = pexpect.spawn(
            sys.executable,
            command,
            cwd=str(_ROOT),
            env=variables,
            dimensions=(40, 100),
            encoding="utf-8",
            timeout=20,
        )
        self._sink = _Sink()
        self._child.logfile_read = self._sink

    @property
    def output(self) -> str:
        """Every character the program wrote until now."""
        return self._sink.text

    def signals(self, number: int) -> None:
        self._child.kill(number)

    def sees(self, words: str) -> None:
        """Wait until these very words appear."""
        self._child.expect_exact(words)

    def types(self, keys: str) -> None:
        self._child.send(keys)

    def enters(self, line: str) -> None:
        self._child.send(f"{line}\r")

    def ends(self) -> int:
        """Wait for the end; returns the exit code."""
        self._child.expect(pexpect.EOF)
        self._child.close()
        code: int | None = self._child.exitstatus
        return -1 if code is None else code

    def log(self) -> list[list[Any]]:
        """What the session was asked, without the closing."""
        entries: list[list[Any]] = json.loads(self._log.read_text())
        return [entry for entry in entries if entry != ["close"]]


class _Sink:
    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass
