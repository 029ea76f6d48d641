"""Asks the open questions of a thread one by one and records each answer at once.

Nothing runs in here: the session goes on only when every question has its answer. A question that somebody else
answers meanwhile disappears, saying by whom.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from rich.text import Text

from graph_agent.cli.ask.choices import APPROVAL, END, MORE, RECOVERY, Choice, choice_line, chosen
from graph_agent.cli.ask.editing import NotEdited, edited_arguments
from graph_agent.cli.conversation import Conversation
from graph_agent.cli.render.lines import marked
from graph_agent.cli.render.page import approval_page, recovery_page
from graph_agent.cli.render.story import Story
from graph_agent.errors import AnswerRefused
from graph_agent.ports import Answer, AnswerKind
from graph_agent.session.api import OpenQuestion

__all__ = ["Asking", "Keyboard", "StopTurn"]

_POLL_SECONDS = 0.3
_PAGE_LINES = 400
"""A longer page is shown in parts; its rest must be opened before anything can be approved."""
_WORDS: dict[str, str] = {
    "approve": "yes",
    "edit": "yes, with edited arguments",
    "reject": "no",
    "retry": "retry",
    "done": "done",
    "cancel": "cancel",
}


class Keyboard(Protocol):
    """What asking needs of the terminal."""

    async def answer(self, prompt: str, gone: Awaitable[object] | None = None) -> str | None: ...

    def drop_typed_ahead(self) -> None: ...

    def given_away(self) -> AbstractContextManager[None]: ...


class StopTurn(Exception):
    """The answer was to stop the turn."""


@dataclass(frozen=True, slots=True)
class Asking:
    """The prompt of one chat."""

    session: Conversation
    terminal: Keyboard
    story: Story
    width: int
    answered: set[str] = field(default_factory=set)
    """Calls whose question has an answer by now, from here or elsewhere."""

    async def ask_all(self, questions: Sequence[OpenQuestion]) -> None:
        """Ask every question.

        Raises:
            StopTurn: the person wants the turn stopped instead.
            Interrupted, Left: the person leaves; what was answered stays answered, the rest stays open.
        """
        for number, item in enumerate(questions, 1):
            place = f"{number} of {len(questions)}" if len(questions) > 1 else ""
            if item.question.kind == "approval":
                await self._ask_approval(item, place)
            else:
                await self._ask_recovery(item, place)
            self.answered.add(item.question.call_id)

    async def _ask_approval(self, item: OpenQuestion, place: str) -> None:
        edited: Mapping[str, Any] | None = None
        page = self._approval_page(item, place, edited)
        while key := await self._key(item, page, APPROVAL):
            page = []
            if key == "e":
                edited = await self._edit(item.call["arguments"] if edited is None else edited) or edited
                page = self._approval_page(item, place, edited)
            elif await self._approval_stands(item, key, edited):
                return

    async def _approval_stands(self, item: OpenQuestion, key: str, edited: Mapping[str, Any] | None) -> bool:
        match key:
            case "y":
                return await self._decide(item, "approve" if edited is None else "edit", arguments=edited)
            case "n":
                return await self._decide(item, "reject")
            case "r":
                reason = await self.terminal.answer("Reason: ") or ""
                return await self._decide(item, "reject", reason=reason.strip())
            case _:
                raise StopTurn

    async def _ask_recovery(self, item: OpenQuestion, place: str) -> None:
        page = recovery_page(item, self.width, place)
        choices = (*RECOVERY, END) if item.processes else RECOVERY
        while key := await self._key(item, page, choices):
            page = []
            if key == END.key:
                choices = (*RECOVERY, END) if await self._end_processes(item) else RECOVERY
                continue
            if key == "d":
                result = await self.terminal.answer("What did it do? The model is told: ") or ""
                is_answered = await self._decide(item, "done", reason=result.strip())
            else:
                is_answered = await self._decide(item, "retry" if key == "r" else "cancel")
            if is_answered:
                return

    async def _end_processes(self, item: OpenQuestion) -> tuple[int, ...]:
        left = await self.session.end_processes(item.question)
        named = ", ".join(map(str, left))
        self.story.line(Text(f"These could not be ended: pid {named}" if left else "Nothing of it runs any more."))
        return left

    async def _key(self, item: OpenQuestion, page: list[Text], choices: Sequence[Choice]) -> str | None:
        """The key a person chose; None when the question was answered elsewhere."""
        if standing := (await self.session.answered_elsewhere()).get(item.question.call_id):
            self._tell_elsewhere(item, standing)
            return None
        self.terminal.drop_typed_ahead()
        rest = self._show(page)
        while True:
            offered = (*choices, MORE) if rest else choices
            gone = asyncio.create_task(self._answered_elsewhere(item))
            line = await self.terminal.answer(choice_line(offered), gone)
            if line is None:
                self._tell_elsewhere(item, gone.result())
                return None
            key = chosen(line, offered)
            if key == MORE.key:
                rest = self._show(rest)
            elif key is None:
                self.story.line(
                    Text(f"Please answer with one of: {', '.join(one.key for one in offered)}", "yellow")
                )
            elif rest and key in ("y", "e"):
                self.story.line(Text("Part of it is not shown yet; open it first with m.", "yellow"))
            else:
                return key

    def _show(self, page: list[Text]) -> list[Text]:
        """Print as much as is shown at once; returns the rest."""
        self.story.lines(page[:_PAGE_LINES])
        rest = page[_PAGE_LINES:]
        if rest:
            self.story.line(Text(f"… {len(rest)} more lines: m shows them", "bold yellow"))
        return rest

    def _tell_elsewhere(self, item: OpenQuestion, answer: Answer) -> None:
        said = _WORDS[answer.kind]
        why = f" ({answer.reason})" if answer.reason else ""
        self.story.line(marked(f"{item.call['tool_name']}: answered by {answer.by}: {said}{why}", "bold"))

    async def _answered_elsewhere(self, item: OpenQuestion) -> Answer:
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            if standing := (await self.session.answered_elsewhere()).get(item.question.call_id):
                return standing

    async def _decide(
        self,
        item: OpenQuestion,
        kind: AnswerKind,
        *,
        arguments: Mapping[str, Any] | None = None,
        reason: str = "",
    ) -> bool:
        """Record the answer; False when it was refused and the question is still open."""
        try:
            answer = await self.session.decide(item.question, kind, arguments=arguments, reason=reason)
        except AnswerRefused as refusal:
            self.story.line(marked(str(refusal), "yellow"))
            return False
        if answer.by != self.session.by:
            self._tell_elsewhere(item, answer)
        return True

    async def _edit(self, arguments: Mapping[str, Any]) -> dict[str, Any] | None:
        try:
            with self.terminal.given_away():
                return await edited_arguments(arguments)
        except NotEdited as refusal:
            self.story.line(marked(str(refusal), "yellow"))
            return None

    def _approval_page(self, item: OpenQuestion, place: str, edited: Mapping[str, Any] | None) -> list[Text]:
        return approval_page(item, self.session.workspace, self.width, place, edited)
