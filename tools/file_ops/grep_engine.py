"""The engine of grep: which files ripgrep can rule out, and where a pattern matches in one text.

ripgrep is only an accelerator: a file that it does not rule out is searched by the same code that searches without
it, so a missing, old or failing ripgrep changes no result.
"""

import os
import re
import subprocess
import sysconfig
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Self

from tools.base import ToolContext
from tools.paths import PathRefused
from tools.patterns import Pattern
from tools.programs import find_program
from tools.result import ToolErrorType
from tools.walk import FoundFile, FoundFolder, Walk, stop_if_cancelled

__all__ = [
    "LineSearch",
    "Matches",
    "Prefilter",
    "RequiredTexts",
    "SearchHit",
    "find_ripgrep",
    "required_texts",
    "split_lines",
]

_TOKEN = re.compile(r"\\(?:.|$)|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z0-9_ \-=/<>:;,\"'!@%&]")
_UNREADABLE = re.compile(
    r"\(\?(?!:|=|!|<=|<!|P?<[A-Za-z_])|\[:|\(\*|\\[a-zA-Z0-9](?<![wWsSdDbBntrAzZ])",
)
"""Flags, conditions and comments; classes by name; verbs; escapes that stand for other characters."""
_IGNORE_CASE = "(?i)"
_LETTERS_WITH_OTHER_CASES = re.compile("[fiksFIKS]")
"""Letters that have a further case beyond ASCII, alone or with their neighbour."""

_MIN_FILES = 100
"""With fewer files, starting a process costs more than it saves."""
_MIN_FILES_EARLY = 2_000
"""With so many files, the program may as well search them while others are still being found."""
_MAX_ARGUMENT_CHARS = 500_000
"""Of arguments to one process; systems allow at least a million."""
_FLAGS = (
    "--no-config", "--files-with-matches", "--null", "--text", "--fixed-strings",
    "--no-messages", "--no-ignore", "--hidden", "--max-depth=1",
)  # fmt: skip
_MATCHES, _NO_MATCHES, _READ_ERROR = 0, 1, 2

_SECONDS = 20.0
_LONG_LINE = 10_000


def find_ripgrep() -> str | None:
    """The ripgrep of this installation, else the one on the path."""
    own = Path(sysconfig.get_path("scripts")) / "rg"
    return str(own) if own.is_file() else find_program("rg")


@dataclass(frozen=True)
class RequiredTexts:
    """Every match contains at least one of the texts; without texts, nothing is known."""

    texts: tuple[str, ...] = ()
    ignores_case: bool = False

    def may_match(self, text: str) -> bool:
        """Whether this text can contain a match."""
        return not self.texts or self.ignores_case or any(one in text for one in self.texts)


def required_texts(pattern: str, *, is_literal: bool) -> RequiredTexts:
    """The longest plain ASCII text of each alternative, as far as a cautious look at the pattern can tell."""
    if is_literal:
        alternatives, ignores_case = [re.findall(r"[ -~]+", pattern)], False
    else:
        ignores_case = pattern.startswith(_IGNORE_CASE)
        body = pattern.removeprefix(_IGNORE_CASE)
        if _UNREADABLE.search(body):
            return RequiredTexts()
        alternatives = _plain_runs(body)
        if ignores_case:
            alternatives = [
                [part for run in runs for part in _LETTERS_WITH_OTHER_CASES.split(run)] for runs in alternatives
            ]
    texts = [max(runs, key=len, default="") for runs in alternatives]
    return RequiredTexts(tuple(dict.fromkeys(texts)), ignores_case) if all(texts) else RequiredTexts()


def _plain_runs(pattern: str) -> list[list[str]]:
    """Runs of plain text outside groups, for each alternative."""
    alternatives, depth, in_count = [[""]], 0, False
    for piece in _TOKEN.findall(pattern):
        runs = alternatives[-1]
        if in_count:
            in_count = piece != "}"
            continue
        if piece in ("?", "*", "{"):
            # The character before it may be absent.
            runs[-1] = runs[-1][:-1]
            in_count = piece == "{"
        depth += {"(": 1, ")": -1}.get(piece, 0)
        if piece == "|" and depth == 0:
            alternatives.append([""])
        elif depth == 0 and _PLAIN.fullmatch(piece):
            runs[-1] += piece
        else:
            runs.append("")
    return alternatives


class Prefilter:
    """Rules out files that lack the required texts. ripgrep searches the first folders while others are found."""

    def __init__(self, required: RequiredTexts, context: ToolContext, *, is_all: bool) -> None:
        """`is_all`: all files of the folders are wanted, so that the program is given the folders alone."""
        self._context = context
        self._is_all = is_all
        program = find_ripgrep() if required.texts else None
        case = ["--ignore-case"] if required.ignores_case else []
        texts = (argument for text in required.texts for argument in ("-e", text))
        self._command = [program, *_FLAGS, *case, *texts, "--"] if program else None
        self._thread = ThreadPoolExecutor(1)
        self._answers: list[Future[set[str] | None]] = []
        self._waiting: list[FoundFolder] = []
        self._sent = 0
        self._is_over = threading.Event()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.shutdown(cancel_futures=True)

    def add_folder(self, folder: FoundFolder) -> None:
        """Note the next folder that the walk has found."""
        self._waiting.append(folder)
        is_free = not self._answers or self._answers[-1].done()
        if (
            self._command is None
            or not is_free
            or sum(len(one.regular) for one in self._waiting) < _MIN_FILES_EARLY
        ):
            return
        self._answers.append(self._thread.submit(self._ask, self._command, self._waiting))
        self._sent += len(self._waiting)
        self._waiting = []

    def candidates(self, found: Walk) -> list[FoundFile]:
        """The regular files that contain a required text; all files where ripgrep could not answer."""
        if self._command is None or sum(len(one.regular) for one in found.folders) < _MIN_FILES:
            return list(_files(found.folders))
        last = self._ask(self._command, found.folders[self._sent :])
        names: dict[str, set[str]] = defaultdict(set)
        for paths in (last, *(answer.result() for answer in self._answers)):
            if paths is None:
                return list(_files(found.folders))
            for path in paths:
                folder, _, name = path.rpartition("/")
                names[folder].add(name)
        return [file for one in found.folders for file in one.files(names.get(one.path.rstrip("/"), frozenset()))]

    def _ask(self, command: list[str], folders: Sequence[FoundFolder]) -> set[str] | None:
        """Paths of files that contain a text or cannot be read; None where the program gave no answer."""
        places = [folder.path for folder in folders] if self._is_all else [file.path for file in _files(folders)]
        paths: set[str] = set()
        while places:
            batch, chars = 1, len(places[0])
            while batch < len(places) and (chars := chars + len(places[batch]) + 10) <= _MAX_ARGUMENT_CHARS:
                batch += 1
            output, exit_code = self._run([*command, *places[:batch]])
            del places[:batch]
            if exit_code not in (_MATCHES, _NO_MATCHES, _READ_ERROR):
                return None
            paths.update(os.fsdecode(name) for name in output.split(b"\0") if name)
            if exit_code == _READ_ERROR:
                # The search itself has to find them unreadable, so that they are counted.
                paths.update(file.path for file in _files(folders) if not os.access(file.path, os.R_OK))
        return paths

    def _run(self, command: list[str]) -> tuple[bytes, int | None]:
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                env={"PATH": os.defpath}, start_new_session=True,
            )  # fmt: skip
        except OSError:
            return b"", None
        with process:
            try:
                while True:
                    stop_if_cancelled(self._context)
                    if self._is_over.is_set():
                        raise PathRefused(ToolErrorType.CANCELLED, "The search was abandoned.")
                    try:
                        output = process.communicate(timeout=0.1)[0]
                    except subprocess.TimeoutExpired:
                        continue
                    return output, process.returncode
            finally:
                process.kill()


def _files(folders: Iterable[FoundFolder]) -> Iterator[FoundFile]:
    return chain.from_iterable(folder.files() for folder in folders)


class SearchHit(NamedTuple):
    """One match: its first and last line, counted from 0, and the column in the first where it begins."""

    first: int
    last: int
    column: int


class Matches(NamedTuple):
    """The first matches in one text, and how many were found."""

    hits: list[SearchHit]
    total: int


@dataclass
class LineSearch:
    """One pattern for many texts, with a limit on the time and the matches of all of them together."""

    pattern: Pattern
    required: RequiredTexts
    is_multiline: bool
    max_matches: int = 10_000_000
    stopped: str = ""
    """Why the search has ended before the end of a text; empty if it has not."""
    _left: int = field(init=False)
    _deadline: float = field(default_factory=lambda: time.monotonic() + _SECONDS)

    def __post_init__(self) -> None:
        self._left = self.max_matches

    def find(self, lines: list[str], keep: int) -> Matches:
        """The matches in order, of which `keep` are returned; of a line only the first, unless it is multiline.

        At a limit the search ends with what it has found, and `stopped` says so.
        """
        kept: list[SearchHit] = []
        total = 0
        try:
            for hit in self._hits_in_text("\n".join(lines)) if self.is_multiline else self._hits_in_lines(lines):
                total += 1
                if total <= keep:
                    kept.append(hit)
                self._left -= 1
                if self._left <= 0:
                    self.stopped = f"stopped after {self.max_matches:,} matches"
                    break
        except TimeoutError:
            self.stopped = f"{self.pattern.pattern!r} was stopped after {_SECONDS:g} seconds"
        return Matches(kept, total)

    def _hits_in_lines(self, lines: list[str]) -> Iterator[SearchHit]:
        for number, line in enumerate(lines):
            if not self.required.may_match(line):
                continue
            match = self.pattern.search(line, timeout=self._time_left(), concurrent=len(line) > _LONG_LINE)
            if match:
                yield SearchHit(number, number, match.start())

    def _hits_in_text(self, text: str) -> Iterator[SearchHit]:
        if not self.required.may_match(text):
            return
        line, at = 0, 0
        for match in self.pattern.finditer(text, timeout=self._time_left(), concurrent=True):
            line += text.count("\n", at, match.start())
            at = match.start()
            last = line + match.group().rstrip("\n").count("\n")
            yield SearchHit(line, last, at - (text.rfind("\n", 0, at) + 1))

    def _time_left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def split_lines(text: str) -> list[str]:
    """The lines as editors count them, without their ends."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines
