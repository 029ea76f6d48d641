"""One value per call, put together from its events: what whoever shows calls needs, without keeping events.

A call is dropped when it ends; its last value is handed out then.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from graph_agent.events.types import (
    Event,
    ModelMessage,
    StepStarted,
    ToolCallCreated,
    ToolCallDelta,
    ToolCallFinished,
    ToolCallProgress,
    ToolCallStarted,
    TurnEnded,
    WarningIssued,
)

__all__ = ["LiveCall", "LiveCalls", "LiveState"]

LiveState = Literal["WAIT", "DOING", "SUCCESS", "ERROR"]


@dataclass(frozen=True, slots=True)
class LiveCall:
    """All that is known of a call until now."""

    call_id: str = ""
    """Empty while it still streams in: only the record has the id that counts."""
    tool_name: str = ""
    state: LiveState = "WAIT"
    """WAIT until it runs, DOING, then SUCCESS, or ERROR for every other end."""
    arguments_text: str = ""
    """While it streams in: as much as there is, JSON that is not whole."""
    params: Mapping[str, Any] = field(default_factory=dict)
    """The arguments of its record; a later record is merged in deeply."""
    summary: str = ""
    progress: ToolCallProgress | None = None
    """The newest."""
    result: str = ""
    error: str | None = None


class LiveCalls:
    """Follows the events of a run."""

    def __init__(self) -> None:
        self._arriving: dict[int, LiveCall] = {}
        self._calls: dict[str, LiveCall] = {}

    def take(self, event: Event) -> LiveCall | None:
        """The call that the event is about, as it is now; None for other events."""
        match event:
            case ToolCallDelta(index=index, tool_name=name, arguments_text=piece):
                before = self.streaming(index)
                now = replace(before, tool_name=name, arguments_text=before.arguments_text + piece)
                self._arriving[index] = now
                return now
            case ModelMessage() | StepStarted() | WarningIssued() | TurnEnded():
                # A warning may say that the reply begins anew.
                self._arriving.clear()
                return None
            case ToolCallFinished(call_id=call_id):
                ended = self._of(call_id, event.tool_name, event.summary)
                del self._calls[call_id]
                state: LiveState = "SUCCESS" if event.status == "success" else "ERROR"
                return replace(ended, state=state, result=event.output, error=event.error)
            case ToolCallCreated() | ToolCallStarted() | ToolCallProgress():
                return self._followed(event)
            case _:
                return None

    def streaming(self, index: int) -> LiveCall:
        """The one at this place of the reply that streams in; blank where none does."""
        return self._arriving.get(index, LiveCall())

    def _followed(self, event: ToolCallCreated | ToolCallStarted | ToolCallProgress) -> LiveCall:
        match event:
            case ToolCallCreated(call=record):
                before = self._of(record["call_id"], record["tool_name"], record.get("summary", ""))
                now = replace(before, params=_merged(before.params, record.get("arguments") or {}))
            case ToolCallStarted():
                now = replace(self._of(event.call_id, event.tool_name, event.summary), state="DOING")
            case ToolCallProgress():
                now = replace(self._of(event.call_id), state="DOING", progress=event)
        self._calls[now.call_id] = now
        return now

    def _of(self, call_id: str, tool_name: str = "", display: str = "") -> LiveCall:
        known = self._calls.setdefault(call_id, LiveCall(call_id))
        return replace(known, tool_name=tool_name or known.tool_name, summary=display or known.summary)


def _merged(before: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(before)
    for key, value in more.items():
        match merged.get(key), value:
            case dict(old), dict(new):
                merged[key] = _merged(old, new)
            case _:
                merged[key] = value
    return merged
