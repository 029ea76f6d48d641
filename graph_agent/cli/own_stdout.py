"""Standard output for one writer alone: what libraries and tools of others print there reaches stderr instead.

Knows nothing of what is written.
"""

import os
import select
import sys
from collections.abc import Callable
from typing import TextIO

__all__ = ["own_stdout"]

_STDOUT, _STDERR = 1, 2


def own_stdout() -> Callable[[str], None]:
    """From now on the only way to what stdout was; each text is out when the function returns.

    For the rest of the process, also after the caller is done: what a plug-in says at its exit would stand behind
    the one object that a program reads. Where stdout is not the process's own, nothing is taken from anybody.
    """
    given = sys.stdout
    if not _is_first(given):
        return lambda text: print(text, end="", file=given, flush=True)
    given.flush()
    kept = os.dup(_STDOUT)
    os.dup2(_STDERR, _STDOUT)

    def write(text: str) -> None:
        left = memoryview(text.encode(given.encoding, given.errors or "strict"))
        while left:
            try:
                left = left[os.write(kept, left) :]
            except BlockingIOError:
                select.select([], [kept], [])

    return write


def _is_first(stream: TextIO) -> bool:
    try:
        return stream.fileno() == _STDOUT
    except (OSError, ValueError):
        return False
