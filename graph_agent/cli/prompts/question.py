"""One prompt about one question: shows a page, reads a key, records the answer. A typo is not an answer.

A question that somebody else answers meanwhile disappears, saying by whom. Knows no kind of question.
"""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from rich.text import Text

from graph_agent.cli.chat.conversation import Conversation
from graph_agent.cli.prompts.choices import MORE, Choice, choice_line, match_choice
from graph_agent.cli.render.console import safe_text
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.errors import AnswerRefused
from graph_agent.ports import AlwaysAllow, Answer, AnswerKind
from graph_agent.session.turn_result import OpenQuestion

__all__ = ["PAGE_LINES", "Keyboard", "Prompt", "Reply"]

PAGE_LINES = 400
"""A longer page is shown in parts; its rest must be opened before anything can be approved."""

_POLL_SECONDS = 0.3
_LETS_THROUGH = ("y", "a", "e", "o")
_WORDS: dict[str, str] = {
    "approve": "yes",
    "edit": "yes, with edited arguments",
    "answer": "answered",
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


@dataclass(frozen=True, slots=True)
class Reply:
    """What is recorded for one question."""

    kind: AnswerKind
    reason: str = ""
    arguments: Mapping[str, Any] | None = None
    always: AlwaysAllow | None = None
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of one chat."""

    session: Conversation
    terminal: Keyboard
    story: TurnDisplay
    width: int

    async def key(self, item: OpenQuestion, page: list[Text], choices: Sequence[Choice]) -> str | None:
        """The key a person chose; None when the question was answered elsewhere, which is then told."""
        if await self.is_gone(item):
            return None
        rest = self._show(page)
        while True:
            offered = (*choices, MORE) if rest else choices
            gone = asyncio.create_task(self._answered_elsewhere(item))
            line = await self.terminal.answer(choice_line(offered), gone)
            if line is None:
                self._tell_elsewhere(item, gone.result())
                return None
            key = match_choice(line, offered)
            if key == MORE.key:
                rest = self._show(rest)
            elif key is None:
                self._ask_again(offered)
            elif rest and key in _LETS_THROUGH:
                self.say("Part of it is not shown yet; open it first with m.", "yellow")
            else:
                return key

    async def pick(
        self,
        page: list[Text],
        choices: Sequence[Choice],
        about: OpenQuestion | None = None,
        default: str | None = None,
    ) -> str | None:
        """The key a person chose in a further choice; None when the question it is about was answered elsewhere."""
        self._show(page)
        while True:
            gone = None if about is None else asyncio.create_task(self._answered_elsewhere(about))
            line = await self.terminal.answer(choice_line(choices), gone)
            if line is None or (key := match_choice(line, choices, default)) is not None:
                return None if line is None else key
            self._ask_again(choices)

    async def sentence(self, item: OpenQuestion, page: list[Text], how: str) -> str | None:
        """A line of the person's own, never empty; None when the question was answered elsewhere, which is told."""
        if await self.is_gone(item):
            return None
        self.story.lines(page)
        self.say(how, "dim")
        self.terminal.drop_typed_ahead()
        while True:
            gone = asyncio.create_task(self._answered_elsewhere(item))
            line = await self.terminal.answer("answer > ", gone)
            if line is None:
                self._tell_elsewhere(item, gone.result())
                return None
            if line.strip():
                return line.strip()

    async def words(self, prompt: str) -> str:
        """One line of free text."""
        return (await self.terminal.answer(prompt) or "").strip()

    async def is_gone(self, item: OpenQuestion) -> bool:
        """Whether somebody else has answered; then it is told who."""
        standing = (await self.session.answers_from_others()).get(item.question.call_id)
        if standing is not None:
            self._tell_elsewhere(item, standing)
        return standing is not None

    async def decide(self, item: OpenQuestion, reply: Reply) -> bool:
        """Record the answer; False when it was refused and the question is still open."""
        try:
            answer = await self.session.decide(
                item.question,
                reply.kind,
                arguments=reply.arguments,
                reason=reply.reason,
                always=reply.always,
                outside=reply.outside,
            )
        except AnswerRefused as refusal:
            self.say(str(refusal), "yellow")
            return False
        if answer.by != self.session.by:
            self._tell_elsewhere(item, answer)
        return True

    def say(self, line: str, style: str = "") -> None:
        """Print one line, made safe."""
        self.story.line(safe_text(line, style))

    def _show(self, page: list[Text]) -> list[Text]:
        """Print as much as is shown at once; returns the rest. Keys typed until the prompt stands do not count."""
        self.story.lines(page[:PAGE_LINES])
        rest = page[PAGE_LINES:]
        if rest:
            self.say(f"… {len(rest)} more lines: m shows them", "bold yellow")
        self.terminal.drop_typed_ahead()
        return rest

    def _ask_again(self, offered: Sequence[Choice]) -> None:
        self.say(f"Please answer with one of: {', '.join(one.key for one in offered)}", "yellow")

    def _tell_elsewhere(self, item: OpenQuestion, answer: Answer) -> None:
        why = f" ({answer.reason})" if answer.reason else ""
        self.say(f"{item.call['tool_name']}: answered by {answer.by}: {_WORDS[answer.kind]}{why}", "bold")

    async def _answered_elsewhere(self, item: OpenQuestion) -> Answer:
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            if standing := (await self.session.answers_from_others()).get(item.question.call_id):
                return standing
