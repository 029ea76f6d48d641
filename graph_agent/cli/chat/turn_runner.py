"""Run turns while the keyboard is read, ask the pending questions, and format how a turn ended."""

import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from rich.text import Text

from graph_agent.cli.chat.input_queue import InputQueue
from graph_agent.cli.exit_codes import ExitCode, exit_code_of
from graph_agent.cli.prompts.prompt import Prompt
from graph_agent.cli.prompts.questions import PendingQuestions, StopTurn
from graph_agent.cli.prompts.terminal import InputCancelled, InputClosed, Terminal, TurnKeys
from graph_agent.cli.prompts.terminal_output import BELL, Notifier
from graph_agent.cli.render.console import safe_text
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.cli.supervisor import catch_signals
from graph_agent.cli.views.table import text_width, truncate
from graph_agent.config.model_choice import OFFLINE_LABEL
from graph_agent.events import Event, MessageAdded, ModelMessage, SessionOpened, StepStarted, TurnEnded, TurnStarted
from graph_agent.ports.usage import add_usage, format_short_cost, usage_report
from graph_agent.session.turn_result import TurnResult
from graph_agent.wording import escape

if TYPE_CHECKING:
    from graph_agent.session.session import Session

__all__ = [
    "FAILED",
    "Announcer",
    "TurnRunner",
    "format_background",
    "format_result",
    "format_status",
    "has_fresh_budget",
]

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
    **dict.fromkeys(
        ("awaiting_approval", "interrupted"),
        "Left open. Enter asks again; a message waits until the turn has ended.",
    ),
    "limit": "Send new instructions, or continue with /retry.",
}
_ANNOUNCED = {
    "awaiting_approval": "approval needed",
    "interrupted": "decision needed",
    **dict.fromkeys(FAILED, "failed"),
    "limit": "stopped at a limit",
    "stopped": "stopped",
}
_TURN_BUDGETS = ("max_steps", "max_tokens", "max_cost")
_Result = TypeVar("_Result", TurnResult, TurnResult | None)


class TurnRunner:
    """The turns of one chat, one at a time."""

    def __init__(self, terminal: Terminal, display: TurnDisplay, queue: InputQueue | None = None) -> None:
        self._terminal = terminal
        self._display = display
        self.running: asyncio.Task[Any] | None = None
        """The last turn, whether it has ended or not."""
        terminal.say = self.say
        self.input_queue = queue or InputQueue(self.say, terminal.remember)
        """What was entered while the chat loaded and while turns ran."""
        self.has_new_input = False
        """Whether something was entered after the last turn had been stopped."""
        self.had_input = False
        """Whether something was entered while the last turn ran, or while there was none to run."""
        self.exit_code = ExitCode.DONE
        """How the chat ends if the person leaves now."""
        self.show_tasks: Callable[[Session], Awaitable[str]] | None = None
        """`/tasks` while a turn runs; the thread that the person wants to see."""
        self.pending = 0
        """How many questions the person has left open."""
        self.status_items: Sequence[str] = ()
        """What the status line shows; empty: the default."""
        self._context_percent: int | None = None
        """How much of the context window the last request filled."""
        self._has_context = True
        self._head = ""
        """The checkpoint at which the last turn ended."""
        self._usage: Mapping[str, Any] = {}
        """What the thread has used until now."""
        self._is_queue_counted = False
        """False from when the turn takes a queued message until they are counted again."""

    def load(self) -> dict[str, str]:
        """How full the `context` is, and the `cost` of the thread; without what is not known."""
        context = "" if self._context_percent is None else f"{self._context_percent}% context"
        parts = {"context": context, "cost": format_short_cost(usage_report(self._usage))}
        return {name: text for name, text in parts.items() if text}

    def show_event(self, number: int, event: Event) -> None:
        """Show an event, also one that comes while nothing runs and a line is being typed."""
        match event:
            case SessionOpened(model=model, checkpoint_id=checkpoint):
                if checkpoint != self._head:  # Else it is the same conversation, reopened.
                    self._context_percent, self._usage = None, {}
                self._has_context = model != OFFLINE_LABEL
            case TurnEnded(checkpoint_id=checkpoint):
                self._head = checkpoint
            case StepStarted(context_percent=percent) if self._has_context:
                self._context_percent = percent
            case ModelMessage(usage=usage):
                self._usage = add_usage(self._usage, usage)
            case MessageAdded():
                self._is_queue_counted = False
        self._terminal.show(lambda: self._display(number, event))

    async def run(self, session: "Session", work: Coroutine[Any, Any, _Result]) -> _Result:
        """Run until the graph is idle or waits; lines entered meanwhile are queued."""
        self.running = running = asyncio.create_task(work)
        stopping: list[asyncio.Task[TurnResult]] = []
        entering: list[asyncio.Task[None]] = []
        showing: list[asyncio.Task[None]] = []
        self.has_new_input = self.had_input = self._is_queue_counted = False
        display = self._display

        def enter(line: str, is_urgent: bool) -> bool:
            line = line if line.strip() or not is_urgent else "/now"
            if line.strip() == "/tasks":
                showing.append(asyncio.create_task(self._show_tasks(session)))
            elif line.strip():
                self.has_new_input = bool(stopping)
                self.had_input = True
                entering.append(asyncio.create_task(self.input_queue.enter(session, line, is_urgent=is_urgent)))
            return True

        def stop(_code: ExitCode = ExitCode.INTERRUPTED) -> None:
            if running.done() or not all(one.done() for one in stopping):
                return
            if not stopping:
                display.line(Text("stopping …", "yellow"))
            # A stop that came before there was anything to stop is not the last one.
            stopping.append(asyncio.create_task(session.stop()))

        keys = TurnKeys(
            stop,
            enter,
            display.show_typed,
            display.hide,
            display.pause,
            lambda: self.input_queue.take_back(session),
        )
        with catch_signals(stop, signal.SIGINT):
            async with self._terminal.during_turn(keys):
                display.begin(lambda: self._status_parts(session))
                while not running.done() or not all(one.done() for one in showing):
                    await asyncio.wait({one for one in (running, *showing) if not one.done()}, timeout=_TICK_S)
                    if not running.done():
                        await self._tick(session)
        await asyncio.gather(*stopping, *entering, *showing)
        display.finish()
        self._take_usage(running.result())
        return running.result()

    def _status_parts(self, session: "Session") -> list[str]:
        """What the status line says during a turn, besides what runs and for how long."""
        chosen: Sequence[str] = self.status_items or ("context", "cost", "mode", "model")
        queued = f"{self.input_queue.waiting} queued" if self.input_queue.waiting else ""
        background = format_background(session.background_count)
        return [self._terminal.vi_mark, queued, background, *_chosen_parts(session, "", self.load(), chosen)]

    async def _tick(self, session: "Session") -> None:
        if not self._is_queue_counted:
            self._is_queue_counted = True
            await self.input_queue.count(session)
        self._display.tick()

    async def _show_tasks(self, session: "Session") -> None:
        if self.show_tasks is not None and (thread_id := await self.show_tasks(session)):
            await self.input_queue.enter(session, f"/resume {thread_id}")

    def _take_usage(self, result: TurnResult | None) -> None:
        if result is not None and result.thread_usage:
            known = {name: value for name, value in result.thread_usage.items() if value is not None}
            self._usage = {**known, "unpriced_requests": int("cost" not in known)}

    async def resolve(self, session: "Session", result: TurnResult) -> TurnResult:
        """Ask until nothing is pending, also whether to continue where a budget of the turn is used up.

        Questions that the person leaves stay pending, and are part of the result.

        Raises:
            InputClosed: the person leaves the chat at a question.
        """
        self.exit_code, self.pending = ExitCode.DONE, 0
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
            except (InputCancelled, InputClosed) as leaving:
                left = [item for item in result.questions if item.question.call_id not in questions.answered]
                result = replace(result, questions=tuple(left))
                self.exit_code, self.pending = exit_code_of(result), len(left)
                if isinstance(leaving, InputClosed):
                    raise
                return result
            result = await self.run(session, session.proceed())
        return result

    async def confirm(self) -> bool:
        """Whether the person says yes; leaving is a no. Keys typed before the question is shown do not count."""
        self._terminal.keep_typed()
        try:
            answer = await self._terminal.answer("Continue? [y]es  [n]o > ")
        except (InputCancelled, InputClosed):
            return False
        return (answer or "").strip().lower() in ("y", "yes")

    def say(self, text: str) -> None:
        """Show a line, also above what is drawn."""
        self._terminal.show(lambda: self._display.line(safe_text(text, "dim")))


class Announcer:
    """A subscriber that notifies the user when a question waits or a turn has ended.

    With `rings`, the bell also rings while the terminal has the focus: for a question, and after a long turn.
    """

    def __init__(self, notifier: Notifier, rings: Callable[[], bool]) -> None:
        self._notifier = notifier
        self._rings = rings
        """Asked only when there is a reason to ring: it reads the settings."""
        self._since = time.monotonic()
        self._folder = ""

    def __call__(self, number: int, event: Event) -> None:  # noqa: ARG002 - the shape of a subscriber
        """Take in one event."""
        match event:
            case SessionOpened(workspace=workspace):
                self._folder = Path(workspace).name
            case TurnStarted():
                self._notifier.restore_title()
                self._since = time.monotonic()
            case TurnEnded(status=status):
                is_long = time.monotonic() - self._since >= _LONG_TURN_S
                rings = (is_long or status in ("awaiting_approval", "interrupted")) and self._rings()
                if rings:
                    sys.stdout.write(BELL)
                    sys.stdout.flush()
                self._notifier.notify(_ANNOUNCED.get(status, "finished"), self._folder, has_rung=rings)
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


def format_background(count: int) -> str:
    """How many commands run in the background; empty if none does."""
    return f"{count} in background" if count else ""


def _chosen_parts(session: "Session", sandbox: str, load: Mapping[str, str], items: Sequence[str]) -> list[str]:
    """The parts of a status line that the setting `status_line` names, in its order.

    Args:
        load: see `TurnRunner.load`.
    """
    # The whole id does not fit beside the model; tables show the end of it.
    thread = session.thread_id if len(session.thread_id) <= _MAX_ID_LENGTH else f"…{session.thread_id[-8:]}"
    model, _, _ = session.model_label.partition(" @ ")
    parts = {"model": model, "mode": session.mode, "sandbox": sandbox, "thread": thread, **load}
    parts["folder"] = session.workspace.name or str(session.workspace)
    return [part for part in map(parts.get, items) if part]


def format_status(
    session: "Session", sandbox: str, load: Mapping[str, str], width: int = 1000, items: Sequence[str] = ()
) -> str:
    """The line below the prompt, with the chosen items or the default ones.

    Where it is too wide it loses its last parts; the default loses the least important ones, and never the thread.
    """
    model, thread = _chosen_parts(session, sandbox, load, ("model", "thread"))
    if items:
        chosen = _chosen_parts(session, sandbox, load, items)
        candidates = [chosen[:number] for number in range(len(chosen), 0, -1)]
    else:
        candidates = [
            [session.model_label, f"mode {session.mode}", sandbox, *load.values(), f"thread {thread}"],
            [model, f"mode {session.mode}", sandbox, *load.values(), thread],
            *(_chosen_parts(session, sandbox, load, names) for names in _NARROWER),
        ]
    lines = [escape(_SEPARATOR.join(filter(None, parts))) for parts in candidates]
    return next((line for line in lines if text_width(line) <= width), truncate(thread, width))


_NARROWER = (
    ("model", "mode", "sandbox", "background", "context", "thread"),
    ("model", "mode", "background", "context", "thread"),
    ("mode", "background", "context", "thread"),
    ("mode", "background", "thread"),
    ("mode", "thread"),
)
