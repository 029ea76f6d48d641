"""Asks what the model wants to know: an option by its number, or words of the user's own. Approves nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from graph_agent.cli.ask.approving import StopTurn
from graph_agent.cli.ask.prompt import Prompt, Reply
from graph_agent.cli.render.page import question_page
from graph_agent.session.api import OpenQuestion

__all__ = ["Replying"]

_SKIP = "/skip"
_STOP = "/stop"
_HOW = f"Your own words{{}}; {_SKIP} leaves it unanswered, {_STOP} ends the turn."


@dataclass(frozen=True, slots=True)
class Replying:
    """The model's questions in one chat."""

    prompt: Prompt

    async def ask(self, item: OpenQuestion, place: str) -> None:
        """Ask until the question has its answer, from here or elsewhere.

        Raises:
            StopTurn: the person wants the turn stopped instead.
        """
        options = [str(option) for option in item.call["arguments"].get("options") or ()]
        page = question_page(item, self.prompt.width, place)
        while line := await self.prompt.sentence(item, page, _HOW.format(", or a number" if options else "")):
            if line == _STOP:
                raise StopTurn
            page = []
            reply = Reply("reject") if line == _SKIP else Reply("answer", _meant(line, options))
            if await self.prompt.decide(item, reply):
                return


def _meant(line: str, options: Sequence[str]) -> str:
    """The option that a number stands for; anything else is an answer as it is."""
    if line.isascii() and line.isdigit() and 1 <= int(line) <= len(options):
        return options[int(line) - 1]
    return line
