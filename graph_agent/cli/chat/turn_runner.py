"""Runs a turn while the keyboard is watched: Esc and Ctrl-C stop it, lines typed meanwhile are kept for later.

Brings a chat's turn to rest: asks what is open until nothing is. Starts no turn with a message.

How a turn came to rest, and where the chat stands, in words for the person in it. Asks nothing.
"""

import asyncio
import signal
from collections.abc import Coroutine, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

from rich.console import Console
from rich.text import Text

from graph_agent.cli.chat.conversation import Conversation
from graph_agent.cli.chat.input_queue import InputQueue
from graph_agent.cli.errors import exit_code_of
from graph_agent.cli.exit_codes import ExitCode
from graph_agent.cli.prompts.approval import StopTurn
from graph_agent.cli.prompts.asking import QuestionPrompts
from graph_agent.cli.prompts.keys import Put
from graph_agent.cli.prompts.question import Prompt
from graph_agent.cli.prompts.terminal import InputClosed, InputInterrupted, Terminal
from graph_agent.cli.render.console import safe_text
from graph_agent.cli.render.escape import escape
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.cli.supervisor import catch_signals
from graph_agent.cli.views.format import format_short_usage, format_usage
from graph_agent.cli.views.table import text_width, truncate
from graph_agent.events import Event
from graph_agent.session.turn_result import TurnResult

__all__ = [
    "FAILED",
    "PendingResolver",
    "StyledLine",
    "TurnRunner",
    "has_fresh_budget",
    "result_lines",
    "status_text",
]

_TICK_SECONDS = 0.1
_Rested = TypeVar("_Rested", TurnResult, TurnResult | None)


class TurnRunner:
    """The turns of one chat, one at a time."""

    def __init__(self, terminal: Terminal, story: TurnDisplay) -> None:
        self._terminal = terminal
        self._story = story
        self.running: asyncio.Task[Any] | None = None
        """The last turn, whether it has ended or not."""
        self.meanwhile = InputQueue(self._say, terminal.remember)
        """What was typed while turns ran."""
        self.goes_on = False
        """Whether something was entered after the last turn had been stopped."""
        self.was_spoken_to = False
        """Whether something was entered while the last turn ran, or while there was none to run."""
        self._is_taking_back = False

    def tell(self, number: int, event: Event) -> None:
        """Take in an event, also one that comes while nothing runs and a line is being typed."""
        self._terminal.show(lambda: self._story(number, event))

    async def run(self, session: Conversation, work: Coroutine[Any, Any, _Rested]) -> _Rested:
        """Run until the graph rests; what is typed meanwhile waits."""
        self.running = running = asyncio.create_task(work)
        stopping: list[asyncio.Task[TurnResult]] = []
        self.goes_on = self.was_spoken_to = False
        entering: list[asyncio.Task[None]] = []
        story = self._story

        def enter(line: str) -> bool:
            if line.strip():
                self.goes_on = bool(stopping)
                self.was_spoken_to = True
                entering.append(asyncio.create_task(self.meanwhile.enter(session, line)))
            return True

        def back(put: Put) -> None:
            entering.append(asyncio.create_task(self._take_back(session, put)))

        def stop(_code: ExitCode = ExitCode.INTERRUPTED) -> None:
            if running.done() or not all(one.done() for one in stopping):
                return
            if not stopping:
                story.line(Text("stopping …", "yellow"))
            # A stop that came before there was anything to stop is not the last one.
            stopping.append(asyncio.create_task(session.stop()))

        with catch_signals(stop, signal.SIGINT):
            async with self._terminal.watched(stop, enter, story.typed, story.hide, back):
                while not running.done():
                    await asyncio.wait({running}, timeout=_TICK_SECONDS)
                    story.tick()
                # Not after the keyboard is let go: what is taken back comes onto the line that is typed.
                await _all_done(entering)
        await asyncio.gather(*stopping, *entering)
        story.rest()
        return running.result()

    async def _take_back(self, session: Conversation, put: Put) -> None:
        if self._is_taking_back:
            return
        self._is_taking_back = True
        try:
            if (text := await self.meanwhile.take_back(session)) is not None:
                put(text)
        finally:
            self._is_taking_back = False

    def _say(self, text: str) -> None:
        self._terminal.show(lambda: self._story.line(safe_text(text, "dim")))


async def _all_done(tasks: list[asyncio.Task[None]]) -> None:
    """Also those that are added while others are waited for."""
    while under_way := [task for task in tasks if not task.done()]:
        await asyncio.wait(under_way)


FAILED = ("model_error", "failed", "resumable")
"""Rests after which nothing is sent by itself."""

_WHOLE_ID = 20
_BETWEEN = " · "
_HINTS = {
    "model_error": "The model did not answer; /retry asks it again.",
    "resumable": "The last turn was broken off before the model answered; /retry asks it again.",
    "stopped": "Stopped.",
    "limit": "Say what to do instead, or let it go on with /retry.",
}
_OF_A_TURN = ("max_steps", "max_tokens", "max_cost")


class StyledLine(NamedTuple):
    """A line and how it is marked."""

    text: str
    style: str


def has_fresh_budget(rest: TurnResult) -> bool:
    """Whether going on is all that it takes: the turn used up a budget of its own."""
    return rest.status == "limit" and rest.budget in _OF_A_TURN


def result_lines(rest: TurnResult, *, was_asked: bool = False) -> Iterator[StyledLine]:
    """What is not plain to see of how a turn ended. What the person `was_asked` about is not told again."""
    if rest.error and not was_asked:
        yield StyledLine(rest.error, "red")
    if hint := _HINTS.get(rest.status):
        yield StyledLine(hint, "yellow")
    if rest.usage.get("total_tokens"):
        count = rest.usage["requests"]
        yield StyledLine(f"{count} {'request' if count == 1 else 'requests'}, {format_usage(rest.usage)}", "dim")


def status_text(session: Conversation, sandbox: str, usage: Mapping[str, Any], width: int = 1000) -> str:
    """The line below the prompt; where it is too wide it loses what matters least, never the thread."""
    # The whole id does not fit beside the model, and what is cut off is the end that the tables show.
    thread = session.thread_id if len(session.thread_id) <= _WHOLE_ID else f"…{session.thread_id[-8:]}"
    used = format_short_usage(usage).split(_BETWEEN) if usage.get("total_tokens") else []
    model, _, _ = session.model_label.partition(" @ ")
    mode = f"mode {session.mode}"
    ways = (
        (session.model_label, mode, sandbox, *used, f"thread {thread}"),
        (model, mode, sandbox, *used, thread),
        (model, session.mode, sandbox, *used[:1], thread),
        (model, session.mode, *used[:1], thread),
        (session.mode, *used[:1], thread),
        (session.mode, thread),
    )
    lines = [escape(_BETWEEN.join(filter(None, way))) for way in ways]
    return next((line for line in lines if text_width(line) <= width), truncate(thread, width))


class PendingResolver:
    """The questions of one chat."""

    def __init__(self, terminal: Terminal, console: Console, story: TurnDisplay, turning: TurnRunner) -> None:
        self._terminal = terminal
        self._console = console
        self._story = story
        self._turning = turning
        self.code = ExitCode.DONE
        """How the chat ends when it is left at a question."""

    async def settled(self, session: Conversation, rest: TurnResult) -> TurnResult:
        """Ask what is open until nothing is, and whether to go on where a budget of the turn is used up.

        Raises:
            Interrupted, Left: the person leaves; what is open stays so.
        """
        while rest.status in ("awaiting_approval", "interrupted") or has_fresh_budget(rest):
            if has_fresh_budget(rest):
                self._story.line(safe_text(rest.error or "", "red"))
                if not await self.agrees():
                    return rest
                rest = await self._turning.run(session, session.continue_turn())
                continue
            self._terminal.keep_typed()
            asking = QuestionPrompts(Prompt(session, self._terminal, self._story, self._console.width))
            try:
                await asking.ask_all(rest.questions)
            except StopTurn:
                rest = await self._turning.run(session, session.stop())
                continue
            except (InputInterrupted, InputClosed):
                left = [item for item in rest.questions if item.question.call_id not in asking.answered]
                self.code = exit_code_of(replace(rest, questions=tuple(left)))
                raise
            rest = await self._turning.run(session, session.proceed())
        return rest

    async def agrees(self) -> bool:
        """Whether the person says yes; to leave is to say no. Keys typed until the question stands do not count."""
        self._terminal.keep_typed()
        try:
            return (await self._terminal.answer("Go on? [y]es [n]o > ") or "").strip().lower() in ("y", "yes")
        except (InputInterrupted, InputClosed):
            return False
