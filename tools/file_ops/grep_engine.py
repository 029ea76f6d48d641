"""Leaving out files that cannot match, with ripgrep: those that lack the texts of which every match holds one.

Only an accelerator: what it keeps is searched by the same code that searches without it, so a missing, old or
failing ripgrep changes no result.

What every match of a pattern must hold, as far as a cautious look at the pattern can tell. Searches nothing.

Where a pattern matches in one text: by lines, or across them, within a time limit. Knows no files.
"""

import os
import re
import subprocess
import sysconfig
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Self

from tools.context import ToolContext
from tools.paths import PathRefused, find_program
from tools.patterns import BadPattern, Pattern
from tools.result import ToolErrorType
from tools.walk import FoundFile, FoundFolder, Walk, stop_if_cancelled

__all__ = ["Certain", "LineSearch", "Narrowing", "SearchHit", "certain", "find_ripgrep", "split_lines"]

_TOKEN = re.compile(r"\\(?:.|$)|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z0-9_ \-=/<>:;,\"'!@%&]")
_NOT_JUDGED = re.compile(
    r"\(\?(?!:|=|!|<=|<!|P?<[A-Za-z_])|\[:|\(\*|\\[a-zA-Z0-9](?<![wWsSdDbBntrAzZ])",
)
"""Flags, conditions and comments; classes by name; verbs; escapes that stand for other characters."""
_IGNORING_CASE = "(?i)"
_OTHER_CASES = re.compile("[fiksFIKS]")
"""Letters that letters beyond ASCII are the other case of, alone or with their neighbour."""


@dataclass(frozen=True)
class Certain:
    """Each match holds at least one of the texts; nothing is known where there are none."""

    texts: tuple[str, ...] = ()
    ignores_case: bool = False

    def may_be_in(self, text: str) -> bool:
        """Whether a match in this text is possible."""
        return not self.texts or self.ignores_case or any(one in text for one in self.texts)


def certain(pattern: str, *, is_literal: bool) -> Certain:
    """The longest plain ASCII texts, one for each alternative."""
    if is_literal:
        return _all_of([max(re.findall(r"[ -~]+", pattern), key=len, default="")], ignores_case=False)
    ignores_case = pattern.startswith(_IGNORING_CASE)
    body = pattern.removeprefix(_IGNORING_CASE)
    if _NOT_JUDGED.search(body):
        return Certain()
    alternatives = _alternatives(body)
    if ignores_case:
        alternatives = [[part for run in runs for part in _OTHER_CASES.split(run)] for runs in alternatives]
    return _all_of([max(runs, key=len) for runs in alternatives], ignores_case=ignores_case)


def _all_of(texts: list[str], *, ignores_case: bool) -> Certain:
    return Certain(tuple(dict.fromkeys(texts)), ignores_case) if all(texts) else Certain()


@dataclass
class _Reading:
    """Runs of plain text outside of groups, by alternative."""

    alternatives: list[list[str]] = field(default_factory=lambda: [[""]])
    depth: int = 0
    is_counting: bool = False
    """Inside of braces."""

    def take(self, piece: str) -> None:
        runs = self.alternatives[-1]
        if self.is_counting:
            self.is_counting = piece != "}"
            return
        if piece in ("?", "*", "{"):
            # What stands before it may be absent.
            runs[-1] = runs[-1][:-1]
            self.is_counting = piece == "{"
        self.depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece == "|" and self.depth == 0:
            self.alternatives.append([""])
        elif self.depth == 0 and _PLAIN.fullmatch(piece):
            runs[-1] += piece
        else:
            runs.append("")


def _alternatives(pattern: str) -> list[list[str]]:
    reading = _Reading()
    for piece in _TOKEN.findall(pattern):
        reading.take(piece)
    return reading.alternatives


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


def find_ripgrep() -> str | None:
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
        self._program = find_ripgrep() if what.texts else None
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


_SECONDS = 20.0
_LONG_LINE = 10_000


@dataclass(frozen=True)
class SearchHit:
    """One match: its first and last line, counted from 0, and where in the first it begins."""

    first: int
    last: int
    column: int


@dataclass
class LineSearch:
    """One pattern for many texts, and the time it has left for all of them."""

    pattern: Pattern
    certain: Certain
    is_multiline: bool
    _deadline: float = field(default_factory=lambda: time.monotonic() + _SECONDS)

    def hits(self, lines: list[str]) -> list[SearchHit]:
        """The matches in order; of a line only the first.

        Raises:
            BadPattern: it takes too long.
        """
        try:
            return self._across(lines) if self.is_multiline else self._by_line(lines)
        except TimeoutError as error:
            raise BadPattern(
                f"{self.pattern.pattern!r} was stopped after {_SECONDS:g} seconds; write it without nested "
                "repetitions, or search in a smaller folder."
            ) from error

    def _by_line(self, lines: list[str]) -> list[SearchHit]:
        found = []
        for number, line in enumerate(lines):
            if not self.certain.may_be_in(line):
                continue
            match = self.pattern.search(line, timeout=self._left(), concurrent=len(line) > _LONG_LINE)
            if match:
                found.append(SearchHit(number, number, match.start()))
        return found

    def _across(self, lines: list[str]) -> list[SearchHit]:
        text = "\n".join(lines)
        if not self.certain.may_be_in(text):
            return []
        found, line, passed = [], 0, 0
        for match in self.pattern.finditer(text, timeout=self._left(), concurrent=True):
            line += text.count("\n", passed, match.start())
            passed = match.start()
            column = match.start() - (text.rfind("\n", 0, passed) + 1)
            found.append(SearchHit(line, line + match.group().rstrip("\n").count("\n"), column))
        return found

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def split_lines(text: str) -> list[str]:
    """The lines as editors count them, without their ends."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines
