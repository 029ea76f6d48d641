"""The rules that "always" would store for one call: no wider than what was shown, or none at all, with the reason.

Proposed rules are tried first: evaluated with them, the same call must be allowed.
"""

import shlex
from dataclasses import replace
from posixpath import basename
from typing import NamedTuple

from policy.chain import evaluate
from policy.facts import CallFacts, PolicySettings
from policy.matching import command_folders, unclear_reason
from policy.rules import Grant, InvalidRule, granted_rules
from policy.shell.commands import without_assignments
from policy.shell.programs import program_named
from policy.shell.shell_text import ShellText

__all__ = ["Proposal", "propose"]


class Proposal(NamedTuple):
    """What "always" would store."""

    rules: tuple[str, ...] = ()
    """Exact rules, all of them needed; empty when there is nothing to propose."""
    objection: str = ""
    """Why there is nothing to propose, as a sentence."""
    coverage: str = ""
    """What the rules allow, also beyond the call, as a sentence."""
    folders: tuple[tuple[str, ...], ...] = ()
    """For each rule the folders in which its command works, as in `Rule.folders`; empty for other calls, and if all
    of them work where the call starts."""


def propose(facts: CallFacts, settings: PolicySettings, suggestion: str) -> Proposal:
    """The narrowest rules by which this very call would run without asking in this mode.

    Args:
        facts: the call.
        settings: the settings it is evaluated with now.
        suggestion: the rule that the tool itself suggests, for a call that names neither a command nor a path.
    """
    if facts.shell is not None:
        proposal = _for_command(facts, facts.shell)
    elif facts.paths:
        proposal = Proposal(tuple(dict.fromkeys(f"{facts.tool}({path.resolved})" for path in facts.paths)))
    else:
        proposal = Proposal((suggestion,))
    if proposal.objection:
        return proposal
    try:
        rules = granted_rules(proposal.rules, proposal.folders, facts.folder)
    except InvalidRule as error:
        return Proposal(objection=f"It cannot be written as a rule: {error}.")
    grant = Grant("the answer", facts.mode, rules)
    decision = evaluate(facts, replace(settings, grants=(*settings.grants, grant)))
    if decision.verdict != "allow":
        return Proposal(objection=f"A rule would not stop it from asking. {decision.reason}")
    coverage = _coverage(facts, has_pattern=all(rule.pattern is not None for rule in rules))
    if proposal.folders:
        coverage = "This allows exactly these words, each in the folders shown with it, and nothing else."
    return proposal._replace(coverage=coverage)


def _coverage(facts: CallFacts, *, has_pattern: bool) -> str:
    if not has_pattern:
        return "This allows every call of the tool, whatever its arguments."
    if facts.shell is not None:
        return "This allows exactly these words in this folder, and nothing else."
    if facts.hosts:
        return "This allows every address on this host."
    if any(path.access != "read" for path in facts.paths):
        return f"This allows every change that {facts.tool} makes to this file, not only this one."
    if facts.paths:
        return f"This allows every {facts.tool} of this path, whatever else its arguments say."
    return "This allows every call with this subject, whatever its other arguments are."


def _for_command(facts: CallFacts, text: ShellText) -> Proposal:
    if (reason := unclear_reason(facts, text)) or not text.commands:
        return Proposal(objection=f"No rule can allow this command: {reason or 'it is empty'}.")
    if text.written:
        return Proposal(objection="A rule for a command that writes a file would also let it write any other.")
    if any(simple.patterns for simple in text.commands):
        return Proposal(objection="The files that a pattern matches change, so no rule can allow it.")
    for simple in text.commands:
        words = without_assignments(simple.words)
        if words and program_named(basename(words[0])).runs_any:
            return Proposal(objection=f"{words[0]} runs other commands: a rule would allow more than was shown.")
    rules = {
        (f"{facts.tool}({shlex.join(simple.words)})", tuple(sorted(command_folders(simple, facts)))): None
        for simple in text.commands
    }
    folders = tuple(place for _, place in rules)
    is_at_start = set(folders) == {(facts.folder,)}
    return Proposal(tuple(rule for rule, _ in rules), folders=() if is_at_start else folders)
