"""Asks the client the open questions of a turn, and records each answer at once; the first answer counts.

A question that is answered elsewhere meanwhile is withdrawn from the client.
"""

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graph_agent.acp.jsonrpc import Connection, PeerError
from graph_agent.acp.permissions import Option, chosen_option, describe_coverage, options_for, protocol_options
from graph_agent.acp.tool_calls import question_content, text_content, tool_call_id
from graph_agent.acp.updates import SessionUpdates
from graph_agent.app.reader import read_database
from graph_agent.errors import AgentError, AnswerRefused
from graph_agent.inspect.calls import answer_words
from graph_agent.ports import Answer, GrantEffect, Proposal
from graph_agent.session.session import Session
from graph_agent.session.turn_result import OpenQuestion

__all__ = ["Questions"]

_LOOK_EVERY_S = 0.5
_RUNS = ("approve", "edit", "answer", "retry")
_log = logging.getLogger(__name__)


class Questions:
    """The questions of one session that the client is being asked."""

    def __init__(self, session_id: str, session: Session, client: Connection, updates: SessionUpdates) -> None:
        self._session_id = session_id
        self._session = session
        self._client = client
        self._updates = updates
        self._asking: dict[str, asyncio.Task[bool]] = {}
        """The permission requests under way, by the id that the client knows the call by."""
        self._items: dict[str, OpenQuestion] = {}
        self._answered: set[str] = set()
        """Those of them that were answered in another way."""

    async def ask(self, items: Sequence[OpenQuestion]) -> bool:
        """Ask all of them at once; returns whether each has its answer by now."""
        self._answered = set()
        self._items = {_id(item): item for item in items}
        loop = asyncio.get_running_loop()
        self._asking = {_id(item): loop.create_task(self._ask(item)) for item in items}
        if not self._asking:
            return True
        watching = loop.create_task(self._watch())
        try:
            await asyncio.wait(self._asking.values())
            done = {key: not task.cancelled() and task.result() for key, task in self._asking.items()}
            return all(is_answered or key in self._answered for key, is_answered in done.items())
        finally:
            watching.cancel()
            for task in self._asking.values():
                task.cancel()
            self._asking, self._items = {}, {}

    def drop(self) -> bool:
        """Withdraw all requests; their questions stay open. Returns whether there were any."""
        for task in self._asking.values():
            task.cancel()
        return bool(self._asking)

    async def answer_in_words(self, text: str, left: Sequence[OpenQuestion]) -> bool:
        """Take a message as the answer to a question of the model, if one is open; returns whether one was.

        Args:
            left: the questions that are open and that the client is not being asked.
        """
        for item in (*self._items.values(), *left):
            key = _id(item)
            if not item.call.get("requires_input") or item.question.kind != "approval" or key in self._answered:
                continue
            with contextlib.suppress(AnswerRefused):
                await self._session.decide(item.question, "answer", reason=text)
                self._answered.add(key)
                if (task := self._asking.get(key)) is not None:
                    task.cancel()
                return True
        return False

    async def show_sub_agents(self, items: Sequence[OpenQuestion], database: Path) -> None:
        """Show how the calls of sub-agents ended, whose events stay with the sub-agent."""
        asked = [(item.thread_id, item.question.call_id) for item in items if item.thread_id]
        if asked:
            for thread_id, record in await asyncio.to_thread(_read_records, database, asked):
                self._updates.show(record, thread_id)

    async def _ask(self, item: OpenQuestion) -> bool:
        proposals = await self._proposals(item)
        options = options_for(item, proposals)
        info = self._session.sandbox
        sandbox = f"{info.label}: {info.description}" if item.call["tool_name"] in info.tools else ""
        content = question_content(item, sandbox)
        if (coverage := describe_coverage(proposals.get("allow"))) and any(option.always for option in options):
            content.append(text_content(coverage))
        request = {
            "sessionId": self._session_id,
            "toolCall": self._updates.ask(item, content),
            "options": protocol_options(options),
        }
        try:
            outcome = await self._client.request("session/request_permission", request)
        except PeerError as error:
            _log.warning("the question about %s stays open: %s", _id(item), error)
            return False
        option = chosen_option(outcome, options)
        return option is not None and await self._decide(item, option)

    async def _proposals(self, item: OpenQuestion) -> dict[GrantEffect, Proposal]:
        """The rules that would allow such calls from now on, and those that would deny them."""
        if item.question.kind != "approval" or item.call.get("requires_input"):
            return {}
        effects: tuple[GrantEffect, ...] = ("allow", "deny")
        with contextlib.suppress(AnswerRefused):
            return {effect: await self._session.propose_grant(item.question, effect=effect) for effect in effects}
        return {}

    async def _decide(self, item: OpenQuestion, option: Option) -> bool:
        """Record what was chosen; False if it was refused, so that the question stays open."""
        session = self._session
        try:
            if option.answer == "retry" and item.processes and (left := await session.end_processes(item.question)):
                self._updates.say(f"Could not end pid {', '.join(map(str, left))}, so there was no retry.")
                return False
            answer = await session.decide(item.question, option.answer, reason=option.reason, always=option.always)
        except AnswerRefused as refusal:
            other = (await session.answers_from_others()).get(item.question.call_id)
            if other is None:
                self._updates.say(str(refusal))
                return False
            answer = other
        if item.thread_id or answer.by != session.by:
            self._show(item, answer)
        return True

    async def _watch(self) -> None:
        """Withdraw the requests for questions that others have answered."""
        while True:
            await asyncio.sleep(_LOOK_EVERY_S)
            try:
                answers = await self._session.answers_from_others()
            except AgentError as failure:
                _log.warning("%s", failure)
                continue
            for key, item in tuple(self._items.items()):
                answer = answers.get(item.question.call_id)
                task = self._asking.get(key)
                if answer is not None and task is not None and not task.done() and key not in self._answered:
                    self._answered.add(key)
                    self._show(item, answer)
                    task.cancel()

    def _show(self, item: OpenQuestion, answer: Answer) -> None:
        reason = f": {answer.reason}" if answer.reason else ""
        self._updates.decided(item, f"{answer_words(answer)}{reason}", runs=answer.kind in _RUNS)


def _id(item: OpenQuestion) -> str:
    return tool_call_id(item.question.call_id, item.thread_id)


def _read_records(database: Path, calls: Sequence[tuple[str, str]]) -> list[tuple[str, Mapping[str, Any]]]:
    with contextlib.suppress(AgentError), read_database(database) as reader:
        return [(thread_id, reader.call(thread_id, call_id).record) for thread_id, call_id in calls]
    return []
