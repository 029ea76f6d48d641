"""Asks the open questions of a thread, one by one or together, and records each answer at once.

Nothing runs in here: the session goes on only when every question has its answer.

Answers several questions of one kind at once, each of them shown first.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rich.text import Text

from graph_agent.cli.prompts.approval import ApprovalPrompt
from graph_agent.cli.prompts.choices import ALL_APPROVALS, ALL_RECOVERIES
from graph_agent.cli.prompts.dialogs import WHAT_IT_DID, ModelQuestionPrompt, RecoveryPrompt
from graph_agent.cli.prompts.question import PAGE_LINES, Prompt, Reply
from graph_agent.cli.render.console import fold, safe_text
from graph_agent.session.turn_result import OpenQuestion

__all__ = ["BulkPrompt", "QuestionPrompts"]

_APPROVALS: Mapping[str, Reply] = {"y": Reply("approve"), "n": Reply("reject")}
_RECOVERIES: Mapping[str, Reply] = {"r": Reply("retry"), "c": Reply("cancel")}


@dataclass(frozen=True, slots=True)
class BulkPrompt:
    """One answer for all questions that are left of a kind."""

    prompt: Prompt
    approving: ApprovalPrompt
    recovering: RecoveryPrompt

    async def ask(self, items: Sequence[OpenQuestion]) -> set[str]:
        """Show what was not shown yet (the first one was) and answer all at once; returns the calls answered.

        None is, where the person wants to go back. A page too long for one screenful is left for its own question.
        """
        first, *others = items
        gone = {item.question.call_id for item in others if await self.prompt.is_gone(item)}
        whole = [item for item in others if item.question.call_id not in gone and self._shown(item)]
        reply = await self._reply([first, *whole])
        if reply is None:
            return gone
        return gone | {item.question.call_id for item in (first, *whole) if await self.prompt.decide(item, reply)}

    def _shown(self, item: OpenQuestion) -> bool:
        is_approval = item.question.kind == "approval"
        page = self.approving.page(item, "") if is_approval else self.recovering.page(item, "")
        if len(page) > PAGE_LINES:
            self.prompt.say(f"{item.call['tool_name']} is long: it is asked about by itself.", "yellow")
            return False
        self.prompt.story.lines(page)
        return True

    async def _reply(self, items: Sequence[OpenQuestion]) -> Reply | None:
        if items[0].question.kind == "approval":
            high = sum(item.call.get("risk") == "high" for item in items)
            risky = f", {high} of them HIGH risk" if high else ""
            self.prompt.say(f"One answer for the {len(items)} calls shown{risky}:", "bold")
            return _APPROVALS.get(await self.prompt.pick([], ALL_APPROVALS) or "")
        self.prompt.say(f"One decision for the {len(items)} calls shown:", "bold")
        key = await self.prompt.pick([], ALL_RECOVERIES)
        return Reply("done", await self.prompt.words(WHAT_IT_DID)) if key == "d" else _RECOVERIES.get(key or "")


@dataclass(frozen=True, slots=True)
class QuestionPrompts:
    """The questions of one rest."""

    prompt: Prompt
    answered: set[str] = field(default_factory=set)
    """Calls whose question has an answer by now, from here or elsewhere."""

    async def ask_all(self, questions: Sequence[OpenQuestion]) -> None:
        """Ask every question.

        Raises:
            StopTurn: the person wants the turn stopped instead.
            Interrupted, Left: the person leaves; what was answered stays answered, the rest stays open.
        """
        approving, recovering, replying = (
            ApprovalPrompt(self.prompt),
            RecoveryPrompt(self.prompt),
            ModelQuestionPrompt(self.prompt),
        )
        together = BulkPrompt(self.prompt, approving, recovering)
        if len(questions) > 1:
            self.prompt.story.lines(list(_overview(questions, self.prompt.width)))
        for number, item in enumerate(questions, 1):
            place = f"{number} of {len(questions)}" if len(questions) > 1 else ""
            if item.call.get("requires_input") and item.question.kind == "approval":
                await replying.ask(item, place)
                self.answered.add(item.question.call_id)
            asks = approving if item.question.kind == "approval" else recovering
            while item.question.call_id not in self.answered:
                alike = self._left(questions[number - 1 :], item.question.kind)
                if await asks.ask(item, place, offers_all=len(alike) > 1):
                    self.answered.add(item.question.call_id)
                else:
                    self.answered.update(await together.ask(alike))

    def _left(self, questions: Sequence[OpenQuestion], kind: str) -> list[OpenQuestion]:
        return [
            item
            for item in questions
            if item.question.kind == kind
            and item.question.call_id not in self.answered
            and not (kind == "approval" and item.call.get("requires_input"))
        ]


def _overview(questions: Sequence[OpenQuestion], width: int) -> Iterator[Text]:
    yield Text(f"{len(questions)} questions, answered one by one or with all; nothing runs before that:", "bold")
    for number, item in enumerate(questions, 1):
        call = item.call
        about = call.get("summary") or call["tool_name"]
        name = "" if about.startswith(call["tool_name"]) else f"{call['tool_name']} "
        risk = str(call.get("risk", "medium")).upper()
        state = "" if item.question.kind == "approval" else ", interrupted"
        yield from fold(safe_text(f"{number}. {name}{about} ({risk}{state})"), width, "  ", "     ")
