"""Plain lines about a headless run, for stderr. Knows no colours, no cursor, no terminal."""

import sys
import time
from typing import TextIO

from graph_agent.cli.compacted import compacted_line
from graph_agent.cli.escape import escape
from graph_agent.cli.shell_line import shell_line
from graph_agent.events import CallEnded, CallPlanned, CallStarted, Compacted, Event, ShellEnded, ShellKept, Warned

__all__ = ["News"]

_BROKEN_OFF = ("never_started", "outcome_unknown")
"""Reasons of a call that was broken off: one that ends with them, and did not run again, ends by a decision."""


class News:
    """A subscriber that writes one line per fact worth a line."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._displays: dict[str, str] = {}
        self._started: dict[str, float] = {}

    def __call__(self, number: int, event: Event) -> None:  # noqa: ARG002 - the shape of a subscriber
        """Take in one event."""
        match event:
            case CallPlanned(call=call):
                self._displays[call["call_id"]] = call.get("display") or call["tool_name"]
            case CallStarted():
                self._started[event.call_id] = time.monotonic()
                self._displays[event.call_id] = event.display or event.tool_name
            case CallEnded():
                self._tell_end(event)
            case ShellEnded() | ShellKept():
                self.tell(f"note: {shell_line(event)}")
            case Compacted():
                self.tell(compacted_line(event))
            case Warned(text=text):
                self.tell(f"note: {text}")
            case _:
                pass

    def tell(self, line: str) -> None:
        """Write one line, made safe."""
        self._stream.write(f"{escape(line)}\n")
        self._stream.flush()

    def _tell_end(self, event: CallEnded) -> None:
        about = self._displays.get(event.call_id) or event.display
        began = self._started.pop(event.call_id, None)
        took = f" {time.monotonic() - began:.1f} s" if began is not None else ""
        why = event.error or event.reason
        detail = f": {why}" if why and event.status != "success" else ""
        if began is None and event.status != "interrupted" and event.reason in _BROKEN_OFF:
            detail = ", as was decided"
        name = "" if about.startswith(event.tool_name) else f"{event.tool_name} "
        self.tell(f"{name}{about} - {event.status}{took}{detail}")
