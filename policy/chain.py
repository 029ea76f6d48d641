"""The order of judgement: small rules, asked one after the other; the first that speaks wins.

Which paths belong to the agent itself: pure comparisons of resolved paths, and a look at a command's text.

What the rules say to a network host that no call was judged for: where a redirection leads, what is private.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import PurePath
from typing import Literal, NamedTuple

from policy.facts import CallFacts, Decision, PathFact, PolicySettings
from policy.matching import covers_any_part, find_allow_rule, matches_tool, names_path
from policy.protected import is_protected
from policy.rules import Grant, Rule, grant_applies, minimal_grants
from policy.shell.destructive import destructive_reason
from policy.shell.shell_text import ShellText, unparsed_shell

__all__ = [
    "CHAIN_STEPS",
    "HostAccess",
    "StepSource",
    "evaluate",
    "host_access",
    "is_reserved",
    "mentioned_reserved_path",
]


def is_reserved(
    path: PurePath, workspace: PurePath, reserved: Iterable[PurePath], exempt_files: Iterable[PurePath] = ()
) -> bool:
    """Whether a resolved path is, or lies in, one of the agent's own places.

    A workspace that lies in such a place is the user's choice: what is in the workspace is then not reserved.
    """
    if path in exempt_files:
        return False
    return any(
        _holds(root, path) and not (_lies_in(workspace, root) and _holds(workspace, path)) for root in reserved
    )


def mentioned_reserved_path(command: str, workspace: PurePath, reserved: Iterable[PurePath]) -> str:
    """The reserved place a command's text names, in full or by its last two parts; empty when it names none."""
    for root in reserved:
        if _holds(root, workspace):
            continue
        if any(re.search(f"{re.escape(text)}(?![\\w.-])", command) for text in _spellings(root)):
            return str(root)
    return ""


def _spellings(root: PurePath) -> list[str]:
    ending = "/".join(root.parts[-2:])
    # Only a name of our own is telling enough to be matched without the folders above it.
    return [str(root), ending] if "graph-agent" in root.name else [str(root)]


def _holds(root: PurePath, path: PurePath) -> bool:
    return path.is_relative_to(root)


def _lies_in(workspace: PurePath, root: PurePath) -> bool:
    return workspace.is_relative_to(root)


StepSource = Literal["built in", "allow", "ask", "deny", "granted"]
"""Who speaks at a step: the program, one of the three lists of rules, or what was allowed always."""


class _Case(NamedTuple):
    """A call to be judged, with its command."""

    facts: CallFacts
    settings: PolicySettings
    text: ShellText | None
    """None where the call is no command."""


def evaluate(facts: CallFacts, settings: PolicySettings) -> Decision:
    """What policy says to a call. Pure: the same facts and settings give the same decision."""
    text = facts.shell
    if text is None and facts.command is not None:
        text = unparsed_shell(facts.command)
    decision = _first(_Case(facts, settings, text))
    if decision.verdict == "ask" and facts.mode == "dontAsk":
        return Decision("deny", f"dontAsk: {decision.rule}", f"{decision.reason} In this mode nobody is asked.")
    return decision


def _first(case: _Case) -> Decision:
    for step in _CHAIN:
        decision = step.evaluate(case)
        if decision is not None:
            return decision
    return Decision("ask", "silence", "No rule speaks about this call.")


def _hard_refusals(case: _Case) -> Decision | None:
    facts = case.facts
    for path in (*facts.paths, *facts.redirects):
        if path.reserved:
            return Decision(
                "deny", "agent's own files", f"{path.resolved} belongs to the agent itself; use its commands."
            )
    if case.text is None or facts.command is None:
        return None
    if why := destructive_reason(facts.command, case.text):
        return Decision("deny", "destroyer", f"This command is refused in every mode: {why}.")
    if named := mentioned_reserved_path(facts.command, facts.workspace, case.settings.reserved):
        return Decision(
            "deny", "agent's own files", f"The command names {named}, which belongs to the agent itself."
        )
    return None


def _plan_mode(case: _Case) -> Decision | None:
    if case.facts.mode != "plan" or case.facts.plans:
        return None
    return Decision(
        "deny", "plan mode", f"{case.facts.tool} is not used while planning, but once the plan is approved."
    )


def _deny_rules(case: _Case) -> Decision | None:
    rule = _touching(case.settings.rules.deny, case)
    return Decision("deny", f"deny {rule.text}", f"The rule {rule.text!r} denies it.") if rule else None


def _questions(case: _Case) -> Decision | None:
    if not case.facts.wants_answer:
        return None
    return Decision("ask", "question to the user", "It asks you something; no rule and no mode can answer for you.")


def _bypass(case: _Case) -> Decision | None:
    if case.facts.mode != "bypassPermissions":
        return None
    if case.text is not None and not case.text.is_parsed and _has_patterns(case):
        return Decision("ask", "unreadable", f"Deny rules cannot be checked on it: {case.text.unclear_reason}.")
    return Decision("allow", "bypassPermissions", "Everything not denied is allowed in this mode.")


def _ask_rules(case: _Case) -> Decision | None:
    rule = _touching(case.settings.rules.ask, case)
    if rule is not None:
        return Decision("ask", f"ask {rule.text}", f"The rule {rule.text!r} asks.")
    return None


def _protected_names(case: _Case) -> Decision | None:
    for path in (*case.facts.paths, *case.facts.redirects):
        if path.access == "write" and is_protected(_below(path, case.facts.workspace)):
            return Decision("ask", "protected name", f"{path.resolved} decides what runs later, or holds keys.")
    return None


def _denied_paths(case: _Case) -> Decision | None:
    """A command that names a path which must not be read or written could do so in ways no one can foresee."""
    if case.text is None:
        return None
    for rule in case.settings.rules.deny:
        if rule.pattern is not None and names_path(rule, case.facts, case.settings, case.text):
            return Decision("ask", f"deny {rule.text}", f"The command names a path that {rule.text!r} denies.")
    return None


def _allow_rules(case: _Case) -> Decision | None:
    rule = find_allow_rule(case.settings.rules.allow, case.facts, case.settings, case.text)
    return Decision("allow", f"allow {rule.text}", f"The rule {rule.text!r} allows it.") if rule else None


def _grants(case: _Case) -> Decision | None:
    """What was allowed "always", together with the allow rules: a list of commands may need both."""
    facts, settings = case.facts, case.settings
    if case.text is not None and case.text.written:
        # The rule names a command and not the file: "always" for one redirection would be one for all.
        return None

    def suffice(grants: Sequence[Grant]) -> bool:
        rules = [*settings.rules.allow, *(rule for grant in grants for rule in grant.rules)]
        return find_allow_rule(rules, facts, settings, case.text) is not None

    here = [grant for grant in settings.grants if case.text is None or grant.place == facts.place]
    holding = [grant for grant in here if grant_applies(grant, facts.mode)]
    if not holding or not suffice(holding):
        return None
    needed = minimal_grants(holding, suffice)
    name = ", ".join(grant.name for grant in needed)
    rules = ", ".join(repr(rule.text) for grant in needed for rule in grant.rules)
    return Decision("allow", name, f"Allowed always by {name}: {rules}.")


def _accept_edits(case: _Case) -> Decision | None:
    facts = case.facts
    if facts.mode != "acceptEdits" or facts.tool not in ("write_file", "edit_file") or not facts.paths:
        return None
    if not all(path.inside for path in facts.paths):
        return None
    return Decision("allow", "acceptEdits", "Changes of files in the workspace are accepted in this mode.")


def _by_risk(case: _Case) -> Decision:
    facts = case.facts
    for path in facts.paths:
        if not (path.inside or path.is_memory) or path.exposes_process:
            where = (
                f"{path.given} leads to {path.resolved}" if path.given != str(path.resolved) else str(path.resolved)
            )
            return Decision("ask", "outside the workspace", f"{where}, outside the workspace {facts.workspace}.")
    if facts.risk == "low":
        return Decision("allow", "risk low", f"{facts.tool} has low risk.")
    why = (
        f" It cannot be allowed by a rule: {case.text.unclear_reason}."
        if case.text and case.text.unclear_reason
        else ""
    )
    return Decision("ask", f"risk {facts.risk}", f"{facts.tool} has {facts.risk} risk.{why}")


def _has_patterns(case: _Case) -> bool:
    rules = case.settings.rules.deny
    return any(rule.pattern is not None and matches_tool(rule, case.facts.tool) for rule in rules)


def _touching(rules: tuple[Rule, ...], case: _Case) -> Rule | None:
    return next((rule for rule in rules if covers_any_part(rule, case.facts, case.settings, case.text)), None)


def _below(path: PathFact, workspace: PurePath) -> PurePath:
    """The part of a path that is judged: a workspace may itself lie below a protected name."""
    if path.resolved.is_relative_to(workspace):
        return path.resolved.relative_to(workspace)
    return path.resolved


class _Step(NamedTuple):
    """One step of judgement, in words for who asks what judges."""

    words: str
    speaker: StepSource
    evaluate: Callable[[_Case], Decision | None]


_CHAIN = (
    _Step("hard refusals: what destroys disks or the root, and the agent's own files", "built in", _hard_refusals),
    _Step("plan mode denies what is not for planning", "built in", _plan_mode),
    _Step("deny rules", "deny", _deny_rules),
    _Step("a question to the user is put in every mode", "built in", _questions),
    _Step("bypassPermissions allows", "built in", _bypass),
    _Step("ask rules", "ask", _ask_rules),
    _Step("writes to protected names ask", "built in", _protected_names),
    _Step("commands that name a path which deny rules close ask", "built in", _denied_paths),
    _Step("allow rules", "allow", _allow_rules),
    _Step("what was allowed always", "granted", _grants),
    _Step("acceptEdits allows file changes in the workspace", "built in", _accept_edits),
    _Step("risk: LOW allows, reads outside the workspace ask, MEDIUM and HIGH ask", "built in", _by_risk),
)

CHAIN_STEPS: tuple[tuple[str, StepSource], ...] = (
    *((step.words, step.speaker) for step in _CHAIN),
    ("auto: a model's stored verdict may allow a MEDIUM call that nothing but its risk asks about", "built in"),
    ("dontAsk turns ask into deny", "built in"),
)
"""The order of judgement in words, each with who speaks there; the last two turn what came of the others."""


class HostAccess(NamedTuple):
    """How far a host may be reached."""

    is_denied: bool
    is_allowed: bool
    """Unasked."""
    is_named: bool
    """By an allow rule that names it, or a domain it is in: then it may also lie in a private network."""


def host_access(facts: CallFacts, settings: PolicySettings) -> HostAccess:
    """Judge a call by its host; the facts name one."""
    decision = evaluate(facts, settings)
    naming = [rule for rule in settings.rules.allow if (rule.pattern or "").partition(":")[0].strip("*. ")]
    is_named = find_allow_rule(naming, facts, settings, None) is not None
    return HostAccess(decision.verdict == "deny", decision.verdict == "allow", is_named)
