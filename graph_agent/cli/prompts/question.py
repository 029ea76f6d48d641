"""One prompt about one pending question: shows a page, reads a key, records the answer. A typo is not an answer.

A question that another process answers meanwhile disappears, saying by whom.
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

__all__ = ["PAGE_LINES", "AnswerSource", "Prompt", "Reply"]

PAGE_LINES = 400
"""A longer page is shown in parts; its rest must be opened before anything can be approved."""

_POLL_INTERVAL_S = 0.3
_APPROVING_KEYS = ("y", "a", "e", "o")
_KIND_WORDS: dict[str, str] = {
    "approve": "yes",
    "edit": "yes, with edited arguments",
    "answer": "answered",
    "reject": "no",
}


class AnswerSource(Protocol):
    """What a prompt needs of the terminal."""

    async def answer(self, prompt: str, gone: Awaitable[object] | None = None) -> str | None: ...

    def drop_typed_ahead(self) -> None: ...

    def given_away(self) -> AbstractContextManager[None]: ...


@dataclass(frozen=True, slots=True)
class Reply:
    """The answer that is recorded for a question."""

    kind: AnswerKind
    reason: str = ""
    arguments: Mapping[str, Any] | None = None
    always: AlwaysAllow | None = None
    outside: bool = False


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of one chat."""

    session: Conversation
    terminal: AnswerSource
    display: TurnDisplay
    width: int

    async def key(self, item: OpenQuestion, page: list[Text], choices: Sequence[Choice]) -> str | None:
        """The key that was chosen; None when the question was answered elsewhere, which is shown."""
        if await self.is_answered(item):
            return None
        hidden = self._show(page)
        while True:
            offered = (*choices, MORE) if hidden else choices
            line = await self._line(choice_line(offered), item)
            if line is None:
                return None
            key = match_choice(line, offered)
            if key == MORE.key:
                hidden = self._show(hidden)
            elif key is None:
                self._ask_again(offered)
            elif hidden and key in _APPROVING_KEYS:
                self.say(f"You have not seen all of it yet: m shows the next of {len(hidden)} lines.", "yellow")
            else:
                return key

    async def pick(
        self,
        page: list[Text],
        choices: Sequence[Choice],
        about: OpenQuestion | None = None,
        default: str | None = None,
    ) -> str | None:
        """The key of a further choice; None when the question it is about was answered elsewhere."""
        self._show(page)
        while True:
            line = await self._line(choice_line(choices), about)
            if line is None or (key := match_choice(line, choices, default)) is not None:
                return None if line is None else key
            self._ask_again(choices)

    async def sentence(self, item: OpenQuestion, page: list[Text], hint: str) -> str | None:
        """A line of free text, never empty; None when the question was answered elsewhere, which is shown."""
        if await self.is_answered(item):
            return None
        self.display.lines(page)
        self.say(hint, "dim")
        self.terminal.drop_typed_ahead()
        while (line := await self._line("answer > ", item)) is not None:
            if line.strip():
                return line.strip()
        return None

    async def words(self, prompt: str) -> str:
        """One line of free text, which may be empty."""
        return (await self.terminal.answer(prompt) or "").strip()

    async def is_answered(self, item: OpenQuestion) -> bool:
        """Whether another process has answered; then it is shown which."""
        answer = (await self.session.answers_from_others()).get(item.question.call_id)
        if answer is not None:
            self._show_elsewhere(item, answer)
        return answer is not None

    async def decide(self, item: OpenQuestion, reply: Reply) -> bool:
        """Record the answer; False when it was refused and the question is still pending."""
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
            self._show_elsewhere(item, answer)
        return True

    def say(self, line: str, style: str = "") -> None:
        """Print one line, made safe."""
        self.display.line(safe_text(line, style))

    async def _line(self, prompt: str, about: OpenQuestion | None) -> str | None:
        """The line that is entered; None when the question was answered elsewhere, which is shown."""
        gone = None if about is None else asyncio.create_task(self._answered_elsewhere(about))
        line = await self.terminal.answer(prompt, gone)
        if line is None and about is not None and gone is not None:
            self._show_elsewhere(about, gone.result())
        return line

    def _show(self, page: list[Text]) -> list[Text]:
        """Print one part of the page; returns the rest. Keys typed until the prompt appears do not count."""
        self.display.lines(page[:PAGE_LINES])
        hidden = page[PAGE_LINES:]
        if hidden:
            self.say(f"… {len(hidden)} more lines: m shows them", "bold yellow")
        self.terminal.drop_typed_ahead()
        return hidden

    def _ask_again(self, offered: Sequence[Choice]) -> None:
        self.say(f"Please answer with one of: {', '.join(choice.key for choice in offered)}", "yellow")

    def _show_elsewhere(self, item: OpenQuestion, answer: Answer) -> None:
        reason = f" ({answer.reason})" if answer.reason else ""
        kind = _KIND_WORDS.get(answer.kind, answer.kind)
        self.say(f"{item.call['tool_name']}: answered by {answer.by}: {kind}{reason}", "bold")

    async def _answered_elsewhere(self, item: OpenQuestion) -> Answer:
        while True:
            await asyncio.sleep(_POLL_INTERVAL_S)
            if answer := (await self.session.answers_from_others()).get(item.question.call_id):
                return answer
