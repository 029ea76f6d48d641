"""Tells a turn as it happens: streamed text, calls with status and time, diffs. A subscriber, and nothing more."""

import time
from typing import assert_never

from rich.console import Console
from rich.text import Text

from graph_agent.cli.render.console import block, fold, safe_text
from graph_agent.cli.render.diff import diff_lines
from graph_agent.cli.render.live_area import LiveArea, RunningCalls, StreamedCalls
from graph_agent.cli.render.markdown import MarkdownStream
from graph_agent.cli.views.format import format_compaction, format_shell, format_todo
from graph_agent.config.model_choice import OFFLINE_LABEL
from graph_agent.events import (
    Compacted,
    Event,
    ModelMessage,
    ServerChanged,
    SessionOpened,
    ShellContinued,
    ShellEnded,
    StepStarted,
    TextDelta,
    ToolCallCreated,
    ToolCallDecided,
    ToolCallDelta,
    ToolCallFinished,
    ToolCallProgress,
    ToolCallStarted,
    TurnEnded,
    TurnStarted,
    WarningIssued,
)
from graph_agent.events.live_calls import LiveCalls

__all__ = ["TurnDisplay"]

_MARKS = {
    "success": ("✓", "green"),
    "error": ("✗", "red"),
    "cancelled": ("-", "yellow"),
    "interrupted": ("!", "red"),
}
_SHOWN_LINES = 8
_WHOLE_ID, _SHORT_ID = 12, 8
"""A longer id than the one is named by its end, which is what the tables show and commands take."""
_MODEL = "the model"
"""Stands among the ids of running calls for the request that has no answer yet."""
_DRAWING_SECONDS = 0.03
"""Between two drawings of text that arrives: faster than that nobody reads."""
_PLAIN_SECONDS = 15.0
_TYPED_STYLE = "cyan"


class TurnDisplay:
    """Writes what is finished to the console, and draws what is not in place below it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._area = LiveArea(console)
        self._running = RunningCalls()
        self._arriving = StreamedCalls(self._running)
        self._live = LiveCalls()
        self._displays: dict[str, str] = {}
        self._answered: set[str] = set()
        self._text: MarkdownStream | None = None
        """What the model is saying."""
        self._kind = ""
        self._has_streamed = False
        self._typed = ""
        self._drawn_at = 0.0
        self._is_told_again = False
        """Whether the answer holds what the calls gave: the offline mode has nothing else to say."""

    def __call__(self, number: int, event: Event) -> None:  # noqa: ARG002 - the shape of a subscriber
        """Take in one event."""
        self._live.take(event)
        match event:
            case SessionOpened(model=model):
                self._is_told_again = model == OFFLINE_LABEL
            case StepStarted():
                self._running.wait(_MODEL, "waiting for the model")
            case TextDelta() | ToolCallDelta() | ModelMessage() | TurnEnded():
                self._running.end(_MODEL)
            case _:
                pass
        self._tell(event)

    def _tell(self, event: Event) -> None:
        match event:
            case TextDelta():
                self._stream(event)
            case ModelMessage():
                self._end_reply(event)
            case Compacted():
                self.line(Text(format_compaction(event), "dim"))
            case WarningIssued() | ShellEnded() | ShellContinued():
                self._tell_news(event)
            case ToolCallDelta() | ToolCallCreated() | ToolCallStarted() | ToolCallProgress() | ToolCallFinished():
                self._tell_call(event)
            case ToolCallDecided(call_id=call_id):
                self._answered.add(call_id)
            case SessionOpened() | TurnStarted() | StepStarted() | TurnEnded() | ServerChanged():
                pass
            case _:
                assert_never(event)

    def tick(self) -> None:
        """Let the time of running calls move; where nothing is drawn in place, say now and then that they run."""
        if self._area.is_drawn:
            self._draw()
        elif time.monotonic() - self._drawn_at >= _PLAIN_SECONDS:
            self._drawn_at = time.monotonic()
            self.lines(self._running.lines(self._console.width))

    def rest(self) -> None:
        """The graph rests: nothing runs any more, and others may print."""
        self._end_text()
        self._arriving.forget()
        self._running.forget()
        self._typed = ""
        self._area.clear()

    def typed(self, line: str) -> None:
        """What stands in the line that is typed meanwhile."""
        self._typed = line
        self._draw()

    def hide(self) -> None:
        """Somebody else writes to the terminal for a while."""
        self._area.clear()

    def line(self, text: Text) -> None:
        """Print one line of our own."""
        self.lines(list(text.wrap(self._console, self._console.width, overflow="fold")))

    def lines(self, lines: list[Text]) -> None:
        """Print lines that are folded already."""
        self._area.print(lines, self._unfinished())

    def _unfinished(self) -> list[Text]:
        """Text that arrives, what runs, and what is typed for later."""
        if not self._area.is_drawn:
            return []
        text = [] if self._text is None else self._text.tail()
        typed = [Text.assemble(("> ", _TYPED_STYLE), safe_text(self._typed))] if self._typed else []
        return [*text, *self._running.lines(self._console.width), *typed]

    def _draw(self) -> None:
        self._area.draw(self._unfinished())
        self._drawn_at = time.monotonic()

    def _draw_soon(self) -> None:
        if time.monotonic() - self._drawn_at >= _DRAWING_SECONDS:
            self._draw()

    def _tell_call(
        self, event: ToolCallDelta | ToolCallCreated | ToolCallStarted | ToolCallProgress | ToolCallFinished
    ) -> None:
        match event:
            case ToolCallDelta():
                self._arrive(event)
            case ToolCallCreated(call=call):
                self._displays[call["call_id"]] = call.get("summary") or call["tool_name"]
            case ToolCallStarted():
                self._start(event)
            case ToolCallProgress():
                self._running.tell(event.call_id, event.text)
            case ToolCallFinished():
                self._end(event)
            case _:
                assert_never(event)

    def _arrive(self, event: ToolCallDelta) -> None:
        if self._area.is_drawn:
            self._end_text()
            self._arriving.show(event.index, self._live.arriving(event.index))
            self._draw_soon()

    def _tell_news(self, event: WarningIssued | ShellEnded | ShellContinued) -> None:
        if isinstance(event, WarningIssued):
            self._end_text()  # It may say that the reply begins anew.
            self._arriving.forget()
        text = event.text if isinstance(event, WarningIssued) else format_shell(event)
        self.line(Text.assemble(("! ", "yellow"), safe_text(text)))
        if isinstance(event, WarningIssued) and event.wait_s:
            self._running.wait(_MODEL, "asking the model again", event.wait_s)

    def _stream(self, event: TextDelta) -> None:
        self._arriving.forget()
        if self._text is None or self._kind != event.kind:
            self._end_text()
            self._text, self._kind = (
                MarkdownStream(self._console, "dim" if event.kind == "reasoning" else ""),
                event.kind,
            )
        self._has_streamed = self._has_streamed or event.kind == "text"
        if finished := self._text.add(event.text):
            self.lines(finished)
        else:
            self._draw_soon()

    def _end_reply(self, event: ModelMessage) -> None:
        self._arriving.forget()
        if event.text and not self._has_streamed:
            self._stream(TextDelta(event.text))
        self._has_streamed = False
        self._end_text()

    def _end_text(self) -> None:
        if self._text is not None:
            text, self._text = self._text, None
            self.lines(text.end())

    def _start(self, event: ToolCallStarted) -> None:
        self._displays[event.call_id] = event.summary or event.tool_name
        attempt = f" (attempt {event.attempt})" if event.attempt > 1 else ""
        label = self._label(event.call_id, event.tool_name) + attempt
        # Where a live line shows what runs, a line that stays would say the same thing a second time.
        if not self._area.is_drawn:
            self.line(Text.assemble(("● ", "cyan"), safe_text(label)))
        self._running.begin(event.call_id, label)
        self._draw()  # Where nothing is drawn, its time counts from here.

    def _end(self, event: ToolCallFinished) -> None:
        took = self._running.end(event.call_id)
        if event.status == "interrupted" and event.reason == "paused":
            return  # Its sub-agent asks instead, or says why it cannot go on.
        mark, style = _MARKS.get(event.status, ("?", "yellow"))
        seconds = "" if took is None else f" {took:.1f} s"
        why = event.error or event.reason if event.status != "success" else ""
        label = self._label(event.call_id, event.tool_name, event.summary)
        line = Text.assemble((f"{mark} ", style), safe_text(label), (f"  {event.status}{seconds}", "dim"))
        if why:
            line.append_text(Text("  ")).append_text(safe_text(why.split("\n", 1)[0], style))
        self.line(line)
        self.lines(self._effect(event))

    def _effect(self, event: ToolCallFinished) -> list[Text]:
        if event.status == "interrupted":
            return []  # The question that follows shows all that is known of it.
        match event.metadata:
            case {"diff": {"unified": str(diff)}} if diff:
                # Who answered the question has seen the change with it.
                return [] if event.call_id in self._answered else diff_lines(diff, self._console.width)
            case {"todo": list(plan)} if plan:
                return [
                    piece for line in format_todo(plan) for piece in fold(Text(line), self._console.width, "  ")
                ]
            case {"answer": str(answer)}:
                told = MarkdownStream(self._console)
                return [*told.add(answer), *told.end()]
        if self._is_told_again:
            return []
        output = event.output.rstrip("\n").split("\n") if event.output.strip() else []
        last = [line.expandtabs() for line in output[-_SHOWN_LINES:]]
        shown = block("\n".join(last), self._console.width, style="dim") if last else []
        hidden = len(output) - _SHOWN_LINES
        name = event.call_id if len(event.call_id) <= _WHOLE_ID else event.call_id[-_SHORT_ID:]
        more = [Text(f"  … {hidden} more lines; /calls {name} shows them", "dim")] if hidden > 0 else []
        return [*more, *shown]

    def _label(self, call_id: str, tool_name: str, display: str = "") -> str:
        about = self._displays.get(call_id) or display
        if not about or about == tool_name:
            return tool_name
        return about if about.lower().startswith(tool_name.lower()) else f"{tool_name} {about}"
