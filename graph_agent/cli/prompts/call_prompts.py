"""Ask about one call: whether it may run, what became of it when interrupted, or what the model wants to know."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.text import Text

from graph_agent.cli.prompts.choices import ALL, APPROVAL, END, OUTSIDE, RECOVERY, SCOPES, Choice
from graph_agent.cli.prompts.editor import EditFailed, edit_arguments
from graph_agent.cli.prompts.question import Prompt, Reply
from graph_agent.cli.render.approval_page import approval_page, question_page, recovery_page, sandbox_lines
from graph_agent.cli.render.console import fold, safe_text
from graph_agent.errors import AnswerRefused
from graph_agent.ports import AlwaysAllow, GrantScope, Proposal
from graph_agent.session.turn_result import OpenQuestion

__all__ = [
    "ASK_RESULT",
    "StopTurn",
    "ask_approval",
    "ask_model_question",
    "ask_recovery",
    "page_of",
]

ASK_RESULT = "What happened? (sent to the model) "

_SCOPES: Mapping[str, GrantScope] = {"t": "thread", "p": "project", "u": "user"}
_SKIP, _STOP = "/skip", "/stop"


class StopTurn(Exception):
    """The answer was to stop the turn."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """The question as it is shown now."""

    item: OpenQuestion
    arguments: Mapping[str, Any] | None = None
    """Arguments that were edited at this prompt."""


async def ask_approval(prompt: Prompt, item: OpenQuestion, position: str, *, offers_all: bool) -> bool:
    """Ask until the question has an answer, from here or elsewhere; False when all are to be answered at once.

    Raises:
        StopTurn: the person wants to stop the turn instead.
    """
    asked = _Asked(item)
    page = page_of(prompt, item, position)
    choices = _approval_choices(prompt, item, offers_all=offers_all)
    while key := await prompt.key(item, page, choices):
        page = []
        if key == ALL.key:
            return False
        if key == "e":
            asked = await _edit(prompt, asked)
            page = page_of(prompt, asked.item, position, is_edited=asked.arguments is not None)
        elif await _apply(prompt, asked, key):
            break
    return True


def page_of(prompt: Prompt, item: OpenQuestion, position: str, *, is_edited: bool = False) -> list[Text]:
    """Everything there is to see before answering."""
    if item.question.kind != "approval":
        return recovery_page(item, prompt.width, position)
    session = prompt.session
    page = approval_page(item, session.workspace, prompt.width, position, is_edited=is_edited)
    return [*page, *sandbox_lines(item.call, session.sandbox, prompt.width)]


def _approval_choices(prompt: Prompt, item: OpenQuestion, *, offers_all: bool) -> tuple[Choice, ...]:
    walls = prompt.session.sandbox
    outside = (OUTSIDE,) if walls.is_active and item.call["tool_name"] in walls.tools else ()
    return (*APPROVAL[:-1], *outside, *((ALL,) if offers_all else ()), APPROVAL[-1])


async def _apply(prompt: Prompt, asked: _Asked, key: str) -> bool:
    """Answer with the key; whether the question has its answer now."""
    match key:
        case "n":
            return await prompt.decide(asked.item, Reply("reject"))
        case "r":
            return await prompt.decide(asked.item, Reply("reject", await prompt.words("Reason: ")))
        case "s":
            raise StopTurn
    always = None
    if key == "a" and (always := await _ask_always(prompt, asked)) is None:
        return False
    kind: Any = "approve" if asked.arguments is None else "edit"
    reply = Reply(kind, arguments=asked.arguments, always=always, outside=key == OUTSIDE.key)
    return await prompt.decide(asked.item, reply)


async def _ask_always(prompt: Prompt, asked: _Asked) -> AlwaysAllow | None:
    """Show the exact rules and ask for their scope; None when nothing is to be stored."""
    try:
        proposal = await prompt.session.propose_grant(asked.item.question, asked.arguments)
    except AnswerRefused as refusal:
        prompt.say(str(refusal), "yellow")
        return None
    if not proposal.rules:
        prompt.say(f"This cannot be allowed always. {proposal.objection}", "yellow")
        return None
    page = list(_rules_page(proposal, prompt.session.mode, prompt.width))
    scope = _SCOPES.get(await prompt.pick(page, SCOPES, asked.item, "t") or "")
    return None if scope is None else AlwaysAllow(scope, proposal.rules, proposal.folder)


def _rules_page(proposal: Proposal, mode: str, width: int) -> Iterator[Text]:
    rules = proposal.rules
    what = "this rule" if len(rules) == 1 else f"these {len(rules)} rules, which the call needs together"
    yield Text(f"Allow from now on, with {what}:", "bold")
    for rule in rules:
        yield from fold(safe_text(rule), width, "  │ ")
        if "(" not in rule:
            yield Text("  This allows every call of the tool, whatever its arguments.", "yellow")
    place = "" if proposal.folder == "." else f" in {proposal.folder}"
    note = f"Applies{place} in mode {mode} and more permissive modes. Revoke it with `policy revoke`."
    yield from fold(safe_text(note), width)


async def _edit(prompt: Prompt, asked: _Asked) -> _Asked:
    """The question with edited arguments, evaluated and previewed again; unchanged where they are refused."""
    before = asked.item.call["arguments"] if asked.arguments is None else asked.arguments
    try:
        with prompt.terminal.given_away():
            arguments = await edit_arguments(before)
        if arguments == before:
            prompt.say("Nothing was changed.", "yellow")
            return asked
        edited = await prompt.session.preview_edit(asked.item.question, arguments)
    except (EditFailed, AnswerRefused) as refusal:
        prompt.say(str(refusal), "yellow")
        return asked
    return _Asked(edited, edited.call["arguments"])


async def ask_recovery(prompt: Prompt, item: OpenQuestion, position: str, *, offers_all: bool) -> bool:
    """Ask what is to become of an interrupted call; False when all are to be decided at once."""
    page = page_of(prompt, item, position)
    choices: tuple[Choice, ...] = (*RECOVERY, ALL) if offers_all else RECOVERY
    offered = (*choices, END) if item.processes else choices
    while key := await prompt.key(item, page, offered):
        page = []
        if key == ALL.key:
            return False
        if key == END.key:
            left = await prompt.session.end_processes(item.question)
            pids = ", ".join(map(str, left))
            prompt.say(f"Could not end pid {pids}." if left else "All processes of the call have ended.")
            offered = (*choices, END) if left else choices
        else:
            kinds: Mapping[str, Any] = {"d": "done", "r": "retry", "c": "cancel"}
            reason = await prompt.words(ASK_RESULT) if key == "d" else ""
            if await prompt.decide(item, Reply(kinds[key], reason)):
                break
    return True


async def ask_model_question(prompt: Prompt, item: OpenQuestion, position: str) -> None:
    """Ask what the model wants to know: an option by its number, or free text.

    Raises:
        StopTurn: the person wants to stop the turn instead.
    """
    options = [str(option) for option in item.call["arguments"].get("options") or ()]
    page = question_page(item, prompt.width, position)
    hint = (
        f"Type an answer{', or a number' if options else ''}; {_SKIP} skips the question, {_STOP} stops the turn."
    )
    while line := await prompt.sentence(item, page, hint):
        if line == _STOP:
            raise StopTurn
        page = []
        reply = Reply("reject") if line == _SKIP else Reply("answer", _option(line, options))
        if await prompt.decide(item, reply):
            return


def _option(line: str, options: Sequence[str]) -> str:
    """The option with this number; any other line is the answer itself."""
    if line.isascii() and line.isdigit() and 1 <= int(line) <= len(options):
        return options[int(line) - 1]
    return line
