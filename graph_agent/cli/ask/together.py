"""Answers several questions of one kind at once, each of them shown first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graph_agent.cli.ask.approving import Approving
from graph_agent.cli.ask.choices import ALL_APPROVALS, ALL_RECOVERIES
from graph_agent.cli.ask.prompt import PAGE_LINES, Prompt, Reply
from graph_agent.cli.ask.recovering import WHAT_IT_DID, Recovering
from graph_agent.session.api import OpenQuestion

__all__ = ["Together"]

_APPROVALS: Mapping[str, Reply] = {"y": Reply("approve"), "n": Reply("reject")}
_RECOVERIES: Mapping[str, Reply] = {"r": Reply("retry"), "c": Reply("cancel")}


@dataclass(frozen=True, slots=True)
class Together:
    """One answer for all questions that are left of a kind."""

    prompt: Prompt
    approving: Approving
    recovering: Recovering

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
