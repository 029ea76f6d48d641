"""Leaving out files that cannot match, with ripgrep: those that lack the texts of which every match holds one.

Only an accelerator: what it keeps is searched by the same code that searches without it, so a missing, old or
failing ripgrep changes no result.
"""

import os
import subprocess
import sysconfig
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from tools.context import ToolContext
from tools.file_ops.certain import Certain
from tools.newest import FoundFile
from tools.programs import find_program
from tools.walking import Walk, stop_if_cancelled

__all__ = ["holding", "ripgrep"]

_WORTH_A_PROCESS = 100
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


def holding(what: Certain, found: Walk, context: ToolContext, *, is_all: bool) -> list[FoundFile]:
    """The regular files that hold one of the texts, or all of them where that cannot be told cheaply.

    `is_all` says that all files of the folders are wanted, so that the program is given the folders alone.
    """
    program = ripgrep()
    if program is None or not what.texts or sum(len(folder.regular) for folder in found.folders) < _WORTH_A_PROCESS:
        return list(_files(found))
    places = (folder.path for folder in found.folders) if is_all else (file.path for file in _files(found))
    kept: dict[str, set[str]] = defaultdict(set)
    for some in _in_portions(places):
        named = _named_by(program, what, some, context)
        if named is None:
            return list(_files(found))
        for path in chain(named.files, _closed(found) if named.is_troubled else ()):
            folder, _, name = path.rpartition("/")
            kept[folder].add(name)
    return [file for one in found.folders for file in one.files(kept.get(one.path.rstrip("/"), frozenset()))]


def _files(found: Walk) -> Iterator[FoundFile]:
    return chain.from_iterable(folder.files() for folder in found.folders)


class _Named(NamedTuple):
    files: set[str]
    is_troubled: bool
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


def _closed(found: Walk) -> set[str]:
    """Files that the search itself has to find unreadable, so that they are counted."""
    return {file.path for file in _files(found) if not os.access(file.path, os.R_OK)}


def _named_by(program: str, what: Certain, places: list[str], context: ToolContext) -> _Named | None:
    texts = [argument for text in what.texts for argument in ("-e", text)]
    case = ["--ignore-case"] if what.ignores_case else []
    try:
        running = subprocess.Popen(
            [program, *_FLAGS, *case, *texts, "--", *places], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, env={"PATH": os.defpath}, start_new_session=True,
        )  # fmt: skip
    except OSError:
        return None
    with running:
        try:
            output = _finished(running, context)
        finally:
            running.kill()
    if running.returncode not in (_FOUND, _NOTHING, _TROUBLE):
        return None
    files = {os.fsdecode(name) for name in output.split(b"\0") if name}
    return _Named(files, running.returncode == _TROUBLE)


def _finished(running: subprocess.Popen[bytes], context: ToolContext) -> bytes:
    while True:
        stop_if_cancelled(context)
        try:
            return running.communicate(timeout=0.1)[0]
        except subprocess.TimeoutExpired:
            continue
