"""A headless run that a signal ends before it has begun: its one object is printed all the same.

While modules are loaded nothing is at stake, so the process ends at once. Loads nothing itself.
"""

import contextlib
import json
import os
import signal
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any, NoReturn

__all__ = ["asked_for", "tell_if_cut", "tell_no_more", "told_if_cut"]

_before: dict[int, Any] = {}
"""What a signal meant before anybody wanted to be told of it: handlers are of the process, and so is this."""

_USED = {
    **dict.fromkeys(
        ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens", "total_tokens", "requests"), 0
    ),
    "estimated": False,
    "cost": 0.0,
    "currency": None,
}


def asked_for(words: Sequence[str]) -> tuple[str, str | None]:
    """Format and thread of a headless run as they stand on the command line, before anything can read it whole."""
    options = words[: words.index("--")] if "--" in words else words
    if next((word for word in options if not word.startswith("-")), "") != "run":
        return "text", None
    named = dict(zip(options, [*options[1:], ""], strict=True)) | {
        name: value for name, is_joined, value in (word.partition("=") for word in options) if is_joined
    }
    output = named.get("--output", "")
    return output if output in ("json", "stream-json") else "text", named.get("--thread")


@dataclass(frozen=True, slots=True)
class _Ending:
    """Ends the process with one line on stdout."""

    line: bytes

    def __call__(self, number: int, _frame: FrameType | None) -> NoReturn:
        with contextlib.suppress(OSError):
            os.write(1, self.line)
        os._exit(128 + number)


def tell_if_cut(output: str, thread_id: str | None) -> None:
    """From now on print the result of a run in this format where SIGTERM, SIGHUP or SIGINT end it."""
    if output == "text":
        return
    line = f"{json.dumps(_report(output, thread_id), ensure_ascii=False)}\n".encode(errors="backslashreplace")
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        before = signal.signal(number, _Ending(line))
        if not isinstance(before, _Ending):
            _before[number] = before


def tell_no_more() -> None:
    """Signals mean again what they meant before, unless somebody else has set them since."""
    for number, before in _before.items():
        if isinstance(signal.getsignal(number), _Ending):
            signal.signal(number, before)


@contextlib.contextmanager
def told_if_cut(output: str, thread_id: str | None) -> Iterator[None]:
    """The same within the block, unless it ended that itself."""
    tell_if_cut(output, thread_id)
    try:
        yield
    finally:
        tell_no_more()


def _report(output: str, thread_id: str | None) -> dict[str, object]:
    event = {"seq": 1, "type": "result"} if output == "stream-json" else {}
    return {
        **event,
        "status": "stopped",
        "thread_id": thread_id,
        "checkpoint_id": None,
        "answer": "",
        "pending_approvals": [],
        "interrupted_calls": [],
        "usage": _USED,
        "error": "ended by a signal",
    }
