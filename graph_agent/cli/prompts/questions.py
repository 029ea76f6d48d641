"""Ask the pending questions of a thread, one by one or together, and record each answer at once.

Nothing runs in here: the session continues only when every question has its answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.text import Text

from graph_agent.calls import PLAN_TOOL, question_and_options
from graph_agent.cli.prompts.choices import (
    ALL,
    ALL_APPROVALS,
    ALL_RECOVERIES,
    APPROVAL,
    END,
    OUTSIDE,
    RECOVERY,
    RULES,
    SCOPES,
    Choice,
)
from graph_agent.cli.prompts.editor import EditFailed, edit_arguments
from graph_agent.cli.prompts.prompt import PAGE_LINES, Prompt
from graph_agent.cli.render.approval_page import approval_page, question_page, recovery_page
from graph_agent.cli.render.console import fold, safe_text
from graph_agent.errors import AnswerRefused
from graph_agent.events import AnswerKind
from graph_agent.ports import AlwaysAllow, GrantScope, Proposal, ProposedRules, rules_with_folders
from graph_agent.session.turn_result import OpenQuestion

__all__ = ["PendingQuestions", "StopTurn"]

_ASK_RESULT = "What happened? (sent to the model) "
_KINDS: Mapping[str, AnswerKind] = {"y": "approve", "n": "reject", "r": "retry", "c": "cancel", "d": "done"}
_SCOPES: Mapping[str, GrantScope] = {"t": "thread", "p": "project", "u": "user"}
_SKIP, _STOP = "/skip", "/stop"


class StopTurn(Exception):
    """The answer was to stop the turn."""


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
        prompt, count = self._prompt, len(questions)
        if count > 1:
            prompt.display.lines(_overview(questions, prompt.display.width))
        for number, item in enumerate(questions, 1):
            position = f"{number} of {count}" if count > 1 else ""
            call_id, kind = item.question.call_id, item.question.kind
            if _is_model_question(item):
                await _ask_model_question(prompt, item, position)
                self.answered.add(call_id)
            ask = _ask_approval if kind == "approval" else _ask_recovery
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
                    await self._ask_together(alike)

    async def _ask_together(self, items: Sequence[OpenQuestion]) -> None:
        """Show what was not shown yet (the first one was) and answer all at once, unless the person goes back.

        A page too long for one screenful is left for its own question.
        """
        prompt = self._prompt
        shown = [items[0]]
        for item in items[1:]:
            page = _page(prompt, item, "")
            if await prompt.is_answered(item):
                self.answered.add(item.question.call_id)
            elif len(page) > PAGE_LINES:
                prompt.say(f"{item.call['tool_name']} is long: you are asked about it separately.", "yellow")
            else:
                prompt.display.lines(page)
                shown.append(item)
        is_approval = items[0].question.kind == "approval"
        high = sum(item.call.get("risk") == "high" for item in shown)
        risky = f", {high} of them HIGH risk" if high and is_approval else ""
        prompt.say(f"One answer for the {len(shown)} calls shown{risky}:", "bold")
        prompt.terminal.drop_typed_ahead()
        kind = _KINDS.get(await prompt.pick(ALL_APPROVALS if is_approval else ALL_RECOVERIES) or "")
        if kind is not None:
            reason = await prompt.words(_ASK_RESULT) if kind == "done" else ""
            for item in shown:
                if await prompt.decide(item, kind, reason):
                    self.answered.add(item.question.call_id)


def _is_model_question(item: OpenQuestion) -> bool:
    return item.question.kind == "approval" and bool(item.call.get("requires_input"))


def _overview(questions: Sequence[OpenQuestion], width: int) -> list[Text]:
    lines = [Text(f"{len(questions)} calls need your decision before any of them runs:", "bold")]
    for number, item in enumerate(questions, 1):
        call = item.call
        summary = call.get("summary") or call["tool_name"]
        name = "" if summary.startswith(call["tool_name"]) else f"{call['tool_name']} "
        risk = str(call.get("risk", "medium")).upper()
        state = "" if item.question.kind == "approval" else ", interrupted"
        lines += fold(safe_text(f"{number}. {name}{summary} ({risk}{state})"), width, "  ", "     ")
    return lines


def _page(prompt: Prompt, item: OpenQuestion, position: str, *, is_edited: bool = False) -> list[Text]:
    """Everything there is to see before answering."""
    if item.question.kind != "approval":
        return recovery_page(item, prompt.display.width, position)
    session = prompt.session
    return approval_page(
        item, session.workspace, session.sandbox, prompt.display.width, position, is_edited=is_edited
    )


async def _ask_approval(prompt: Prompt, item: OpenQuestion, position: str, *, offers_all: bool) -> bool:
    """Ask until the question has an answer, from here or elsewhere; False when all are to be answered at once.

    Raises:
        StopTurn: the person wants to stop the turn instead.
    """
    edited: Mapping[str, Any] | None = None
    page = _page(prompt, item, position)
    sandbox = prompt.session.sandbox
    outside = (OUTSIDE,) if sandbox.is_active and item.call["tool_name"] in sandbox.tools else ()
    *answers, stop = APPROVAL
    choices = (*answers, *outside, *((ALL,) if offers_all else ()), stop)
    while key := await prompt.key(item, page, choices):
        page = []
        if key == ALL.key:
            return False
        if key == stop.key:
            raise StopTurn
        if key == "e":
            item, edited = await _edit(prompt, item, edited)
            page = _page(prompt, item, position, is_edited=edited is not None)
        elif key in ("n", "r"):
            reason = await prompt.words("Reason: ") if key == "r" else ""
            if await prompt.decide(item, "reject", reason):
                break
        elif await _approve(prompt, item, edited, key):
            break
    return True


async def _approve(prompt: Prompt, item: OpenQuestion, edited: Mapping[str, Any] | None, key: str) -> bool:
    """Approve the call, for "always" with rules that were shown, and their scope; False: still pending."""
    always = None
    if key == "a":
        try:
            proposal = await prompt.session.propose_grant(item.question, edited)
        except AnswerRefused as refusal:
            prompt.say(str(refusal), "yellow")
            return False
        always = await _ask_always(prompt, item, proposal)
        if always is None:
            return False
    kind: AnswerKind = "approve" if edited is None else "edit"
    return await prompt.decide(item, kind, arguments=edited, always=always, outside=key == OUTSIDE.key)


async def _ask_always(prompt: Prompt, item: OpenQuestion, proposal: Proposal) -> AlwaysAllow | None:
    """Which rules, with what each of them covers, and for which scope; None: still pending."""
    offered = {"1": proposal.choice("exact"), "2": proposal.choice("prefix")}
    choices = {key: rules for key, rules in offered.items() if rules is not None}
    if not choices:
        prompt.say(f"This cannot always be allowed. {proposal.objection}", "yellow")
        return None
    has_folders = any(rules.folders for rules in choices.values())
    place = "" if has_folders or proposal.folder == "." else f" in {proposal.folder}"
    note = (
        f"Applies{place} in mode {prompt.session.mode} and more permissive modes. Revoke it with `policy revoke`."
    )
    prompt.show([*_rules_page(choices, prompt.display.width), *fold(safe_text(note), prompt.display.width)])
    key = next(iter(choices)) if len(choices) == 1 else await prompt.pick(RULES, item, "1")
    chosen = choices.get(key or "")
    scope = None if chosen is None else _SCOPES.get(await prompt.pick(SCOPES, item, "t") or "")
    if chosen is None or scope is None:
        return None
    return AlwaysAllow(scope, chosen.rules, proposal.folder, chosen.folders, chosen.prefixes)


def _rules_page(choices: Mapping[str, ProposedRules], width: int) -> list[Text]:
    """The rules of each choice, under its key, and what they cover."""
    page = []
    if len(choices) > 1:
        page.append(Text("Allow from now on:", "bold"))
    for key, choice in choices.items():
        count = len(choice.rules)
        what = "this rule" if count == 1 else f"these {count} rules, all of which the call needs"
        heading = f"  {key}  with {what}:" if len(choices) > 1 else f"Allow from now on, with {what}:"
        page.append(Text(heading, "bold"))
        for line in rules_with_folders(choice):
            page += fold(safe_text(line), width, "  │ ")
        page += fold(safe_text(choice.coverage, "yellow"), width, "  ")
    return page


async def _edit(
    prompt: Prompt, item: OpenQuestion, edited: Mapping[str, Any] | None
) -> tuple[OpenQuestion, Mapping[str, Any] | None]:
    """The question with edited arguments, evaluated and previewed again; unchanged where they are refused."""
    before = item.call["arguments"] if edited is None else edited
    try:
        with prompt.terminal.given_away():
            arguments = await edit_arguments(before)
        if arguments == before:
            prompt.say("Nothing was changed.", "yellow")
            return item, edited
        shown = await prompt.session.preview_edit(item.question, arguments)
    except (EditFailed, AnswerRefused) as refusal:
        prompt.say(str(refusal), "yellow")
        return item, edited
    return shown, shown.call["arguments"]


async def _ask_recovery(prompt: Prompt, item: OpenQuestion, position: str, *, offers_all: bool) -> bool:
    """Ask what is to become of an interrupted call; False when all are to be decided at once."""
    page = _page(prompt, item, position)
    choices: tuple[Choice, ...] = (*RECOVERY, ALL) if offers_all else RECOVERY
    choices_now = (*choices, END) if item.processes else choices
    while key := await prompt.key(item, page, choices_now):
        page = []
        if key == ALL.key:
            return False
        if key == END.key:
            left = await prompt.session.end_processes(item.question)
            pids = ", ".join(map(str, left))
            prompt.say(f"Could not end pid {pids}." if left else "All processes of the call have ended.")
            choices_now = (*choices, END) if left else choices
        else:
            reason = await prompt.words(_ASK_RESULT) if key == "d" else ""
            if await prompt.decide(item, _KINDS[key], reason):
                break
    return True


async def _ask_model_question(prompt: Prompt, item: OpenQuestion, position: str) -> None:
    """Ask what the model wants to know: an option by its number, or free text.

    Raises:
        StopTurn: the person wants to stop the turn instead.
    """
    options = question_and_options(item.call)[1]
    page = question_page(item, prompt.display.width, position)
    is_plan = item.call["tool_name"] == PLAN_TOOL
    what = "a number, or what to change" if is_plan else "an answer, or a number" if options else "an answer"
    skips = "keeps planning" if is_plan else "skips the question"
    hint = f"Type {what}; {_SKIP} {skips}, {_STOP} stops the turn."
    while line := await prompt.sentence(item, page, hint):
        page = []
        if line == _STOP:
            raise StopTurn
        is_number = line.isascii() and line.isdigit() and 1 <= int(line) <= len(options)
        kind: AnswerKind = "reject" if line == _SKIP else "answer"
        reason = "" if line == _SKIP else options[int(line) - 1] if is_number else line
        if await prompt.decide(item, kind, reason):
            return
