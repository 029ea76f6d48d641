"""Asks about one call that waits for an approval: yes, always, edit, no, no and why, stop."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from graph_agent.cli.prompts.choices import ALL, APPROVAL, OUTSIDE, SCOPES, Choice
from graph_agent.cli.prompts.editor import EditFailed, edit_arguments
from graph_agent.cli.prompts.question import Prompt, Reply
from graph_agent.cli.render.approval_page import approval_page, sandbox_lines
from graph_agent.cli.render.console import fold, safe_text
from graph_agent.errors import AnswerRefused
from graph_agent.ports import AlwaysAllow, GrantScope, Proposal
from graph_agent.session.turn_result import OpenQuestion

__all__ = ["ApprovalPrompt", "StopTurn"]

_SCOPES: Mapping[str, GrantScope] = {"t": "thread", "p": "project", "u": "user"}


class StopTurn(Exception):
    """The answer was to stop the turn."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """The question as it is shown now."""

    item: OpenQuestion
    arguments: Mapping[str, Any] | None = None
    """Arguments that were changed at this prompt."""


@dataclass(frozen=True, slots=True)
class ApprovalPrompt:
    """The approvals of one chat."""

    prompt: Prompt

    async def ask(self, item: OpenQuestion, place: str, *, offers_all: bool) -> bool:
        """Ask until the question has its answer, from here or elsewhere; False when all are to be answered at once.

        Raises:
            StopTurn: the person wants the turn stopped instead.
        """
        asked = _Asked(item)
        page = self.page(item, place)
        choices = self._offered(item, offers_all=offers_all)
        while key := await self.prompt.key(item, page, choices):
            page = []
            if key == ALL.key:
                return False
            if key == "e":
                asked = await self._edited(asked)
                page = self.page(asked.item, place, is_edited=asked.arguments is not None)
            elif await self._stands(asked, key):
                break
        return True

    def _offered(self, item: OpenQuestion, *, offers_all: bool) -> tuple[Choice, ...]:
        walls = self.prompt.session.sandbox
        outside = (OUTSIDE,) if walls.is_active and item.call["tool_name"] in walls.tools else ()
        return (*APPROVAL[:-1], *outside, *((ALL,) if offers_all else ()), APPROVAL[-1])

    def page(self, item: OpenQuestion, place: str, *, is_edited: bool = False) -> list[Text]:
        """Everything there is to see before answering."""
        prompt = self.prompt
        page = approval_page(item, prompt.session.workspace, prompt.width, place, is_edited=is_edited)
        return [*page, *sandbox_lines(item.call, prompt.session.sandbox, prompt.width)]

    async def _stands(self, asked: _Asked, key: str) -> bool:
        original = asked.item
        match key:
            case "y":
                return await self._let_through(asked, None)
            case OUTSIDE.key:
                return await self._let_through(asked, None, outside=True)
            case "a":
                always = await self._always(asked)
                return always is not None and await self._let_through(asked, always)
            case "n":
                return await self.prompt.decide(original, Reply("reject"))
            case "r":
                return await self.prompt.decide(original, Reply("reject", await self.prompt.words("Reason: ")))
            case _:
                raise StopTurn

    async def _let_through(self, asked: _Asked, always: AlwaysAllow | None, *, outside: bool = False) -> bool:
        kind: Any = "approve" if asked.arguments is None else "edit"
        reply = Reply(kind, arguments=asked.arguments, always=always, outside=outside)
        return await self.prompt.decide(asked.item, reply)

    async def _always(self, asked: _Asked) -> AlwaysAllow | None:
        """What the person wants to allow always, having seen the exact rules; None when nothing."""
        try:
            proposal = await self.prompt.session.propose_grant(asked.item.question, asked.arguments)
        except AnswerRefused as refusal:
            self.prompt.say(str(refusal), "yellow")
            return None
        if not proposal.rules:
            self.prompt.say(f"This cannot be allowed always. {proposal.objection}", "yellow")
            return None
        page = list(_rules_page(proposal, self.prompt.session.mode, self.prompt.width))
        scope = _SCOPES.get(await self.prompt.pick(page, SCOPES, asked.item, "t") or "")
        return None if scope is None else AlwaysAllow(scope, proposal.rules, proposal.folder)

    async def _edited(self, asked: _Asked) -> _Asked:
        """The question with the arguments the editor left, judged and previewed anew; as it was where they fail."""
        before = asked.item.call["arguments"] if asked.arguments is None else asked.arguments
        try:
            with self.prompt.terminal.given_away():
                arguments = await edit_arguments(before)
            if arguments == before:
                self.prompt.say("Nothing was changed.", "yellow")
                return asked
            shown = await self.prompt.session.preview_edit(asked.item.question, arguments)
        except (EditFailed, AnswerRefused) as refusal:
            self.prompt.say(str(refusal), "yellow")
            return asked
        return _Asked(shown, shown.call["arguments"])


def _rules_page(proposal: Proposal, mode: str, width: int) -> Iterator[Text]:
    rules = proposal.rules
    what = "this rule" if len(rules) == 1 else f"these {len(rules)} rules, all of them needed by this call"
    yield Text(f"Always stores {what}. From now on, what is exactly so runs unasked:", "bold")
    for rule in rules:
        yield from fold(safe_text(rule), width, "  │ ")
        if "(" not in rule:
            yield Text("  that is every call of this tool, whatever its arguments", "yellow")
    place = "" if proposal.folder == "." else f" where the shell stands now, in {proposal.folder},"
    told = f"It holds{place} in mode {mode} and in more permissive ones; `policy revoke` ends it."
    yield from fold(safe_text(told), width)
