"""The prompt of one pending question: shows a page, reads a key, records the answer. A typing error is no answer.

A question that another process answers meanwhile disappears, saying by whom.
"""

import asyncio
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rich.text import Text

from graph_agent.cli.prompts.choices import HELP, HIDDEN, NOT_A_KEY, NOTHING_TYPED, VIEW, KeyLine, match_choice
from graph_agent.cli.prompts.editor import PagerFailed, show_in_pager
from graph_agent.cli.prompts.terminal import InputCancelled, Terminal
from graph_agent.cli.render.approval_page import Page
from graph_agent.cli.render.console import safe_text
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.cli.views.table import is_plain_terminal, wrap_line
from graph_agent.errors import AnswerRefused
from graph_agent.events import AnswerKind
from graph_agent.inspect.calls import author_words
from graph_agent.ports import Answer
from graph_agent.ports.storage import ANSWER_POLL_S
from graph_agent.session.turn_result import OpenQuestion
from graph_agent.wording import Choice, format_count

if TYPE_CHECKING:
    from graph_agent.session.session import Session

__all__ = ["RUN_KEYS", "Prompt", "Shown"]

_APPROVING_KEYS = {"approval": ("y", "a", "e", "o"), "recovery": ("r",)}
RUN_KEYS = ("y", "a", "o")
"""The keys that let a call run unchanged."""
_KIND_WORDS: dict[str, str] = {
    "approve": "yes",
    "edit": "yes, with edited arguments",
    "answer": "answered",
    "reject": "no",
}


@dataclass(slots=True)
class Shown:
    """A page, and how much of it the user has seen."""

    page: Page
    is_seen: bool = False
    """Whether all of it was shown."""
    is_on_screen: bool = False
    """Whether it is what was shown last."""
    is_denied: bool = False
    """Whether the page says that the call cannot be approved now."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """The prompt of one chat. Once another process answers, what asks about a question says so and returns None."""

    session: "Session"
    terminal: Terminal
    display: TurnDisplay

    async def key(self, item: OpenQuestion, shown: Shown, keys: KeyLine) -> str | None:
        """Show the page and read a key; nothing is approved before all of the page was seen."""
        if await self.is_answered(item):
            return None
        self.show(shown)
        while key := await self.pick(_with_view_key(keys, shown), item):
            if key == VIEW.key:
                await self._view(shown)
            elif key == HELP.key:
                self._explain(keys, shown)
            elif not shown.is_seen and key in _APPROVING_KEYS[item.question.kind]:
                self.say("You have not seen all of it: v views it.", "yellow")
            elif shown.is_denied and key in RUN_KEYS:
                self.say("It cannot run now. Reject it, or press Esc and change the mode or rule.", "yellow")
            else:
                return key
        return None

    async def pick(self, keys: KeyLine, about: OpenQuestion | None = None) -> str | None:
        """Read one of the keys, or a number of its rows."""
        while (line := await self._line(keys, about)) is not None:
            if line.strip() in keys.rows:
                return line.strip()
            if (key := match_choice(line, keys.choices)) is not None:
                return key
            if (found := re.match(r"\s*(\d+)\s*\S", line)) is not None and found[1] in keys.rows:
                self.say(f"Call {found[1]} is shown first. Answer it with a key.", "yellow")
                return found[1]
            if line.lstrip().startswith(("/", "!")):
                self.say("Press Esc first: the question stays open, and the prompt takes commands.", "yellow")
                continue
            is_explained = any(one.key == HELP.key for one in keys.choices)
            self.say(NOT_A_KEY if is_explained else NOT_A_KEY.replace("; ? explains them", ""), "yellow")
        return None

    async def sentence(self, item: OpenQuestion, shown: Shown, keys: KeyLine) -> str | None:
        """Show the page and read a line of free text, never empty."""
        if await self.is_answered(item):
            return None
        self.show(shown)
        while (line := await self._line(keys, item)) is not None:
            if line.strip() == HELP.key:
                self._explain(keys, shown)
            elif line.strip() == VIEW.key and not shown.is_seen:
                await self._view(shown)
            elif line.strip():
                return line.strip()
            else:
                self.say(NOTHING_TYPED, "yellow")
        return None

    async def words(self, prompt: str) -> str | None:
        """Read one line of free text, which may be empty; None if the person goes back with Esc or Ctrl-C."""
        try:
            return (await self.terminal.answer(prompt) or "").strip()
        except InputCancelled:
            return None

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
            if await self.is_answered(item):
                return True
            self.say(str(refusal), "yellow")
            return False
        if answer.by != self.session.by:
            self._show_elsewhere(item, answer)
        return True

    def show(self, shown: Shown) -> None:
        """Print the page if it is not on the screen. Keys typed until the prompt appears do not count."""
        if not shown.is_on_screen:
            lines, hidden = shown.page.excerpt()
            self.display.lines(lines)
            shown.is_seen = shown.is_seen or not hidden
            shown.is_on_screen = True
        self.terminal.drop_typed_ahead()

    async def _view(self, shown: Shown) -> None:
        """Show all of a page in a pager; where there is none, page by page. What was there before comes again."""
        whole, after = shown.page.whole(), shown.page.head
        try:
            if is_plain_terminal():
                is_seen = await self._turn_pages(whole)
            else:
                with self.terminal.given_away():
                    await show_in_pager("\n".join(line.plain for line in whole) + "\n", self.display.encode(whole))
                is_seen, after = True, shown.page.excerpt()[0]
        except PagerFailed as failure:
            self.say(str(failure), "yellow")
            is_seen = await self._turn_pages(whole)
        shown.is_seen = shown.is_seen or is_seen
        self.display.lines(after)
        self.terminal.drop_typed_ahead()

    async def _turn_pages(self, lines: Sequence[Text]) -> bool:
        """Print the lines page by page; whether the person went on to the end."""
        size = max(self.display.height - 2, 4)
        for start in range(0, len(lines), size):
            self.display.lines(lines[start : start + size])
            left = len(lines) - start - size
            ask = f"{format_count(left, 'more line')}: Enter continues, q returns › "
            if left > 0 and await self.words(ask) != "":
                return False
        return True

    def _explain(self, keys: KeyLine, shown: Shown) -> None:
        width = self.display.width
        how = "  Enter answers with the key that is typed, or chosen with the arrows."
        lines = [Text(piece) for line in (*keys.explanations(), how) for piece in wrap_line(line, width)]
        self.display.lines([*lines, *shown.page.details])
        self.terminal.drop_typed_ahead()

    def say(self, line: str, style: str = "") -> None:
        """Print one line, made safe."""
        self.display.line(safe_text(line, style))

    async def _line(self, prompt: KeyLine, about: OpenQuestion | None) -> str | None:
        if about is None:
            return await self.terminal.answer(prompt)

        async def answered_elsewhere() -> Answer:
            while True:
                await asyncio.sleep(ANSWER_POLL_S)
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
        self.say(f"{item.call['tool_name']}: answered by {author_words(answer.by)}: {kind}{reason}", "bold")


def _with_view_key(keys: KeyLine, shown: Shown) -> KeyLine:
    """The keys with the one that shows all; it is on the line where part of the page is hidden."""
    first, *others = keys.choices
    is_hidden = not shown.is_seen
    view: Choice = VIEW if is_hidden else VIEW._replace(rank=HIDDEN)
    return replace(keys, choices=(first, view, *others))
