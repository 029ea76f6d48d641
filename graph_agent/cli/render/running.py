"""The live lines of running calls: elapsed time and last line of output. Nothing of them stays on the screen."""

import math
import time
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from graph_agent.cli.render.lines import marked

__all__ = ["RunningCalls"]

_SHORT_SECONDS = 1.0


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
    """What runs right now; on anything but a real terminal it keeps time and draws nothing."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._calls: dict[str, _Running] = {}
        self._live: Live | None = None

    @property
    def is_drawn(self) -> bool:
        """Whether running calls are seen live on this console."""
        return self._console.is_terminal and not self._console.is_dumb_terminal

    def begin(self, call_id: str, label: str) -> None:
        """A call was started."""
        self._calls[call_id] = _Running(label)
        self.draw()

    def wait(self, key: str, label: str, begins_in_s: float = 0.0) -> None:
        """Something is waited for that mostly comes at once; a line for it appears when it does not."""
        self._calls[key] = _Running(
            label, hidden_s=_SHORT_SECONDS if not begins_in_s else 0, begins_in_s=begins_in_s
        )

    def tell(self, call_id: str, text: str) -> None:
        """A call wrote something; shown at the next drawing."""
        lines = [line for line in text.splitlines() if line.strip()]
        if lines and call_id in self._calls:
            self._calls[call_id].last_line = lines[-1]

    def end(self, call_id: str) -> float | None:
        """A call ended; returns how many seconds it ran, None when its start was not seen."""
        running = self._calls.pop(call_id, None)
        if not self._calls:
            self.clear()
        return None if running is None else time.monotonic() - running.since

    def draw(self) -> None:
        """Draw the lines anew; called by a ticker, so that the time moves while nothing else does."""
        now = time.monotonic()
        seen = [running for running in self._calls.values() if now - running.since >= running.hidden_s]
        if not seen or not self.is_drawn:
            return
        if self._live is None:
            self._live = Live(
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()
        self._live.update(Group(*map(self._line, seen)), refresh=True)

    def forget(self) -> None:
        """The turn is over: whatever seems to run does not."""
        self._calls.clear()
        self.clear()

    def clear(self) -> None:
        """Take the lines off the screen."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _line(self, running: _Running) -> Text:
        """One line, or two where the output has no room beside what runs."""
        elapsed = _time_of(running)
        room = max(8, self._console.width - 1)
        label, output = marked(running.label), marked(running.last_line, "dim")
        label.truncate(max(8, room - 4 - cell_len(elapsed)), overflow="ellipsis")
        line = Text.assemble(("  … ", "yellow"), label, (elapsed, "dim"))
        if not running.last_line:
            return line
        if line.cell_len + 2 + output.cell_len <= room:
            return Text.assemble(line, "  ", output)
        output.truncate(room - 4, overflow="ellipsis")
        return Text.assemble(line, "\n", ("  │ ", "dim"), output)


def _time_of(running: _Running) -> str:
    seconds = time.monotonic() - running.since - running.begins_in_s
    return f"  {seconds:.0f} s" if seconds >= 0 else f"  in {math.ceil(-seconds)} s"
