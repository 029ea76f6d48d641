"""The prompt of one pending question: shows a page, reads a key, records the answer. A typo is not an answer.

A question that another process answers meanwhile disappears, saying by whom.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.text import Text

from graph_agent.cli.prompts.choices import MORE, Choice, choice_line, match_choice
from graph_agent.cli.prompts.terminal import Terminal
from graph_agent.cli.render.console import safe_text
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.errors import AnswerRefused
from graph_agent.events import AnswerKind
from graph_agent.ports import Answer
from graph_agent.session.turn_result import OpenQuestion

if TYPE_CHECKING:
    from graph_agent.session.session import Session

__all__ = ["PAGE_LINES", "Prompt"]

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


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of one chat. Once another process answers, what asks about a question says so and returns None."""

    session: "Session"
    terminal: Terminal
    display: TurnDisplay

    async def key(self, item: OpenQuestion, page: list[Text], choices: Sequence[Choice]) -> str | None:
        """Show the page and read a key; nothing is approved before all of the page was shown."""
        if await self.is_answered(item):
            return None
        hidden = self.show(page)
        while key := await self.pick((*choices, MORE) if hidden else choices, item):
            if key == MORE.key:
                hidden = self.show(hidden)
            elif hidden and key in _APPROVING_KEYS:
                self.say(f"You have not seen all of it yet: m shows the next of {len(hidden)} lines.", "yellow")
            else:
                return key
        return None

    async def pick(
        self, choices: Sequence[Choice], about: OpenQuestion | None = None, default: str | None = None
    ) -> str | None:
        """Read one of the keys; an empty line stands for the default."""
        while (line := await self._line(choice_line(choices), about)) is not None:
            if (key := match_choice(line, choices, default)) is not None:
                return key
            self.say(f"Please answer with one of: {', '.join(choice.key for choice in choices)}", "yellow")
        return None

    async def sentence(self, item: OpenQuestion, page: list[Text], hint: str) -> str | None:
        """Show the page and read a line of free text, never empty."""
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
        """Read one line of free text, which may be empty."""
        return (await self.terminal.answer(prompt) or "").strip()

    async def is_answered(self, item: OpenQuestion) -> bool:
        """Whether another process has answered; then it is shown which."""
        answer = (await self.session.answers_from_others()).get(item.question.call_id)
        if answer is not None:
            self._show_elsewhere(item, answer)
        return answer is not None

    async def decide(self, item: OpenQuestion, kind: AnswerKind, reason: str = "", **details: Any) -> bool:
        """Record the answer, with the details of `Session.decide`; False when it was refused: still pending."""
        try:
            answer = await self.session.decide(item.question, kind, reason=reason, **details)
        except AnswerRefused as refusal:
            self.say(str(refusal), "yellow")
            return False
        if answer.by != self.session.by:
            self._show_elsewhere(item, answer)
        return True

    def show(self, page: list[Text]) -> list[Text]:
        """Print one part of the page; returns the rest. Keys typed until the prompt appears do not count."""
        self.display.lines(page[:PAGE_LINES])
        hidden = page[PAGE_LINES:]
        if hidden:
            self.say(f"… {len(hidden)} more lines: m shows them", "bold yellow")
        self.terminal.drop_typed_ahead()
        return hidden

    def say(self, line: str, style: str = "") -> None:
        """Print one line, made safe."""
        self.display.line(safe_text(line, style))

    async def _line(self, prompt: str, about: OpenQuestion | None) -> str | None:
        if about is None:
            return await self.terminal.answer(prompt)

        async def answered_elsewhere() -> Answer:
            while True:
                await asyncio.sleep(_POLL_INTERVAL_S)
                if answer := (await self.session.answers_from_others()).get(about.question.call_id):
                    return answer

        gone = asyncio.create_task(answered_elsewhere())
        line = await self.terminal.answer(prompt, gone)
        if line is None:
            self._show_elsewhere(about, gone.result())
        return line

    def _show_elsewhere(self, item: OpenQuestion, answer: Answer) -> None:
        reason = f" ({answer.reason})" if answer.reason else ""
        kind = _KIND_WORDS.get(answer.kind, answer.kind)
        self.say(f"{item.call['tool_name']}: answered by {answer.by}: {kind}{reason}", "bold")
