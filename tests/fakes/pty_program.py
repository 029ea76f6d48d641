"""A program in a pseudo-terminal, driven like a person would: wait for words, type, look at the screen."""

import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pexpect

from tests.fakes.screen import Screen

__all__ = ["PtyProgram"]

_ROWS, _COLUMNS = 40, 100
_LOOK_S = 0.05
_TIMEOUT_S = 60
"""For machines that are busy, or stand still for a while; what has its own limit is measured by its test."""


class PtyProgram:
    """One run of a Python program with these arguments.

    With a size it learns its size from the terminal alone, which may be resized.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        size: tuple[int, int] | None = None,
        command: str = sys.executable,
    ) -> None:
        columns, rows = size or (_COLUMNS, _ROWS)
        variables = {**os.environ, "TERM": "xterm-256color", "LINES": str(rows), "COLUMNS": str(columns)}
        variables |= environment
        if size is not None:
            del variables["LINES"], variables["COLUMNS"]
        self._child: pexpect.spawn[str] = pexpect.spawn(
            command,
            list(arguments),
            cwd=str(cwd),
            env=variables,
            dimensions=(rows, columns),
            encoding="utf-8",
            timeout=_TIMEOUT_S,
        )
        self._sink = _Sink(Screen(columns, rows))
        self._child.logfile_read = self._sink

    @property
    def output(self) -> str:
        """Every character the program wrote until now."""
        return self._sink.text

    @property
    def pid(self) -> int:
        """Its process."""
        return int(self._child.pid or 0)

    @property
    def screen(self) -> Screen:
        """The terminal as it looks after all that was read until now."""
        return self._sink.screen()

    def shows(self, *fragments: str, hides: Sequence[str] = ()) -> list[str]:
        """Wait until the lines of the terminal hold each of these texts and none of the others; returns them.

        Raises:
            AssertionError: they do not in time; it shows the lines.
        """
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            self._read()
            lines = self.screen.lines
            text = "\n".join(lines)
            if all(one in text for one in fragments) and not any(one in text for one in hides):
                return lines
            assert time.monotonic() < deadline, f"{fragments} without {hides}:\n{text}"

    def resizes(self, columns: int, rows: int) -> None:
        """Change the size of the terminal."""
        self._read()
        self._sink.resize(columns, rows)
        self._child.setwinsize(rows, columns)

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

    def _read(self) -> None:
        """Take in what the program has written."""
        self._child.expect_exact([pexpect.TIMEOUT, pexpect.EOF], timeout=_LOOK_S)


class _Sink:
    """What was read, and the screen that shows it: it is drawn when somebody looks."""

    def __init__(self, screen: Screen) -> None:
        self.text = ""
        self._screen = screen
        self._drawn = 0

    def screen(self) -> Screen:
        self._screen.feed(self.text[self._drawn :])
        self._drawn = len(self.text)
        return self._screen

    def resize(self, columns: int, rows: int) -> None:
        self.screen().resize(columns, rows)

    def write(self, text: str) -> None:
        self.text += text

    def flush(self) -> None:
        pass
