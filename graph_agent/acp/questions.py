"""Asks the client the open questions of a turn, and records each answer at once; the first answer counts.

A stored question is a permission request with options, each of which stands for an answer. Some clients pick an
option by themselves: the first one, or the first of a kind. So the first option of a request, and of each kind in
it, is the harmless one. A question that is answered elsewhere meanwhile is withdrawn from the client.
"""

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from graph_agent.acp.jsonrpc import Connection, PeerError
from graph_agent.acp.tool_calls import question_content, text_content, tool_call_id
from graph_agent.acp.updates import SessionUpdates
from graph_agent.app.reader import read_database
from graph_agent.calls import PLAN_TOOL, question_and_options
from graph_agent.errors import AgentError, AnswerRefused
from graph_agent.events import AnswerKind
from graph_agent.inspect.calls import answer_words
from graph_agent.ports import (
    AlwaysRules,
    Answer,
    GrantEffect,
    GrantScope,
    Proposal,
    RuleChoice,
    rules_with_folders,
)
from graph_agent.ports.storage import ANSWER_POLL_S
from graph_agent.session.session import Session
from graph_agent.session.turn_result import OpenQuestion

__all__ = ["Option", "Questions", "chosen_option", "describe_coverage", "options_for", "protocol_options"]

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

    async def _decide(self, item: OpenQuestion, option: "Option") -> bool:
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
            await asyncio.sleep(ANSWER_POLL_S)
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


OptionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]

_SCOPES: tuple[tuple[GrantScope, str], ...] = (("thread", "in this session"), ("project", "in this project"))
_RULES: tuple[RuleChoice, ...] = ("exact", "prefix")
_EFFECTS: tuple[GrantEffect, ...] = ("allow", "deny")
_ALWAYS_KINDS: Mapping[GrantEffect, OptionKind] = {"allow": "allow_always", "deny": "reject_always"}
_MAX_CHARS = 160
"""Of a rule on a button."""


class Option(NamedTuple):
    """One option of a permission request, and the answer that it stands for."""

    id: str
    name: str
    kind: OptionKind
    answer: AnswerKind
    reason: str = ""
    always: AlwaysRules | None = None


_APPROVAL = (
    Option("reject", "Reject", "reject_once", "reject"),
    Option("approve", "Run once", "allow_once", "approve"),
)
_RECOVERY = (
    Option("cancel", "Cancel: do not run it again", "reject_once", "cancel"),
    Option("done", "Mark as done: it happened", "allow_once", "done"),
    Option("retry", "Retry: run it again", "allow_once", "retry"),
)
_SKIP = Option("skip", "Do not answer", "reject_once", "reject")
_KEEP_PLANNING = Option("skip", "Keep planning", "reject_once", "reject")


def options_for(item: OpenQuestion, proposals: Mapping[GrantEffect, Proposal] | None = None) -> tuple[Option, ...]:
    """The options of a question; with proposals also those that allow, or deny, such calls from now on."""
    if item.question.kind == "recovery":
        return _RECOVERY
    if item.call.get("requires_input"):
        first = _KEEP_PLANNING if item.call["tool_name"] == PLAN_TOOL else _SKIP
        answers = question_and_options(item.call)[1]
        given = (
            Option(f"answer-{number}", answer, "allow_once", "answer", answer)
            for number, answer in enumerate(answers, 1)
        )
        return (first, *given)
    stored = [option for effect in _EFFECTS for option in _always_options(effect, (proposals or {}).get(effect))]
    return (*_APPROVAL, *stored)


def protocol_options(options: Sequence[Option]) -> list[Mapping[str, str]]:
    """The options as the protocol writes them."""
    return [{"optionId": option.id, "name": option.name, "kind": option.kind} for option in options]


def chosen_option(outcome: Any, options: Sequence[Option]) -> Option | None:
    """The option that a client's response selects; None if it selects none of them, or was cancelled."""
    chosen = outcome.get("outcome") if isinstance(outcome, Mapping) else None
    if not isinstance(chosen, Mapping) or chosen.get("outcome") != "selected":
        return None
    return next((option for option in options if option.id == chosen.get("optionId")), None)


def describe_coverage(proposal: Proposal | None) -> str:
    """What the options that allow such calls from now on cover, as sentences; empty if there are none."""
    choices = [proposal.choice(rule) for rule in _RULES] if proposal else []
    return " ".join(dict.fromkeys(f"Always: {choice.coverage}" for choice in choices if choice and choice.coverage))


def _always_options(effect: GrantEffect, proposal: Proposal | None) -> Iterator[Option]:
    """The narrowest first: this very call, then every call that begins the same."""
    if proposal is None:
        return
    word = "Always" if effect == "allow" else "Never"
    answer: AnswerKind = "approve" if effect == "allow" else "reject"
    for rule in _RULES:
        choice = proposal.choice(rule)
        shown = ", ".join(rules_with_folders(choice)) if choice else ""
        if choice is None or len(shown) > _MAX_CHARS:
            continue  # Nobody may store a rule of which not all is shown.
        for scope, where in _SCOPES:
            always = AlwaysRules(scope, choice.rules, proposal.folder, choice.folders, choice.prefixes, effect)
            option_id, name = f"{word.lower()}-{rule}-{scope}", f"{word} {where}: {shown}"
            yield Option(option_id, name, _ALWAYS_KINDS[effect], answer, always=always)
