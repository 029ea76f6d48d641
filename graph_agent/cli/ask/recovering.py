"""Asks about one call that was broken off: retry, done, cancel; what still runs of it can be ended first."""

from dataclasses import dataclass

from rich.text import Text

from graph_agent.cli.ask.choices import ALL, END, RECOVERY, Choice
from graph_agent.cli.ask.prompt import Prompt, Reply
from graph_agent.cli.render.page import recovery_page
from graph_agent.session.api import OpenQuestion

__all__ = ["WHAT_IT_DID", "Recovering"]

WHAT_IT_DID = "What did it do? The model is told: "


@dataclass(frozen=True, slots=True)
class Recovering:
    """The recovery questions of one chat."""

    prompt: Prompt

    async def ask(self, item: OpenQuestion, place: str, *, offers_all: bool) -> bool:
        """Ask until it is decided, from here or elsewhere; False when all are to be decided at once."""
        page = self.page(item, place)
        choices: tuple[Choice, ...] = (*RECOVERY, ALL) if offers_all else RECOVERY
        offered = (*choices, END) if item.processes else choices
        while key := await self.prompt.key(item, page, offered):
            page = []
            if key == ALL.key:
                return False
            if key == END.key:
                offered = (*choices, END) if await self._end_processes(item) else choices
            elif await self._stands(item, key):
                break
        return True

    def page(self, item: OpenQuestion, place: str) -> list[Text]:
        """Everything that is known of the call."""
        return recovery_page(item, self.prompt.width, place)

    async def _stands(self, item: OpenQuestion, key: str) -> bool:
        match key:
            case "d":
                reply = Reply("done", await self.prompt.words(WHAT_IT_DID))
            case "r":
                reply = Reply("retry")
            case _:
                reply = Reply("cancel")
        return await self.prompt.decide(item, reply)

    async def _end_processes(self, item: OpenQuestion) -> tuple[int, ...]:
        left = await self.prompt.session.end_processes(item.question)
        named = ", ".join(map(str, left))
        self.prompt.say(f"These could not be ended: pid {named}" if left else "Nothing of it runs any more.")
        return left
