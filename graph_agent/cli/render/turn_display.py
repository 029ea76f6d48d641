"""Show a turn as it happens: streamed text, calls with status and time, diffs."""

import time
from collections.abc import Callable, Sequence
from typing import assert_never

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from graph_agent.cli.render.console import block, fold, hunk_lines, safe_text
from graph_agent.cli.render.live_area import WAITING, LiveArea, RunningCalls
from graph_agent.cli.render.markdown import MarkdownStream
from graph_agent.cli.views.format import ended_call, format_compaction, format_shell, format_todo
from graph_agent.config.model_choice import OFFLINE_LABEL
from graph_agent.config.paths import runnable_hints
from graph_agent.events import (
    Compacted,
    Event,
    LiveCalls,
    MessageAdded,
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
from graph_agent.ports.stored_text import parse_diff
from graph_agent.wording import format_count

__all__ = ["TurnDisplay"]

_MARKS = {  # By outcome; by status where a call has none.
    "success": ("✓", "green"),
    "error": ("✗", "red"),
    "cancelled": ("-", "yellow"),
    "rejected": ("⊘", "yellow"),
    "denied": ("⊘", "yellow"),
    "stopped": ("■", "yellow"),
    "interrupted": ("!", "red"),
}
_OUTPUT_LINES = 8
_SHORTEST_LABEL = 6
_MAX_ID_LENGTH, _SHORT_ID = 12, 8
"""A longer id than the first is shown by its end, as in tables; commands accept that."""
_PLAIN_INTERVAL_S = 15.0
_SEPARATOR, _STOP_HINT = " · ", "esc to interrupt"
_PROMPT_STYLE = "cyan"


_CallEvent = (
    ToolCallDelta | ToolCallCreated | ToolCallDecided | ToolCallStarted | ToolCallProgress | ToolCallFinished
)


class TurnDisplay:
    """A subscriber that prints what is finished, and draws what is not in place below it."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._area = LiveArea(console)
        self._running = RunningCalls()
        self._live = LiveCalls()
        self._summaries: dict[str, str] = {}
        self._answered: set[str] = set()
        self._asking: set[str] = set()
        """Calls that are questions of the model, which are shown where they are asked."""
        self._text: MarkdownStream | None = None
        """What the model is saying."""
        self._complete: list[Text] = []
        """Lines of it that are complete and not printed yet."""
        self._text_kind = ""
        self._has_streamed = False
        self._typed: Text | None = None
        self._drawn_at = 0.0
        self._is_paused = False
        self._status: Callable[[], Sequence[str]] | None = None
        """What the status line says of the turn, the least important last; None while no turn runs."""
        self._activity = ""
        """What the status line names where no model is at work."""
        self._since = 0.0
        self._is_offline = False
        """The offline model repeats the output of its calls in its answer."""

    @property
    def width(self) -> int:
        """Columns of the terminal."""
        return self._console.width

    @property
    def height(self) -> int:
        """Rows of the terminal."""
        return self._console.height

    def encode(self, lines: Sequence[Text]) -> str:
        """Lines as the terminal gets them, in colour."""
        return "".join(f"{self._area.encode(line)}\n" for line in lines)

    def markdown(self, text: str) -> list[Text]:
        """The lines of a finished text."""
        stream = MarkdownStream(self._console)
        return [*stream.add(text), *stream.end()]

    def __call__(self, number: int, event: Event) -> None:  # noqa: ARG002 - the shape of a subscriber
        """Take in one event."""
        self._live.take(event)
        was_waiting = False
        if isinstance(event, TextDelta | ToolCallDelta | ModelMessage | TurnEnded):
            was_waiting = self._running.end(WAITING) is not None
        self._show(event)
        if was_waiting and isinstance(event, TextDelta | ToolCallDelta) and self._area.is_drawn:
            self.tick()  # The first words of a reply do not wait for the next frame.

    def _show(self, event: Event) -> None:
        match event:
            case SessionOpened(model=model):
                self._is_offline = model == OFFLINE_LABEL
            case StepStarted():
                self._running.wait(WAITING, "waiting for the model")
            case TextDelta():
                self._show_text(event)
            case ModelMessage():
                self._end_message(event)
            case MessageAdded(text=text):
                self.line(safe_text(f"> {text.split(chr(10))[0]}", _PROMPT_STYLE))
            case Compacted() | WarningIssued() | ShellEnded() | ShellContinued():
                self._show_notice(event)
            case TurnStarted() | TurnEnded() | ServerChanged():
                pass
            case _:
                self._show_call(event)

    def begin(self, status: Callable[[], Sequence[str]] = tuple, activity: str = "") -> None:
        """A turn begins, or what `activity` names: ticks draw a status line until `finish`.

        What ends before the first tick, such as a look for queued messages, shows none.
        """
        self._status, self._activity, self._since = status, activity, time.monotonic()

    def tick(self) -> None:
        """Draw what came since the last tick; where nothing is drawn in place, print what runs now and then.

        What streams in is drawn here alone: however fast it comes, there are only as many frames as ticks, and one
        for the first words of each reply.
        """
        if self._is_paused:
            return
        if self._area.is_drawn:
            self._draw()
        elif time.monotonic() - self._drawn_at >= _PLAIN_INTERVAL_S:
            self._drawn_at = time.monotonic()
            self.lines(self._running.lines(self.width))

    def finish(self) -> None:
        """The turn is over: nothing runs any more, and others may print."""
        self._end_text()
        self._running.clear()
        self._typed = self._status = None
        self.hide()

    def hide(self) -> None:
        """Somebody else writes to the terminal for a while."""
        self.lines(())
        self._area.draw(())

    def pause(self, is_paused: bool) -> None:
        """Draw nothing while something else is drawn; what is finished is still printed."""
        if is_paused:
            self.hide()
        self._is_paused = is_paused
        if not is_paused:
            self._draw()

    def show_typed(self, line: str, cursor: int) -> None:
        """Show the line that is typed while the turn runs."""
        before, under, after = line[:cursor], line[cursor : cursor + 1], line[cursor + 1 :]
        parts = (safe_text(before), safe_text(under, "reverse"), safe_text(after))
        self._typed = Text.assemble(("> ", _PROMPT_STYLE), *parts) if line else None
        self._draw()

    def line(self, text: Text) -> None:
        """Print one line, wrapped by words."""
        lines = text.split("\n", allow_blank=True)
        self.lines([piece for one in lines for piece in fold(one, self.width, by_words=True)])

    def lines(self, lines: Sequence[Text]) -> None:
        """Print lines that fit the width."""
        complete, self._complete = self._complete, []
        self._area.print([*complete, *lines], self._unfinished())

    def _unfinished(self) -> list[Text]:
        """Streamed text, what runs, and the line that is typed."""
        if not self._area.is_drawn or self._is_paused:
            return []
        text = [] if self._text is None else self._text.tail()
        typed = [] if self._typed is None else [self._typed]
        return [*text, *self._running.lines(self.width), *self._status_line(), *typed]

    def _status_line(self) -> list[Text]:
        if self._status is None:
            return []
        is_writing = self._text is not None and self._text_kind == "text"
        activity = self._running.activity() or self._activity or ("writing" if is_writing else "thinking")
        parts = [f"{time.monotonic() - self._since:.0f} s", activity, _STOP_HINT, *filter(None, self._status())]
        room = max(self.width - 1, 1)
        while len(parts) > 1 and cell_len(f"● {_SEPARATOR.join(parts)}") > room:
            parts.pop()
        return [Text.assemble(("● ", "cyan"), safe_text(_SEPARATOR.join(parts), "dim"))]

    def _draw(self) -> None:
        self.lines(())
        self._drawn_at = time.monotonic()

    def _show_text(self, event: TextDelta) -> None:
        self._running.end_streamed()
        if self._text is None or self._text_kind != event.kind:
            self._end_text()
            self._text = MarkdownStream(self._console, "dim" if event.kind == "reasoning" else "")
            self._text_kind = event.kind
        self._has_streamed = self._has_streamed or event.kind == "text"
        complete = self._text.add(event.text)
        if self._area.is_drawn:
            self._complete += complete
        else:
            self.lines(complete)

    def _end_message(self, event: ModelMessage) -> None:
        self._running.end_streamed()
        if event.text and not self._has_streamed:
            self._show_text(TextDelta(event.text))
        self._has_streamed = False
        self._end_text()

    def _end_text(self) -> None:
        if self._text is not None:
            text, self._text = self._text, None
            self.lines(text.end())

    def _show_notice(self, event: Compacted | WarningIssued | ShellEnded | ShellContinued) -> None:
        match event:
            case Compacted():
                self.line(Text(format_compaction(event), "dim"))
                return
            case WarningIssued(text=text):
                self._end_text()  # The message may begin again.
                self._running.end_streamed()
                if event.wait_s:
                    self._running.wait(WAITING, "asking the model again", event.wait_s)
            case _:
                text = format_shell(event)
        self.line(Text.assemble(("! ", "yellow"), safe_text(runnable_hints(text))))

    def _show_call(self, event: _CallEvent) -> None:
        match event:
            case ToolCallDelta(index=index):
                if self._area.is_drawn:
                    self._end_text()
                    self._running.stream(index, self._live.streaming(index))
            case ToolCallCreated(call=call):
                self._summaries[call["call_id"]] = call.get("summary") or call["tool_name"]
                if call.get("requires_input"):
                    self._asking.add(call["call_id"])
            case ToolCallDecided(call_id=call_id):
                self._answered.add(call_id)
            case ToolCallStarted():
                self._show_start(event)
            case ToolCallProgress():
                self._running.show_output(event.call_id, event.text)
            case ToolCallFinished():
                self._show_end(event)
            case _ as never:
                assert_never(never)

    def _show_start(self, event: ToolCallStarted) -> None:
        self._summaries[event.call_id] = event.summary or event.tool_name
        attempt = f" (attempt {event.attempt})" if event.attempt > 1 else ""
        label = self._label(event.call_id, event.tool_name) + attempt
        # The live line shows what runs; a printed line would say it twice.
        if not self._area.is_drawn:
            self.line(Text.assemble(("● ", "cyan"), safe_text(label)))
        self._running.begin(event.call_id, label)
        self._draw()  # On a plain terminal the interval to the next line begins here.

    def _show_end(self, event: ToolCallFinished) -> None:
        took = self._running.end(event.call_id)
        if event.status == "interrupted" and event.reason == "paused":
            return  # Its sub-agent asks instead, or says why it cannot continue.
        end = ended_call(event)
        mark, style = _MARKS.get(end.word, ("?", "yellow"))
        seconds = "" if took is None else f"{' after' if end.by else ''} {took:.1f} s"
        reason = event.error or end.reason if event.status not in ("success", "interrupted") else ""
        phrase = f"{end.word}: {end.reason}" if event.status == "interrupted" and end.reason else end.phrase
        label = self._label(event.call_id, event.tool_name, event.summary)
        phrase += " outside the sandbox" if event.outside_sandbox else ""
        ending = safe_text(f"  {phrase}{seconds}", "dim")
        if reason:
            ending.append("  ").append_text(safe_text(reason.split("\n", 1)[0], style))
        shown = safe_text(label)
        if end.word == "stopped":  # The user who stopped it knows the command, and wants to read how far it got.
            shown.truncate(max(_SHORTEST_LABEL, self.width - 2 - ending.cell_len), overflow="ellipsis")
        line = Text.assemble((f"{mark} ", style), shown, ending)
        is_one_line = line.cell_len <= self.width
        self.lines([line] if is_one_line else fold(line, self.width, "", "  ", by_words=True))
        if event.status != "interrupted":  # The question that follows shows all that is known of it.
            self.lines(self._result_lines(event))

    def _result_lines(self, event: ToolCallFinished) -> list[Text]:
        width = self.width
        match event.metadata:
            case {"noted": str(fact)}:
                # It is in the prompt of every later conversation, so it is shown even where it was approved.
                line = safe_text(f"remembered for later conversations: {fact}  (undo: /memory undo)", "dim")
                return fold(line, width, "  ")
            case {"diff": {"unified": str(diff)}} if diff:
                # Who answered the question has seen the change there. The line above names the file.
                return [] if event.call_id in self._answered else hunk_lines(parse_diff(diff)[1], width)
            case {"todo": list(plan)} if plan:
                return [piece for line in format_todo(plan) for piece in fold(Text(line), width, "  ")]
            case {"answer": str(answer)}:
                return self.markdown(answer)
        if self._is_offline or not event.output.strip():
            return []
        output = event.output.rstrip("\n").split("\n")
        last = "\n".join(line.expandtabs() for line in output[-_OUTPUT_LINES:])
        hidden = len(output) - _OUTPUT_LINES
        name = event.call_id if len(event.call_id) <= _MAX_ID_LENGTH else event.call_id[-_SHORT_ID:]
        more = (
            [Text(f"  … {format_count(hidden, 'more line')}; /calls {name} shows all", "dim")] if hidden > 0 else []
        )
        return [*more, *block(last, width, style="dim", by_words=True)]

    def _label(self, call_id: str, tool_name: str, summary: str = "") -> str:
        summary = self._summaries.get(call_id) or summary
        if not summary or summary == tool_name or call_id in self._asking:
            return tool_name
        return summary if summary.lower().startswith(tool_name.lower()) else f"{tool_name} {summary}"
