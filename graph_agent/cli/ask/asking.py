"""Asks the open questions of a thread, one by one or together, and records each answer at once.

Nothing runs in here: the session goes on only when every question has its answer.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rich.text import Text

from graph_agent.cli.ask.approving import Approving
from graph_agent.cli.ask.prompt import Prompt
from graph_agent.cli.ask.recovering import Recovering
from graph_agent.cli.ask.replying import Replying
from graph_agent.cli.ask.together import Together
from graph_agent.cli.render.lines import folded, marked
from graph_agent.session.api import OpenQuestion

__all__ = ["Asking"]


@dataclass(frozen=True, slots=True)
class Asking:
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
        approving, recovering, replying = Approving(self.prompt), Recovering(self.prompt), Replying(self.prompt)
        together = Together(self.prompt, approving, recovering)
        if len(questions) > 1:
            self.prompt.story.lines(list(_overview(questions, self.prompt.width)))
        for number, item in enumerate(questions, 1):
            place = f"{number} of {len(questions)}" if len(questions) > 1 else ""
            if item.call.get("wants_answer") and item.question.kind == "approval":
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
            and not (kind == "approval" and item.call.get("wants_answer"))
        ]


def _overview(questions: Sequence[OpenQuestion], width: int) -> Iterator[Text]:
    yield Text(f"{len(questions)} questions, answered one by one or with all; nothing runs before that:", "bold")
    for number, item in enumerate(questions, 1):
        call = item.call
        about = call.get("display") or call["tool_name"]
        name = "" if about.startswith(call["tool_name"]) else f"{call['tool_name']} "
        risk = str(call.get("risk", "medium")).upper()
        state = "" if item.question.kind == "approval" else ", interrupted"
        yield from folded(marked(f"{number}. {name}{about} ({risk}{state})"), width, "  ", "     ")
