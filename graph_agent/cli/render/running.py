"""The live lines of running calls: elapsed time and last line of output. Keeps time; draws and prints nothing."""

import math
import time
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.text import Text

from graph_agent.cli.render.lines import marked

__all__ = ["RunningCalls"]

_SHORT_SECONDS = 1.0
_NARROWEST = 8
_SHOWN = 8
"""How many are shown one by one."""


@dataclass(slots=True)
class _Running:
    label: str
    last_line: str = ""
    hidden_s: float = 0.0
    """How long it runs before it is worth a line."""
    begins_in_s: float = 0.0
    """How long it does not begin yet; counted down."""
    since: float = field(default_factory=time.monotonic)


class RunningCalls:
    """What runs right now."""

    def __init__(self) -> None:
        self._calls: dict[str, _Running] = {}

    def begin(self, call_id: str, label: str) -> None:
        """A call was started."""
        self._calls[call_id] = _Running(label)

    def wait(self, key: str, label: str, begins_in_s: float = 0.0) -> None:
        """Something is waited for that mostly comes at once; a line for it appears when it does not."""
        self._calls[key] = _Running(
            label, hidden_s=_SHORT_SECONDS if not begins_in_s else 0, begins_in_s=begins_in_s
        )

    def tell(self, call_id: str, text: str) -> None:
        """A call wrote something."""
        lines = [line for line in text.splitlines() if line.strip()]
        if lines and call_id in self._calls:
            self._calls[call_id].last_line = lines[-1]

    def end(self, call_id: str) -> float | None:
        """A call ended; returns how many seconds it ran, None when its start was not seen."""
        running = self._calls.pop(call_id, None)
        return None if running is None else time.monotonic() - running.since

    def forget(self) -> None:
        """The turn is over: whatever seems to run does not."""
        self._calls.clear()

    def lines(self, width: int) -> list[Text]:
        """A line for each, or two where its output has no room beside it; several stand below their count."""
        now = time.monotonic()
        seen = [running for running in self._calls.values() if now - running.since >= running.hidden_s]
        count = [Text(f"  {len(seen)} at once", "dim")] if len(seen) > 1 else []
        more = len(seen) - _SHOWN
        rest = [Text(f"  … and {more} more", "dim")] if more > 0 else []
        return [*count, *(line for running in seen[:_SHOWN] for line in _lines_of(running, width - 1)), *rest]


def _lines_of(running: _Running, room: int) -> list[Text]:
    elapsed = _time_of(running)
    room = max(_NARROWEST, room)
    label, output = marked(running.label), marked(running.last_line, "dim")
    label.truncate(max(_NARROWEST, room - 4 - cell_len(elapsed)), overflow="ellipsis")
    line = Text.assemble(("  … ", "yellow"), label, (elapsed, "dim"))
    if not running.last_line:
        return [line]
    if line.cell_len + 2 + output.cell_len <= room:
        return [Text.assemble(line, "  ", output)]
    output.truncate(room - 4, overflow="ellipsis")
    return [line, Text.assemble(("  │ ", "dim"), output)]


def _time_of(running: _Running) -> str:
    seconds = time.monotonic() - running.since - running.begins_in_s
    return f"  {seconds:.0f} s" if seconds >= 0 else f"  in {math.ceil(-seconds)} s"
