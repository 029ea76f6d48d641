"""Ask the pending questions of a thread, one by one or together, and record each answer at once.

Nothing runs in here: the session continues only when every question has its answer.
"""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rich.text import Text

from graph_agent.calls import PLAN_TOOL, question_and_options
from graph_agent.cli.prompts.choices import END, HELP, HIDDEN, NOT_A_KEY, OTHERS, KeyLine, for_all
from graph_agent.cli.prompts.editor import EditFailed, edit_arguments
from graph_agent.cli.prompts.prompt import RUN_KEYS, Prompt, Shown
from graph_agent.cli.prompts.terminal import InputCancelled
from graph_agent.cli.render.approval_page import approval_page, call_rows, question_page, recovery_page
from graph_agent.cli.render.console import fold, safe_text
from graph_agent.errors import AnswerRefused
from graph_agent.events import AnswerKind
from graph_agent.ports import AlwaysRules, GrantEffect, GrantScope, Proposal, ProposedRules, rules_with_folders
from graph_agent.session.turn_result import OpenQuestion
from graph_agent.wording import APPROVAL, BACK, OUTSIDE, PLAN, RECOVERY, RULES, SCOPES, Choice, format_count

__all__ = ["PendingQuestions", "StopTurn"]

_ASK_RESULT = "What happened? (sent to the model) "
_KINDS: Mapping[str, AnswerKind] = {"y": "approve", "n": "reject", "r": "retry", "c": "cancel", "d": "done"}
_SCOPES: Mapping[str, GrantScope] = {"t": "thread", "p": "project", "u": "user"}
_EFFECTS: Mapping[str, GrantEffect] = {"a": "allow", "d": "deny"}
"""The keys that store rules."""
_SKIP, _STOP = "/skip", "/stop"
_LABEL = 15
"""Columns of what each choice of rules is called."""
_FOR_ALL: Mapping[str, Mapping[str, str]] = {
    "approval": {"y": "run all {}", "n": "reject all"},
    "recovery": {"r": "retry all {}", "d": "done all", "c": "cancel all"},
}
"""The keys that also have one for all questions of the kind, with its label."""


class StopTurn(Exception):
    """The answer was to stop the turn."""


class PendingQuestions:
    """The questions of one paused turn."""

    def __init__(self, prompt: Prompt) -> None:
        self._prompt = prompt
        self._questions: Sequence[OpenQuestion] = ()
        self._shown: dict[str, Shown] = {}
        """The page of each call that was shown."""
        self.answered: set[str] = set()
        """Calls whose question has an answer by now, from here or elsewhere."""

    async def ask_all(self, questions: Sequence[OpenQuestion]) -> None:
        """Ask every question.

        Raises:
            StopTurn: the person wants to stop the turn instead.
            InputCancelled, InputClosed: the person leaves; given answers count, the others stay pending.
        """
        self._questions = questions
        if len(questions) > 1:
            display, workspace = self._prompt.display, self._prompt.session.workspace
            how = Text(" · ↑↓ or a number shows another", "dim")
            display.line(Text(f"{len(questions)} calls need {_needed(questions)}", "bold").append_text(how))
            display.lines(call_rows(questions, workspace, display.width))
        number = 0
        while pending := [other for other, item in enumerate(questions) if _id(item) not in self.answered]:
            number = next((other for other in pending if other >= number), pending[0])
            number = await self._ask(number, pending)

    async def _ask(self, number: int, pending: Sequence[int]) -> int:
        """Ask one question; returns the number of the one to ask next, if it is still open."""
        prompt, item = self._prompt, self._questions[number]
        count = len(self._questions)
        position = f"{number + 1} of {count}" if count > 1 else ""
        if _is_model_question(item):
            await _ask_model_question(prompt, item, position)
            self.answered.add(_id(item))
            return number
        kind = item.question.kind
        alike = [one for one in map(self._questions.__getitem__, pending) if one.question.kind == kind]
        alike = [one for one in alike if not _is_model_question(one)]
        # The next call comes first, then round: the arrows begin beside the one that is shown.
        others = [*(other for other in pending if other > number), *(other for other in pending if other < number)]
        rows = {str(other + 1): f"Enter shows {other + 1}: {_summary(self._questions[other])}" for other in others}
        offer = _Offer(position, len(alike), rows)
        shown = self._shown[_id(item)] = self._shown.get(_id(item)) or await _page(prompt, item, position)
        shown.is_on_screen = False
        ask = _ask_approval if kind == "approval" else _ask_recovery
        key = await ask(prompt, item, shown, offer)
        if key is None:
            self.answered.add(_id(item))
        elif key in offer.rows:
            return int(key) - 1
        else:
            await self._answer_all(alike, key.lower())
        return number

    async def _answer_all(self, items: Sequence[OpenQuestion], key: str) -> None:
        """Give all questions one answer; before one that may have effects, each page is shown.

        A page of which not all was seen is left for its own question.
        """
        prompt = self._prompt
        is_harmless = key in ("n", "c")
        answered, is_new = [], False
        for item in items:
            if await prompt.is_answered(item):
                self.answered.add(_id(item))
                continue
            shown = self._shown.get(_id(item))
            if shown is None and not is_harmless:
                shown = self._shown[_id(item)] = await _page(prompt, item, "")
                prompt.show(shown)
                is_new = True
            if is_harmless or (shown is not None and shown.is_seen and not shown.is_denied):
                answered.append(item)
            else:
                why = "cannot be approved now" if shown is not None and shown.is_denied else "is long"
                prompt.say(f"{item.call['tool_name']} {why}: you are asked about it separately.", "yellow")
        if not answered or (is_new and not await self._confirm_all(answered, key)):
            return
        reason = await prompt.words(_ASK_RESULT) if key == "d" else ""
        if reason is None:
            return
        for item in answered:
            if await prompt.decide(item, _KINDS[key], reason):
                self.answered.add(_id(item))

    async def _confirm_all(self, items: Sequence[OpenQuestion], key: str) -> bool:
        kind = items[0].question.kind if items else "approval"
        high = sum(item.call.get("risk") == "high" for item in items)
        risky = f", {high} of them HIGH risk" if high and kind == "approval" else ""
        self._prompt.say(f"One answer for the {format_count(len(items), 'call')} shown{risky}:", "bold")
        self._prompt.terminal.drop_typed_ahead()
        [choice] = [one for one in (*APPROVAL, *RECOVERY) if one.key == key and one in _CHOICES[kind]]
        everything = choice._replace(label=f"{choice.label} all")
        return await self._prompt.pick(KeyLine((everything, BACK))) == key


class _Offer(NamedTuple):
    """What a question offers beside its own answers."""

    position: str
    alike: int
    """How many open questions of its kind there are."""
    rows: Mapping[str, str]
    """The numbers of the other open questions, with what choosing each does."""

    def keys(self, kind: str, *more: Choice, without: str = "") -> KeyLine:
        """The line of keys; `without` are keys that are understood and not shown."""
        choices: Sequence[Choice] = _CHOICES[kind]
        if self.alike > 1:
            choices = for_all(choices, self.alike, _FOR_ALL[kind])
        all_choices = (*choices, *more, *((OTHERS,) if self.rows else ()), HELP)
        hidden = [one._replace(rank=HIDDEN) if one.key in without else one for one in all_choices]
        return KeyLine(tuple(hidden), self.rows)


_CHOICES: Mapping[str, Sequence[Choice]] = {"approval": APPROVAL, "recovery": RECOVERY}


def _id(item: OpenQuestion) -> str:
    return item.question.call_id


def _summary(item: OpenQuestion) -> str:
    name, summary = item.call["tool_name"], str(item.call.get("summary") or "")
    return safe_text(summary if summary.startswith(name) else f"{name} {summary}".rstrip()).plain


def _needed(questions: Sequence[OpenQuestion]) -> str:
    is_approval = all(item.question.kind == "approval" and not _is_model_question(item) for item in questions)
    return "approval" if is_approval else "your decision"


def _is_model_question(item: OpenQuestion) -> bool:
    return item.question.kind == "approval" and bool(item.call.get("requires_input"))


async def _page(prompt: Prompt, item: OpenQuestion, position: str, *, is_edited: bool = False) -> Shown:
    """Everything there is to see before answering."""
    session, width = prompt.session, prompt.display.width
    if item.question.kind != "approval":
        return Shown(recovery_page(item, width, position, session.sandbox))
    denied = (await _propose(prompt, item, item.call["arguments"])).denied
    page = approval_page(
        item, session.workspace, session.sandbox, width, position, is_edited=is_edited, denied=denied
    )
    return Shown(page, is_denied=bool(denied))


async def _ask_approval(
    prompt: Prompt, item: OpenQuestion, shown: Shown, offer: _Offer, edited: Mapping[str, Any] | None = None
) -> str | None:
    """Ask until the question has an answer, from here or elsewhere; else the key about others.

    Raises:
        StopTurn: the person wants to stop the turn instead.
        InputCancelled: the person leaves the question, or goes back from edited arguments to those before.
    """
    sandbox = prompt.session.sandbox
    outside = (OUTSIDE,) if sandbox.is_active and item.call["tool_name"] in sandbox.tools else ()
    unavailable = [key for key in _EFFECTS if not await _has_rule(prompt, item, edited, key)]
    refused = RUN_KEYS if shown.is_denied else ()
    keys = offer.keys("approval", *outside, without="".join((*unavailable, *refused)))
    while key := await prompt.key(item, shown, keys):
        if key in offer.rows or key.isupper():
            return key
        if key == "s":
            raise StopTurn
        if key == "e":
            if (changed := await _edit(prompt, item)) is not None:
                page = await _page(prompt, changed, offer.position, is_edited=True)
                # Policy may word its reason otherwise now; the question that is open is still the first.
                changed = replace(changed, question=item.question)
                with contextlib.suppress(InputCancelled):
                    # One answer for all would be about the model's arguments.
                    single = offer._replace(alike=1)
                    return await _ask_approval(prompt, changed, page, single, changed.call["arguments"])
            shown.is_on_screen = False
        elif key in ("n", "r"):
            reason = await prompt.words("Feedback: ") if key == "r" else ""
            if reason is not None and await prompt.decide(item, "reject", reason):
                break
        elif await _decide_with_rules(prompt, item, edited, key):
            break
    return None


async def _has_rule(prompt: Prompt, item: OpenQuestion, edited: Mapping[str, Any] | None, key: str) -> bool:
    """Whether there is a rule that would allow the call from now on, or deny it."""
    proposal = await _propose(prompt, item, edited, _EFFECTS[key])
    return any(proposal.choice(kind) is not None for kind in ("exact", "prefix"))


async def _propose(
    prompt: Prompt, item: OpenQuestion, arguments: Mapping[str, Any] | None, effect: GrantEffect = "allow"
) -> Proposal:
    try:
        return await prompt.session.propose_grant(item.question, arguments, effect)
    except AnswerRefused:
        return Proposal()  # It is not open any more, which the prompt finds out.


async def _decide_with_rules(
    prompt: Prompt, item: OpenQuestion, edited: Mapping[str, Any] | None, key: str
) -> bool:
    """Approve the call, or deny it always; "always" stores rules that were shown. False: still pending."""
    always, effect = None, _EFFECTS.get(key)
    if effect is not None:
        try:
            proposal = await prompt.session.propose_grant(item.question, edited, effect)
        except AnswerRefused as refusal:
            prompt.say(str(refusal), "yellow")
            return False
        always = await _ask_always(prompt, item, proposal, effect)
        if always is None:
            return False
    if effect == "deny":
        return await prompt.decide(item, "reject", always=always)
    kind: AnswerKind = "approve" if edited is None else "edit"
    return await prompt.decide(item, kind, arguments=edited, always=always, outside=key == OUTSIDE.key)


async def _ask_always(
    prompt: Prompt, item: OpenQuestion, proposal: Proposal, effect: GrantEffect
) -> AlwaysRules | None:
    """Which rules, with what each of them covers, and for which scope; None: still pending."""
    proposed = {"e": proposal.choice("exact"), "a": proposal.choice("prefix")}
    choices = {key: rules for key, rules in proposed.items() if rules is not None}
    if not choices:
        prompt.say(f"No rule can be saved for this call. {proposal.objection}", "yellow")
        return None
    modes = f"mode {prompt.session.mode} and more permissive modes" if effect == "allow" else "every mode"
    note = f"Applies in {modes}; /policy revoke revokes it."
    prompt.display.lines(_rules_page(choices, prompt.display.width, effect))
    prompt.say(note)
    prompt.terminal.drop_typed_ahead()
    key = next(iter(choices)) if len(choices) == 1 else await prompt.pick(KeyLine(RULES), item)
    chosen = choices.get(key or "")
    scope = None if chosen is None else _SCOPES.get(await prompt.pick(KeyLine(SCOPES), item) or "")
    if chosen is None or scope is None:
        return None
    return AlwaysRules(scope, chosen.rules, proposal.folder, chosen.folders, chosen.prefixes, effect)


def _rules_page(choices: Mapping[str, ProposedRules], width: int, effect: GrantEffect) -> list[Text]:
    """The rules of each choice, under its key, and what they cover."""
    page = [Text(f"{effect.capitalize()} from now on:", "bold")]
    for key, choice in choices.items():
        is_one = len(choices) == 1
        label = "" if is_one and not choice.prefixes else "any arguments" if choice.prefixes else "exactly"
        gutter = f"  {'' if is_one else f'{key}  '}{label.ljust(_LABEL) if label else ''}"
        indent = " " * len(gutter)
        for number, line in enumerate(rules_with_folders(choice)):
            page += fold(safe_text(line, "bold"), width, indent if number else gutter, f"{indent}│ ")
        is_together = effect == "allow" and len(choice.rules) > 1
        count = f"The call needs these {len(choice.rules)} rules together. " if is_together else ""
        page += fold(safe_text(f"{count}{choice.coverage}", "yellow"), width, "     ", by_words=True)
    return page


async def _edit(prompt: Prompt, item: OpenQuestion) -> OpenQuestion | None:
    """The question with edited arguments, evaluated and previewed again; None where nothing comes of it."""
    before = item.call["arguments"]
    try:
        with prompt.terminal.given_away():
            arguments = await edit_arguments(before)
        if arguments != before:
            return await prompt.session.preview_edit(item.question, arguments)
        prompt.say("Nothing was changed.", "yellow")
    except (EditFailed, AnswerRefused) as refusal:
        prompt.say(str(refusal), "yellow")
    return None


async def _ask_recovery(prompt: Prompt, item: OpenQuestion, shown: Shown, offer: _Offer) -> str | None:
    """Ask what is to become of an interrupted call, until it has an answer; else the key about others."""
    has_processes = bool(item.processes)
    while key := await prompt.key(item, shown, offer.keys("recovery", *((END,) if has_processes else ()))):
        if key in offer.rows or key.isupper():
            return key
        if key in (END.key, "r") and has_processes:
            has_processes = not await _end_processes(prompt, item)
            if key == END.key or has_processes:
                continue
        reason = await prompt.words(_ASK_RESULT) if key == "d" else ""
        if reason is not None and await prompt.decide(item, _KINDS[key], reason):
            break
    return None


async def _end_processes(prompt: Prompt, item: OpenQuestion) -> bool:
    """End what an interrupted call left running; whether nothing of it runs any more."""
    left = await prompt.session.end_processes(item.question)
    pids = ", ".join(map(str, left))
    prompt.say(f"Could not end pid {pids}." if left else "All processes of the call have ended.")
    return not left


async def _ask_model_question(prompt: Prompt, item: OpenQuestion, position: str) -> None:
    """Ask what the model wants to know: an option by its number, or free text.

    Raises:
        StopTurn: the person wants to stop the turn instead.
    """
    options = question_and_options(item.call)[1]
    by_key = {str(number): option for number, option in enumerate(options, 1)}
    skip: tuple[str, ...] = (_SKIP,)
    if item.call["tool_name"] == PLAN_TOOL:
        by_key |= dict(zip("ya", options, strict=True))
        keys, skip = KeyLine((*PLAN, HELP)), (*skip, "n")
    else:
        range_of_numbers = f"1-{len(options)}, or your own words · " if options else "your answer · "
        rows = {number: f"Enter answers: {safe_text(option).plain}" for number, option in by_key.items()}
        keys = KeyLine((*_QUESTION, HELP), rows, range_of_numbers)
    shown = Shown(question_page(item, prompt.display.width, position, prompt.display.markdown))
    while line := await prompt.sentence(item, shown, keys):
        if line == _STOP:
            raise StopTurn
        if item.call["tool_name"] == PLAN_TOOL and len(line) == 1 and line not in (*by_key, *skip):
            # A key of other questions, most likely: no words about the plan.
            prompt.say(NOT_A_KEY)
            continue
        kind: AnswerKind = "reject" if line in skip else "answer"
        reason = "" if line in skip else by_key.get(line, line)
        if await prompt.decide(item, kind, reason):
            return


_QUESTION = (
    Choice(_SKIP, "", "answer nothing; the model carries on without"),
    Choice(_STOP, "the turn", "stop the turn"),
)
