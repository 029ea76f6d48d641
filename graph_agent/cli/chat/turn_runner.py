"""Run turns while the keyboard is read, ask the pending questions, and format how a turn ended."""

import asyncio
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from rich.text import Text

from graph_agent.cli.chat.input_queue import InputQueue
from graph_agent.cli.exit_codes import ExitCode, exit_code_of
from graph_agent.cli.prompts.prompt import Prompt
from graph_agent.cli.prompts.questions import PendingQuestions, StopTurn
from graph_agent.cli.prompts.terminal import InputClosed, InputInterrupted, Terminal, TurnKeys
from graph_agent.cli.render.console import safe_text
from graph_agent.cli.render.escape import escape
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.cli.supervisor import catch_signals
from graph_agent.cli.views.format import format_count, format_short_usage, format_usage
from graph_agent.cli.views.table import text_width, truncate
from graph_agent.events import Event, TurnEnded, TurnStarted
from graph_agent.session.turn_result import TurnResult

if TYPE_CHECKING:
    from graph_agent.session.session import Session

__all__ = ["FAILED", "Bell", "TurnRunner", "format_result", "format_status", "has_fresh_budget"]

FAILED = ("model_error", "failed", "resumable")
"""How a turn ended after which queued messages are not sent."""

_TICK_S = 0.1
_LONG_TURN_S = 20.0
_MAX_ID_LENGTH = 20
_SEPARATOR = " · "
_HINTS = {
    "model_error": "No answer from the model. /retry to try again.",
    "resumable": "The last turn was interrupted before the model answered. /retry to try again.",
    "stopped": "Stopped.",
    "limit": "Send new instructions, or continue with /retry.",
}
_TURN_BUDGETS = ("max_steps", "max_tokens", "max_cost")
_Result = TypeVar("_Result", TurnResult, TurnResult | None)


class TurnRunner:
    """The turns of one chat, one at a time."""

    def __init__(self, terminal: Terminal, display: TurnDisplay) -> None:
        self._terminal = terminal
        self._display = display
        self.running: asyncio.Task[Any] | None = None
        """The last turn, whether it has ended or not."""
        self.input_queue = InputQueue(self._say, terminal.remember)
        """What was entered while turns ran."""
        self.has_new_input = False
        """Whether something was entered after the last turn had been stopped."""
        self.had_input = False
        """Whether something was entered while the last turn ran, or while there was none to run."""
        self.exit_code = ExitCode.DONE
        """How the chat ends when the person leaves at a question."""
        self.pending = 0
        """How many questions were open then."""

    def show_event(self, number: int, event: Event) -> None:
        """Show an event, also one that comes while nothing runs and a line is being typed."""
        self._terminal.show(lambda: self._display(number, event))

    async def run(self, session: "Session", work: Coroutine[Any, Any, _Result]) -> _Result:
        """Run until the graph is idle or waits; lines entered meanwhile are queued."""
        self.running = running = asyncio.create_task(work)
        stopping: list[asyncio.Task[TurnResult]] = []
        entering: list[asyncio.Task[None]] = []
        self.has_new_input = self.had_input = False
        display = self._display

        def enter(line: str) -> bool:
            if line.strip():
                self.has_new_input = bool(stopping)
                self.had_input = True
                entering.append(asyncio.create_task(self.input_queue.enter(session, line)))
            return True

        def stop(_code: ExitCode = ExitCode.INTERRUPTED) -> None:
            if running.done() or not all(one.done() for one in stopping):
                return
            if not stopping:
                display.line(Text("stopping …", "yellow"))
            # A stop that came before there was anything to stop is not the last one.
            stopping.append(asyncio.create_task(session.stop()))

        keys = TurnKeys(stop, enter, display.show_typed, display.hide, lambda: self.input_queue.take_back(session))
        with catch_signals(stop, signal.SIGINT):
            async with self._terminal.during_turn(keys):
                while not running.done():
                    await asyncio.wait({running}, timeout=_TICK_S)
                    display.tick()
        await asyncio.gather(*stopping, *entering)
        display.finish()
        return running.result()

    async def resolve(self, session: "Session", result: TurnResult) -> TurnResult:
        """Ask until nothing is pending, also whether to continue where a budget of the turn is used up.

        Raises:
            InputInterrupted, InputClosed: the person leaves; unanswered questions stay pending.
        """
        while result.status in ("awaiting_approval", "interrupted") or has_fresh_budget(result):
            if has_fresh_budget(result):
                self._display.line(safe_text(result.error or "", "red"))
                if not await self.confirm():
                    return result
                result = await self.run(session, session.continue_turn())
                continue
            self._terminal.keep_typed()
            questions = PendingQuestions(Prompt(session, self._terminal, self._display))
            try:
                await questions.ask_all(result.questions)
            except StopTurn:
                result = await self.run(session, session.stop())
                continue
            except (InputInterrupted, InputClosed):
                left = [item for item in result.questions if item.question.call_id not in questions.answered]
                self.exit_code, self.pending = exit_code_of(replace(result, questions=tuple(left))), len(left)
                raise
            result = await self.run(session, session.proceed())
        return result

    async def confirm(self) -> bool:
        """Whether the person says yes; leaving is a no. Keys typed before the question is shown do not count."""
        self._terminal.keep_typed()
        try:
            answer = await self._terminal.answer("Continue? [y]es  [n]o > ")
        except (InputInterrupted, InputClosed):
            return False
        return (answer or "").strip().lower() in ("y", "yes")

    def _say(self, text: str) -> None:
        self._terminal.show(lambda: self._display.line(safe_text(text, "dim")))


class Bell:
    """A subscriber that rings the terminal's bell when a question waits or a long turn has ended."""

    def __init__(self, is_wanted: Callable[[], bool]) -> None:
        self._is_wanted = is_wanted
        """Asked only when there is a reason to ring: it reads the settings."""
        self._since = time.monotonic()

    def __call__(self, number: int, event: Event) -> None:  # noqa: ARG002 - the shape of a subscriber
        """Take in one event."""
        if isinstance(event, TurnEnded):
            is_long = time.monotonic() - self._since >= _LONG_TURN_S
            if (is_long or event.status in ("awaiting_approval", "interrupted")) and self._is_wanted():
                sys.stdout.write("\a")
                sys.stdout.flush()
        if isinstance(event, TurnStarted | TurnEnded):
            self._since = time.monotonic()


def has_fresh_budget(result: TurnResult) -> bool:
    """Whether the turn used up a budget of its own, so that continuing it is enough."""
    return result.status == "limit" and result.budget in _TURN_BUDGETS


def format_result(result: TurnResult, *, was_asked: bool = False) -> Iterator[tuple[str, str]]:
    """How a turn ended, where the screen does not show it yet, as lines and their styles.

    An error that was just asked about is left out.
    """
    if result.error and not was_asked:
        yield result.error, "red"
    if hint := _HINTS.get(result.status):
        yield hint, "yellow"
    if result.usage.get("total_tokens"):
        yield f"{format_count(result.usage['requests'], 'request')}, {format_usage(result.usage)}", "dim"


def format_status(session: "Session", sandbox: str, usage: Mapping[str, Any], width: int = 1000) -> str:
    """The line below the prompt; where it is too wide it loses the least important parts, never the thread."""
    # The whole id does not fit beside the model; tables show the end of it.
    thread = session.thread_id if len(session.thread_id) <= _MAX_ID_LENGTH else f"…{session.thread_id[-8:]}"
    used = format_short_usage(usage).split(_SEPARATOR) if usage.get("total_tokens") else []
    model, _, _ = session.model_label.partition(" @ ")
    candidates = (
        (session.model_label, f"mode {session.mode}", sandbox, *used, f"thread {thread}"),
        (model, f"mode {session.mode}", sandbox, *used, thread),
        (model, session.mode, sandbox, *used[:1], thread),
        (model, session.mode, *used[:1], thread),
        (session.mode, *used[:1], thread),
        (session.mode, thread),
    )
    lines = [escape(_SEPARATOR.join(filter(None, parts))) for parts in candidates]
    return next((line for line in lines if text_width(line) <= width), truncate(thread, width))
