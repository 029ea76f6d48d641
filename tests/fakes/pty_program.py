"""A program in a pseudo-terminal, driven like a person would: wait for words, type, look at the bytes."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pexpect

__all__ = ["PtyProgram"]

_ROWS, _COLUMNS = 40, 100
_TIMEOUT_S = 60
"""For machines that are busy, or stand still for a while; what has its own limit is measured by its test."""


class PtyProgram:
    """One run of a Python program with these arguments."""

    def __init__(self, arguments: Sequence[str], cwd: Path, environment: Mapping[str, str]) -> None:
        variables = {**os.environ, "TERM": "xterm-256color", "LINES": str(_ROWS), "COLUMNS": str(_COLUMNS)}
        self._child: pexpect.spawn[str] = pexpect.spawn(
            sys.executable,
            list(arguments),
            cwd=str(cwd),
            env={**variables, **environment},
            dimensions=(_ROWS, _COLUMNS),
            encoding="utf-8",
            timeout=_TIMEOUT_S,
        )
        self._sink = _Sink()
        self._child.logfile_read = self._sink

    @property
    def output(self) -> str:
        """Every character the program wrote until now."""
        return self._sink.text

    @property
    def pid(self) -> int:
        """Its process."""
        return int(self._child.pid or 0)

    def sees(self, words: str) -> None:
        """Wait until these very words appear after what was seen before."""
        self._child.expect_exact(words)

    def plays(self, *steps: str) -> None:
        """Take these steps: one that begins with `<` is entered, with `^` typed; any other is waited for."""
        for step in steps:
            match step[:1]:
                case "<":
                    self.enters(step[1:])
                case "^":
                    self.types(step[1:])
                case _:
                    self.sees(step)

    def sees_one_of(self, *words: str) -> int:
        """Wait until one of these appears; returns which."""
        return int(self._child.expect_exact(list(words)))

    def types_at_once(self, keys: str) -> None:
        """Without the moment that a person takes, for what is timed."""
        self._child.delaybeforesend = None
        self._child.send(keys)

    def types(self, keys: str) -> None:
        self._child.send(keys)

    def enters(self, line: str) -> None:
        self._child.send(f"{line}\r")

    def signals(self, number: int) -> None:
        self._child.kill(number)

    def hangs_up(self) -> None:
        """Close the terminal, as a lost connection does, and wait for the end: nothing else tells the program."""
        child: Any = self._child
        child.ptyproc.fileobj.close()
        child.wait()

    def ends(self) -> int:
        """Wait for the end; returns the exit code, or the negative signal that killed it."""
        self._child.expect(pexpect.EOF)
        self._child.close()
        code: int | None = self._child.exitstatus
        return -int(self._child.signalstatus or 0) if code is None else code


class _Sink:
    def __init__(self) -> None:
        self.text = ""

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass
