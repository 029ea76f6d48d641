import random
import re
import subprocess
from pathlib import Path

import pytest

from policy.shell.shell_text import parse_shell
from tools.shell_ops.bash_parser import parse_bash

_WORDS = (
    "a", "b", "c", "git", "rm", "X=1", "if", "then", "fi", "time", "[[", "]]", "in", "case", "do", "done",
    "'x y'",
)  # fmt: skip
_SIGNS = (
    "&&", "||", "2>&1", ">/dev/null", "&>", ">>", "<<", "<<<", "$(", "<(", ">&", "|&", ";;", "\\\n", "  ", "0",
)  # fmt: skip
_CHARACTERS = " \t\n\\'\";|&#<>()${}`~*?[]!=^%@,:/-1é\x0b\r"
_PIECES = (*_WORDS, *_SIGNS, *_CHARACTERS)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")


class _Stubs:
    """Programs that write down how they were called, on a path of their own."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "log"
        self._bin = folder / "bin"
        self.work = folder / "work"
        self._bin.mkdir()
        self.work.mkdir()
        for name in ("a", "b", "c", "git", "rm"):
            stub = self._bin / name
            # One write per call: neighbours in a pipeline write at the same time.
            stub.write_text(
                f'#!/bin/sh\nline=$(printf "%s\\037" "${{0##*/}}" "$@"; printf "\\036")\n'
                f'printf "%s" "$line" >> {self._log}\n'
            )
            stub.chmod(0o755)

    def calls_by_bash(self, text: str) -> list[tuple[str, ...]]:
        self._log.write_text("")
        subprocess.run(
            ["/bin/bash", "--noprofile", "--norc", "-c", f"{text}\nwait"],
            cwd=self.work,
            env={"PATH": str(self._bin), "HOME": "/nonexistent"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=10,
            check=False,
        )
        calls = self._log.read_text().split("\x1e")[:-1]
        return [tuple(call.split("\x1f")[:-1]) for call in calls]

    def files_written(self) -> set[str]:
        """Names of the files that the last text left; they are removed."""
        paths = list(self.work.iterdir())
        for path in paths:
            path.unlink()
        return {path.name for path in paths}


def _without_assignments(words: tuple[str, ...]) -> tuple[str, ...]:
    start = next((index for index, word in enumerate(words) if not _ASSIGNMENT.match(word)), len(words))
    return words[start:]


def _surprises(stubs: _Stubs, seed: int, clear_texts: int) -> list[str]:
    chance = random.Random(seed)
    surprises: list[str] = []
    checked = 0
    while checked < clear_texts:
        text = "".join(chance.choice(_PIECES) for _ in range(chance.randint(2, 12)))
        found = parse_shell(text, parse_bash)
        # A name a pattern stands for depends on the files there are.
        if found.unclear_reason or not found.commands or any(one.patterns for one in found.commands):
            continue
        checked += 1
        foreseen = {form for one in found.commands for form in (one.words, _without_assignments(one.words))}
        ran = set(stubs.calls_by_bash(text))
        written = stubs.files_written()
        if not ran <= foreseen or not written <= set(found.written):
            surprises.append(f"{text!r} ran {sorted(ran - foreseen)}, not {sorted(foreseen)}, and wrote {written}")
    return surprises


@pytest.mark.slow
def test_bash_runs_nothing_that_a_clear_text_did_not_show(tmp_path: Path) -> None:
    assert _surprises(_Stubs(tmp_path), seed=1, clear_texts=150) == []


@pytest.mark.sweep
@pytest.mark.timeout(600)
def test_bash_runs_nothing_that_thousands_of_clear_texts_did_not_show(tmp_path: Path) -> None:
    assert _surprises(_Stubs(tmp_path), seed=random.randrange(1 << 32), clear_texts=5_000) == []
