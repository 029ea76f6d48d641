"""Ask the pending questions of a thread, one by one or together, and record each answer at once.

Nothing runs in here: the session continues only when every question has its answer.
"""

from collections.abc import Iterator, Mapping, Sequence

from rich.text import Text

from graph_agent.cli.prompts.call_prompts import (
    ASK_RESULT,
    ask_approval,
    ask_model_question,
    ask_recovery,
    page_of,
)
from graph_agent.cli.prompts.choices import ALL_APPROVALS, ALL_RECOVERIES
from graph_agent.cli.prompts.question import PAGE_LINES, Prompt, Reply
from graph_agent.cli.render.console import fold, safe_text
from graph_agent.session.turn_result import OpenQuestion

__all__ = ["PendingQuestions"]

_REPLIES: Mapping[str, Mapping[str, Reply]] = {
    "approval": {"y": Reply("approve"), "n": Reply("reject")},
    "recovery": {"r": Reply("retry"), "c": Reply("cancel")},
}


class PendingQuestions:
    """The questions of one paused turn."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self.answered: set[str] = set()
        """Calls whose question has an answer by now, from here or elsewhere."""

    async def ask_all(self, questions: Sequence[OpenQuestion]) -> None:
        """Ask every question.

        Raises:
            StopTurn: the person wants to stop the turn instead.
            InputInterrupted, InputClosed: the person leaves; given answers count, the others stay pending.
        """
        prompt = self._prompt
        if len(questions) > 1:
            prompt.display.lines(list(_overview(questions, prompt.width)))
        for number, item in enumerate(questions, 1):
            position = f"{number} of {len(questions)}" if len(questions) > 1 else ""
            call_id, kind = item.question.call_id, item.question.kind
            if _is_model_question(item):
                await ask_model_question(prompt, item, position)
                self.answered.add(call_id)
            ask = ask_approval if kind == "approval" else ask_recovery
            while call_id not in self.answered:
                alike = [
                    other
                    for other in questions[number - 1 :]
                    if other.question.kind == kind
                    and other.question.call_id not in self.answered
                    and not _is_model_question(other)
                ]
                if await ask(prompt, item, position, offers_all=len(alike) > 1):
                    self.answered.add(call_id)
                else:
                    self.answered.update(await self._ask_together(alike))

    async def _ask_together(self, items: Sequence[OpenQuestion]) -> set[str]:
        """Show what was not shown yet (the first one was) and answer all at once; returns the calls answered.

        None is where the person goes back. A page too long for one screenful is left for its own question.
        """
        first, *others = items
        gone = {item.question.call_id for item in others if await self._prompt.is_answered(item)}
        shown = [item for item in others if item.question.call_id not in gone and self._show(item)]
        reply = await self._common_reply([first, *shown])
        if reply is None:
            return gone
        decided = [item for item in (first, *shown) if await self._prompt.decide(item, reply)]
        return gone | {item.question.call_id for item in decided}

    def _show(self, item: OpenQuestion) -> bool:
        page = page_of(self._prompt, item, "")
        if len(page) > PAGE_LINES:
            self._prompt.say(f"{item.call['tool_name']} is long: you are asked about it separately.", "yellow")
            return False
        self._prompt.display.lines(page)
        return True

    async def _common_reply(self, items: Sequence[OpenQuestion]) -> Reply | None:
        kind = items[0].question.kind
        high = sum(item.call.get("risk") == "high" for item in items)
        risky = f", {high} of them HIGH risk" if high and kind == "approval" else ""
        self._prompt.say(f"One answer for the {len(items)} calls shown{risky}:", "bold")
        key = await self._prompt.pick([], ALL_APPROVALS if kind == "approval" else ALL_RECOVERIES)
        if key == "d":
            return Reply("done", await self._prompt.words(ASK_RESULT))
        return _REPLIES[kind].get(key or "")


def _is_model_question(item: OpenQuestion) -> bool:
    return item.question.kind == "approval" and bool(item.call.get("requires_input"))


def _overview(questions: Sequence[OpenQuestion], width: int) -> Iterator[Text]:
    yield Text(f"{len(questions)} calls need your decision before any of them runs:", "bold")
    for number, item in enumerate(questions, 1):
        call = item.call
        summary = call.get("summary") or call["tool_name"]
        name = "" if summary.startswith(call["tool_name"]) else f"{call['tool_name']} "
        risk = str(call.get("risk", "medium")).upper()
        state = "" if item.question.kind == "approval" else ", interrupted"
        yield from fold(safe_text(f"{number}. {name}{summary} ({risk}{state})"), width, "  ", "     ")
