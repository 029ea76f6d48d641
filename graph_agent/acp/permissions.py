"""A stored question as a permission request: its options, and the answer that each of them stands for.

Some clients pick an option by themselves: the first one, or the first of a kind. So the first option of a request,
and of each kind in it, is the harmless one.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from graph_agent.calls import PLAN_TOOL, question_and_options
from graph_agent.events import AnswerKind
from graph_agent.ports import AlwaysRules, GrantEffect, GrantScope, Proposal, RuleChoice, rules_with_folders
from graph_agent.session.turn_result import OpenQuestion

__all__ = ["Option", "chosen_option", "describe_coverage", "options_for", "protocol_options"]

OptionKind = Literal["allow_once", "allow_always", "reject_once", "reject_always"]

_SCOPES: tuple[tuple[GrantScope, str], ...] = (("thread", "in this session"), ("project", "in this project"))
_RULES: tuple[RuleChoice, ...] = ("exact", "prefix")
_EFFECTS: tuple[GrantEffect, ...] = ("allow", "deny")
_ALWAYS_KINDS: Mapping[GrantEffect, OptionKind] = {"allow": "allow_always", "deny": "reject_always"}
_MAX_CHARS = 160
"""Of a rule on a button."""


class Option(NamedTuple):
    """One option of a permission request, and the answer that it stands for."""

    id: str
    name: str
    kind: OptionKind
    answer: AnswerKind
    reason: str = ""
    always: AlwaysRules | None = None


_APPROVAL = (
    Option("reject", "Reject", "reject_once", "reject"),
    Option("approve", "Run once", "allow_once", "approve"),
)
_RECOVERY = (
    Option("cancel", "Cancel: do not run it again", "reject_once", "cancel"),
    Option("done", "Mark as done: it happened", "allow_once", "done"),
    Option("retry", "Retry: run it again", "allow_once", "retry"),
)
_SKIP = Option("skip", "Do not answer", "reject_once", "reject")
_KEEP_PLANNING = Option("skip", "Keep planning", "reject_once", "reject")


def options_for(item: OpenQuestion, proposals: Mapping[GrantEffect, Proposal] | None = None) -> tuple[Option, ...]:
    """The options of a question; with proposals also those that allow, or deny, such calls from now on."""
    if item.question.kind == "recovery":
        return _RECOVERY
    if item.call.get("requires_input"):
        first = _KEEP_PLANNING if item.call["tool_name"] == PLAN_TOOL else _SKIP
        answers = question_and_options(item.call)[1]
        given = (
            Option(f"answer-{number}", answer, "allow_once", "answer", answer)
            for number, answer in enumerate(answers, 1)
        )
        return (first, *given)
    stored = [option for effect in _EFFECTS for option in _always_options(effect, (proposals or {}).get(effect))]
    return (*_APPROVAL, *stored)


def protocol_options(options: Sequence[Option]) -> list[Mapping[str, str]]:
    """The options as the protocol writes them."""
    return [{"optionId": option.id, "name": option.name, "kind": option.kind} for option in options]


def chosen_option(outcome: Any, options: Sequence[Option]) -> Option | None:
    """The option that a client's response selects; None if it selects none of them, or was cancelled."""
    chosen = outcome.get("outcome") if isinstance(outcome, Mapping) else None
    if not isinstance(chosen, Mapping) or chosen.get("outcome") != "selected":
        return None
    return next((option for option in options if option.id == chosen.get("optionId")), None)


def describe_coverage(proposal: Proposal | None) -> str:
    """What the options that allow such calls from now on cover, as sentences; empty if there are none."""
    choices = [proposal.choice(rule) for rule in _RULES] if proposal else []
    return " ".join(dict.fromkeys(f"Always: {choice.coverage}" for choice in choices if choice and choice.coverage))


def _always_options(effect: GrantEffect, proposal: Proposal | None) -> Iterator[Option]:
    """The narrowest first: this very call, then every call that begins the same."""
    if proposal is None:
        return
    word = "Always" if effect == "allow" else "Never"
    answer: AnswerKind = "approve" if effect == "allow" else "reject"
    for rule in _RULES:
        choice = proposal.choice(rule)
        shown = ", ".join(rules_with_folders(choice)) if choice else ""
        if choice is None or len(shown) > _MAX_CHARS:
            continue  # Nobody may store a rule of which not all is shown.
        for scope, where in _SCOPES:
            always = AlwaysRules(scope, choice.rules, proposal.folder, choice.folders, choice.prefixes, effect)
            option_id, name = f"{word.lower()}-{rule}-{scope}", f"{word} {where}: {shown}"
            yield Option(option_id, name, _ALWAYS_KINDS[effect], answer, always=always)
