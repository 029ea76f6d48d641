"""A headless run that a signal ends before it has begun: its one object is printed all the same.

While modules are loaded nothing is at stake, so the process ends at once. Loads nothing itself.
"""

import contextlib
import json
import os
import signal
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

__all__ = ["told_if_cut"]

_USED = {
    **dict.fromkeys(
        ("input_tokens", "cached_input_tokens", "output_tokens", "reasoning_tokens", "total_tokens", "requests"), 0
    ),
    "estimated": False,
    "cost": 0.0,
    "currency": None,
}


@contextlib.contextmanager
def told_if_cut(output: str, thread_id: str | None) -> Iterator[None]:
    """Print the result of a run in this format where SIGTERM, SIGHUP or SIGINT end it within the block."""
    if output == "text":
        yield
        return
    line = f"{json.dumps(_report(output, thread_id), ensure_ascii=False)}\n".encode(errors="backslashreplace")

    def end(number: int, _frame: FrameType | None) -> NoReturn:
        with contextlib.suppress(OSError):
            os.write(1, line)
        os._exit(128 + number)

    before = {number: signal.signal(number, end) for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


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
