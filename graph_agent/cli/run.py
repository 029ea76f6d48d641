"""One turn without a person: settle what is open, send the prompt, say how it ended.

The answer goes to stdout and news to stderr; nothing here needs a terminal.
"""

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from graph_agent.cli.codes import Exit
from graph_agent.cli.conversation import Conversation, Opener
from graph_agent.cli.escape import escape
from graph_agent.cli.exits import exit_for
from graph_agent.cli.left_open import left_open, shared_ids
from graph_agent.cli.logs import debugged
from graph_agent.cli.news import News
from graph_agent.cli.own_stdout import own_stdout
from graph_agent.cli.report import failure_report, rest_report, resume_lines, waiting_lines
from graph_agent.cli.settle import Settlement, settle
from graph_agent.cli.supervise import Cut, supervised, until_cut
from graph_agent.errors import AgentError
from graph_agent.events import (
    Event,
    EventBus,
    SessionOpened,
    ShellEnded,
    ShellKept,
    StepStarted,
    TurnStarted,
    Warned,
    event_to_json,
)
from graph_agent.events.live import LiveCalls
from graph_agent.session.api import Rest

__all__ = ["OutputFormat", "RunOrder", "run_headless"]

OutputFormat = Literal["text", "json", "stream-json"]


@dataclass(frozen=True, slots=True)
class RunOrder:
    """What a headless run is to do."""

    prompt: str | None
    """None: only go on with what is there."""
    output: OutputFormat = "text"
    settlement: Settlement = field(default_factory=Settlement)
    timeout_seconds: float | None = None
    thread_id: str | None = None
    """The thread as it was named, for reports of a run that could not open it."""
    database: Path | None = None
    """Where to look what a run that was cut short has left open."""


def run_headless(order: RunOrder, opener: Opener, listens: Callable[[], None] = lambda: None) -> int:
    """Run to the end; returns the exit code. `listens` is told when signals are about to be heard by the run."""

    async def run() -> int:
        listens()
        return await _Run(order, opener).run()

    return asyncio.run(run())


class _Run:
    def __init__(self, order: RunOrder, opener: Opener) -> None:
        self._order = order
        self._opener = opener
        self._bus = EventBus(begins_with="started")
        self._news = News()
        self._write = own_stdout()
        self._calls = LiveCalls()
        self._thread_id = order.thread_id
        self._has_checkpoint = False
        self._steps = 0
        self._last_number = 0
        self._bus.subscribe(self._take)
        match order.output:
            case "text":
                self._bus.subscribe(self._news)
            case "json":
                self._bus.subscribe(self._tell_beside)

    async def run(self) -> int:
        try:
            opened = await until_cut(self._open())
        except AgentError as failure:
            return self._failed(failure)
        if opened.code is not None or opened.result is None:
            if opened.result is not None:
                await opened.result.close()
            return self._suspended(opened.code or Exit.FAILED)
        return await self._worked(opened.result)

    async def _open(self) -> Conversation:
        return await self._opener(self._bus)

    async def _worked(self, session: Conversation) -> int:
        self._thread_id = session.thread_id
        try:
            cut = await supervised(session, self._work(session), timeout_seconds=self._order.timeout_seconds)
        except AgentError as failure:
            return self._failed(failure)
        finally:
            await session.close()
        return self._ended(cut)

    async def _work(self, session: Conversation) -> Rest:
        rest = await settle(session, await session.start(), self._order.settlement)
        prompt = self._order.prompt
        if rest.questions:
            return await self._kept(session, rest)
        is_over = bool(self._steps)
        if prompt is None and rest.status == "broken_off":
            rest, is_over = await session.continue_turn(), True
        if prompt is None and is_over and rest.status != "done":
            return rest
        while (sent := await session.send_queued()) is not None:
            if sent.status != "done":
                return await self._kept(session, sent)
            rest, is_over = sent, True
        if prompt is not None:
            return await session.send(prompt)
        return rest if is_over else await session.continue_turn()

    async def _kept(self, session: Conversation, rest: Rest) -> Rest:
        """The rest of a run that cannot send its prompt yet: it waits in the inbox."""
        if self._order.prompt is not None:
            await session.queue(self._order.prompt)
            self._news.tell("graph-agent: the prompt is kept and sent once what is open has been settled")
        return rest

    def _ended(self, cut: Cut[Rest]) -> int:
        rest = cut.result
        if rest is None or cut.code not in (None, Exit.INTERRUPTED):
            return self._suspended(cut.code or Exit.FAILED)
        code = cut.code or exit_for(rest)
        shared = shared_ids(self._order.database) if rest.questions else frozenset()
        self._print(rest_report(rest, shared), rest.answer)
        if self._order.output == "text":
            self._explain(rest, shared)
        self._has_checkpoint = bool(rest.checkpoint_id)
        if code is not Exit.DONE:
            self._tell_resume()
        return code

    def _explain(self, rest: Rest, shared: frozenset[str]) -> None:
        for line in waiting_lines(rest, shared):
            self._news.tell(line)
        if error := rest.error or rest.unmet:
            self._news.tell(f"graph-agent: {error}")

    def _suspended(self, code: Exit) -> int:
        """Ended by a signal or the time limit, with the rest left to a later life."""
        limit = self._order.timeout_seconds
        is_limit = code is Exit.LIMIT
        error = f"the time limit of {limit:g} s was reached" if is_limit and limit else "ended by a signal"
        self._news.tell(f"graph-agent: {error}")
        left = left_open(self._order.database, self._thread_id)
        self._has_checkpoint = self._has_checkpoint or left.checkpoint_id is not None
        self._print(failure_report("limit" if is_limit else "stopped", error, self._thread_id, left), "")
        self._tell_resume()
        return code

    def _failed(self, failure: AgentError) -> int:
        self._bus.release()
        status = {Exit.MODEL: "model_error", Exit.HELD: "held"}.get(Exit(failure.exit_code), "failed")
        self._news.tell(f"graph-agent: {failure}")
        if told := debugged(failure):
            self._news.tell(told)
        self._print(failure_report(status, str(failure), self._thread_id), "")
        self._tell_resume()
        return failure.exit_code

    def _tell_resume(self) -> None:
        """Only where there is something to go on from."""
        if self._thread_id and self._has_checkpoint:
            for line in resume_lines(self._thread_id):
                self._news.tell(line)

    def _print(self, report: Mapping[str, Any], answer: str) -> None:
        match self._order.output:
            case "text":
                if answer:
                    self._write(f"{escape(answer, multiline=True)}\n")
            case "json":
                self._print_line(report)
            case "stream-json":
                self._print_line({"seq": self._last_number + 1, "type": "result", **report})

    def _take(self, number: int, event: Event) -> None:
        self._last_number = number
        self._steps += isinstance(event, StepStarted)
        if isinstance(event, TurnStarted) or (isinstance(event, SessionOpened) and event.checkpoint_id):
            self._has_checkpoint = True
        if self._order.output == "stream-json":
            call = self._calls.take(event)
            state = {} if call is None else {"state": call.state}
            self._print_line({"seq": number, **event_to_json(event), **state})

    def _tell_beside(self, number: int, event: Event) -> None:
        """What is to be noted, and what goes on in the background, is no part of the one object that is printed."""
        if isinstance(event, ShellEnded | ShellKept | Warned):
            self._news(number, event)

    def _print_line(self, values: Mapping[str, Any]) -> None:
        self._write(f"{json.dumps(values, ensure_ascii=False)}\n")
