"""Leaving out files that cannot match, with ripgrep: those that lack the texts of which every match holds one.

Only an accelerator: what it keeps is searched by the same code that searches without it, so a missing, old or
failing ripgrep changes no result.
"""

import os
import subprocess
import sysconfig
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Self

from tools.context import ToolContext
from tools.file_ops.certain import Certain
from tools.kinds import ToolErrorType
from tools.newest import FoundFile
from tools.paths import PathRefused
from tools.programs import find_program
from tools.walking import FoundFolder, Walk, stop_if_cancelled

__all__ = ["Narrowing", "ripgrep"]

_WORTH_A_PROCESS = 100
_WORTH_ASKING_EARLY = 2_000
"""So many files, and the program may as well search them while others are still being found."""
_CHARS_AT_ONCE = 500_000
"""Of arguments to one process; systems take a million at least."""
_FLAGS = (
    "--no-config", "--files-with-matches", "--null", "--text", "--fixed-strings",
    "--no-messages", "--no-ignore", "--hidden", "--max-depth=1",
)  # fmt: skip
_FOUND, _NOTHING, _TROUBLE = 0, 1, 2


def ripgrep() -> str | None:
    """The program of this installation, else the one on the path."""
    own = Path(sysconfig.get_path("scripts")) / "rg"
    return str(own) if own.is_file() else find_program("rg")


class Narrowing:
    """One search. It may ask ripgrep about the first folders while the next are still being found."""

    def __init__(self, what: Certain, context: ToolContext, *, is_all: bool) -> None:
        """`is_all` says that all files of the folders are wanted: the program is given the folders alone."""
        self._what = what
        self._context = context
        self._is_all = is_all
        self._program = ripgrep() if what.texts else None
        self._thread = ThreadPoolExecutor(1)
        self._asked: list[Future[_Named]] = []
        self._waiting: list[FoundFolder] = []
        self._sent = 0
        self._is_over = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.shutdown(cancel_futures=True)

    def take(self, folder: FoundFolder) -> None:
        """Hear of the next folder that was found."""
        self._waiting.append(folder)
        is_free = not self._asked or self._asked[-1].done()
        if self._program is None or not is_free or _number(self._waiting) < _WORTH_ASKING_EARLY:
            return
        self._asked.append(self._thread.submit(self._ask, self._program, self._waiting))
        self._sent += len(self._waiting)
        self._waiting = []

    def holding(self, found: Walk) -> list[FoundFile]:
        """The regular files that hold one of the texts, or all of them where that cannot be told cheaply."""
        if self._program is None or _number(found.folders) < _WORTH_A_PROCESS:
            return list(_files(found.folders))
        rest = self._ask(self._program, found.folders[self._sent :])
        answers = [rest, *(asked.result() for asked in self._asked)]
        if not all(named.is_answer for named in answers):
            return list(_files(found.folders))
        kept: dict[str, set[str]] = defaultdict(set)
        for path in chain.from_iterable(named.files for named in answers):
            folder, _, name = path.rpartition("/")
            kept[folder].add(name)
        return [file for one in found.folders for file in one.files(kept.get(one.path.rstrip("/"), frozenset()))]

    def _ask(self, program: str, folders: Sequence[FoundFolder]) -> "_Named":
        places = (folder.path for folder in folders) if self._is_all else (file.path for file in _files(folders))
        files: set[str] = set()
        for some in _in_portions(places):
            named = _named_by([program, *_FLAGS, *self._arguments(), "--", *some], self._stop_if_over)
            if not named.is_answer:
                return named
            files |= named.files
            if named.is_troubled:
                files |= _closed(folders)
        return _Named(files)

    def _arguments(self) -> list[str]:
        case = ["--ignore-case"] if self._what.ignores_case else []
        return [*case, *(argument for text in self._what.texts for argument in ("-e", text))]

    def _stop_if_over(self) -> None:
        stop_if_cancelled(self._context)
        if self._is_over.is_set():
            raise PathRefused(ToolErrorType.CANCELLED, "Nobody waits for this search any more.")


def _number(folders: Iterable[FoundFolder]) -> int:
    return sum(len(folder.regular) for folder in folders)


def _files(folders: Iterable[FoundFolder]) -> Iterator[FoundFile]:
    return chain.from_iterable(folder.files() for folder in folders)


def _closed(folders: Iterable[FoundFolder]) -> set[str]:
    """Files that the search itself has to find unreadable, so that they are counted."""
    return {file.path for file in _files(folders) if not os.access(file.path, os.R_OK)}


class _Named(NamedTuple):
    """What the program said."""

    files: set[str]
    is_answer: bool = True
    """Whether it could be asked."""
    is_troubled: bool = False
    """Whether something could not be read."""


def _in_portions(places: Iterable[str]) -> Iterator[list[str]]:
    portion: list[str] = []
    chars = 0
    for place in places:
        if portion and chars + len(place) > _CHARS_AT_ONCE:
            yield portion
            portion, chars = [], 0
        portion.append(place)
        chars += len(place) + 10
    if portion:
        yield portion


def _named_by(command: list[str], stop_if_over: Callable[[], None]) -> _Named:
    try:
        running = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={"PATH": os.defpath}, start_new_session=True,
        )  # fmt: skip
    except OSError:
        return _Named(set(), is_answer=False)
    with running:
        try:
            output = _finished(running, stop_if_over)
        finally:
            running.kill()
    if running.returncode not in (_FOUND, _NOTHING, _TROUBLE):
        return _Named(set(), is_answer=False)
    files = {os.fsdecode(name) for name in output.split(b"\0") if name}
    return _Named(files, is_troubled=running.returncode == _TROUBLE)


def _finished(running: subprocess.Popen[bytes], stop_if_over: Callable[[], None]) -> bytes:
    while True:
        stop_if_over()
        try:
            return running.communicate(timeout=0.1)[0]
        except subprocess.TimeoutExpired:
            continue
