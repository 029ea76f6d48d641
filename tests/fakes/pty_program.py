"""A program in a pseudo-terminal, driven like a person would: wait for words, type, look at the screen."""

import fcntl
import os
import pty
import subprocess
import sys
import termios
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path

import pexpect
from pexpect.fdpexpect import fdspawn

from tests.fakes.forked_command import ForkedProcess, Start, is_forkable, start
from tests.fakes.screen import Screen

__all__ = ["PtyProgram"]

_ROWS, _COLUMNS = 40, 100
_LOOK_S = 0.05
_REACTION_S = 0.05
"""The time a person takes to look and to type."""
_TIMEOUT_S = 60
"""For machines that are busy, or stand still for a while; what has its own limit is measured by its test."""


class PtyProgram:
    """One run of a Python program with these arguments; a module is forked where everything is loaded already.

    With a size it learns its size from the terminal alone, which may be resized.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        cwd: Path,
        environment: Mapping[str, str],
        size: tuple[int, int] | None = None,
        command: str = sys.executable,
        *,
        is_cold: bool = False,
    ) -> None:
        """Start it; cold is how a person starts it, for what is about starting."""
        columns, rows = size or (_COLUMNS, _ROWS)
        variables = {**os.environ, "TERM": "xterm-256color", "LINES": str(rows), "COLUMNS": str(columns)}
        variables |= environment
        if size is not None:
            del variables["LINES"], variables["COLUMNS"]
        self._master, terminal = pty.openpty()
        termios.tcsetwinsize(self._master, (rows, columns))
        is_module = (command, *arguments[:1]) == (sys.executable, "-m")
        if is_module and not is_cold and is_forkable(variables):
            self._process: _Process = _fork(arguments, cwd, variables, terminal)
        else:
            self._process = _spawn([command, *arguments], cwd, variables, terminal)
        os.close(terminal)
        self._kill = weakref.finalize(self, _kill, self._process)
        self._close = weakref.finalize(self, os.close, self._master)
        self._child = fdspawn(self._master, encoding="utf-8", timeout=_TIMEOUT_S)
        self._sink = _Sink(Screen(columns, rows))
        self._child.logfile_read = self._sink

    @property
    def output(self) -> str:
        """Every character the program wrote until now."""
        return self._sink.text

    @property
    def pid(self) -> int:
        """Its process."""
        return self._process.pid

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
        termios.tcsetwinsize(self._master, (rows, columns))

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
        self._child.send(keys)

    def types(self, keys: str) -> None:
        time.sleep(_REACTION_S)
        self._child.send(keys)

    def enters(self, line: str) -> None:
        self.types(f"{line}\r")

    def signals(self, number: int) -> None:
        self._process.send_signal(number)

    def hangs_up(self) -> None:
        """Close the terminal, as a lost connection does, and wait for the end: nothing else tells the program."""
        self._close()
        self._process.wait(_TIMEOUT_S)

    def ends(self) -> int:
        """Wait for the end; returns the exit code, or the negative signal that killed it."""
        deadline = time.monotonic() + _TIMEOUT_S
        has_ended = False
        # What it left behind may hold the terminal open.
        while self._child.expect_exact([pexpect.EOF, pexpect.TIMEOUT], timeout=_LOOK_S) and not has_ended:
            assert time.monotonic() < deadline, f"it does not end:\n{self.output[-2000:]}"
            has_ended = self._process.poll() is not None
        code = self._process.wait(_TIMEOUT_S)
        self._close()
        return code

    def _read(self) -> None:
        """Take in what the program has written."""
        self._child.expect_exact([pexpect.TIMEOUT, pexpect.EOF], timeout=_LOOK_S)


_Process = ForkedProcess | subprocess.Popen[bytes]


def _fork(arguments: Sequence[str], cwd: Path, environment: Mapping[str, str], terminal: int) -> ForkedProcess:
    asked = Start(arguments[2:], cwd, environment, module=arguments[1], is_on_terminal=True)
    return start(asked, [terminal] * 3)


def _spawn(
    command: Sequence[str], cwd: Path, environment: Mapping[str, str], terminal: int
) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command,
        cwd=cwd,
        env=environment,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - one system call
    )


def _kill(process: _Process) -> None:
    process.kill()
    process.wait(_TIMEOUT_S)


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
