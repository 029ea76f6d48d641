"""The policy chain: small steps in a fixed order; the first one that returns a decision wins."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import PurePath
from typing import Literal, NamedTuple

from policy.facts import CallFacts, Decision, PolicySettings
from policy.matching import (
    ACCESS_RULES,
    absolute_path,
    covers_any_part,
    find_allow_rule,
    matches_tool,
    unclear_reason,
)
from policy.protected import is_protected_in
from policy.reach import names_host, names_literally, names_path, program_as_argument, whole_folders
from policy.risk import call_risk
from policy.rules import Grant, Rule, globs_overlap, grant_applies, minimal_grants
from policy.shell.destructive import destructive_reason
from policy.shell.folders import placed
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

StepSource = Literal["built in", "allow", "ask", "deny", "granted"]
"""What a step reads: the program itself, one of the three lists of rules, or the grants."""


@dataclass(frozen=True, eq=False)
class _Case:
    """A call to be decided."""

    facts: CallFacts
    settings: PolicySettings

    @cached_property
    def text(self) -> ShellText | None:
        """Its command, parsed or not; None where the call has no command."""
        facts = self.facts
        is_unparsed = facts.shell is None and facts.command is not None
        return unparsed_shell(facts.command or "") if is_unparsed else facts.shell

    def __hash__(self) -> int:
        return hash((self.facts.tool, self.facts.command, self.facts.mode))

    def __eq__(self, other: object) -> bool:
        """Whether all that a decision depends on is equal, with the very same parsed text."""
        if not isinstance(other, _Case):
            return NotImplemented
        is_same_text = self.facts.shell is other.facts.shell
        return is_same_text and self.facts == other.facts and self.settings == other.settings


def evaluate(facts: CallFacts, settings: PolicySettings) -> Decision:
    """Decide about a call. Pure: the same facts and settings give the same decision."""
    case = _Case(facts, settings)
    return _decide(case) if facts.command is None else _decide_command(case)


def _decide(case: _Case) -> Decision:
    facts = case.facts
    for step in _CHAIN:
        if decision := step.decide(case):
            break
    else:
        decision = _by_risk(case)
    if decision.verdict == "ask" and facts.mode == "dontAsk":
        return Decision("deny", f"dontAsk: {decision.rule}", f"{decision.reason} This mode never asks.")
    return decision


_decide_command = lru_cache(maxsize=256)(_decide)
"""Agents repeat their commands. What the file system says is among the facts, which are looked up anew."""


def _hard_refusals(case: _Case) -> Decision | None:
    facts = case.facts
    for path in (*facts.paths, *facts.redirects):
        if path.reserved:
            reason = f"{path.resolved} is one of the agent's own files; use its commands."
            return Decision("deny", "agent's own files", reason)
    if case.text is None or facts.command is None:
        return None
    if why := destructive_reason(facts.command, case.text):
        return Decision("deny", "destructive command", f"This command is refused in every mode: {why}.")
    mentioned = mentioned_reserved_path(facts.command, facts.workspace, case.settings.reserved)
    if mentioned := mentioned or _reached_reserved_path(case, case.text):
        reason = f"The command names {mentioned}, one of the agent's own files."
        return Decision("deny", "agent's own files", reason)
    return None


def _reached_reserved_path(case: _Case, text: ShellText) -> str:
    """The reserved path that a word or a pattern of a command leads to; empty if none does.

    A folder above it counts for programs that remove, change, copy or link whole folders.
    """
    facts, settings, workspace = case.facts, case.settings, str(case.facts.workspace)
    named, folders = set(map(str, facts.patterns)), {place for place, _ in whole_folders(text, facts, settings)}
    for command in text.runs:
        words = (placed(command.folder, word) for word in ("", *command.words[1:]))
        named.update(absolute_path(word, facts, settings) for word in words)
    mentions = set(map(str, facts.mentions)).difference(map(str, settings.exempt_files))
    for root in map(str, settings.reserved):
        inside = f"{root}/"
        holds_workspace = _may_be_within(workspace, root)
        # In a workspace that is within a reserved folder only what is named there is reserved.
        if any(
            (path == root or path.startswith(inside))
            and not (holds_workspace and f"{path}/".startswith(f"{workspace}/"))
            for path in mentions
        ):
            return root
        if holds_workspace or _may_be_within(root, workspace):
            continue
        if any(_may_be_within(root, place) for place in folders):
            return root
        if any(place == root or place.startswith(inside) or _overlaps(place, root) for place in named):
            return root
    return ""


_WILDCARD = re.compile(r"[*?[]")


def _may_be_within(place: str, folder: str) -> bool:
    """Whether a path is, or is below, a folder; both may hold wildcards."""
    return place == folder or place.startswith(f"{folder.rstrip('/')}/") or _overlaps(place, folder)


def _overlaps(place: str, folder: str) -> bool:
    """The same where one of them has wildcards."""
    if not (_WILDCARD.search(place) or _WILDCARD.search(folder)):
        return False
    return any(globs_overlap(place, one, hides_dots=True) for one in (folder, f"{folder}/**"))


def _plan_mode(case: _Case) -> Decision | None:
    if case.facts.mode != "plan" or case.facts.allowed_in_plan_mode:
        return None
    return Decision(
        "deny", "plan mode", f"{case.facts.tool} cannot be used in plan mode; get the plan approved first."
    )


def _strict_rules(case: _Case, verdict: Literal["deny", "ask"]) -> Decision | None:
    """A deny or ask rule covers the call if it covers any part of it."""
    rules = case.settings.rules.deny if verdict == "deny" else case.settings.rules.ask
    for rule in rules:
        if covers_any_part(rule, case.facts, case.settings, case.text):
            effect = "denies it" if verdict == "deny" else "requires approval"
            reason = f"Always denied by {rule.origin}: {rule.text!r}." if rule.origin else ""
            return Decision(verdict, f"{verdict} {rule.text}", reason or f"The rule {rule.text!r} {effect}.")
    return None


def _questions(case: _Case) -> Decision | None:
    if not case.facts.requires_input:
        return None
    return Decision("ask", "question to the user", "It asks you something; no rule and no mode can answer for you.")


def _bypass(case: _Case) -> Decision | None:
    if case.facts.mode != "bypassPermissions":
        return None
    return Decision("allow", "bypassPermissions", "This mode allows everything that no rule denies.")


def _protected_names(case: _Case) -> Decision | None:
    workspace = case.facts.workspace
    for path in (*case.facts.paths, *case.facts.redirects):
        if path.access != "read" and is_protected_in(path.resolved, workspace):
            return Decision("ask", "protected name", f"{path.resolved} decides what runs later, or holds keys.")
        if path.access != "read" and case.settings.holds_programs(path.resolved, workspace):
            return Decision("ask", "protected name", f"{path.resolved} is in a folder of PATH: it may run later.")
    if case.text is not None and case.text.unknown_target:
        return Decision(
            "ask", "unknown target", f"The file that the command writes is unknown: {case.text.unknown_target}."
        )
    return None


def _untrusted_memory(case: _Case) -> Decision | None:
    """Content that nobody vouches for must not get into later conversations unseen."""
    facts = case.facts
    if not (facts.untrusted_content and facts.changes_memory):
        return None
    reason = f"Every later conversation will read this change, and this one contains {facts.untrusted_content}."
    return Decision("ask", "untrusted content", reason)


def _unverifiable_commands(case: _Case) -> Decision | None:
    """While deny or ask rules for commands exist, a command asks if they cannot be checked for it."""
    if case.text is None:
        return None
    rules = [
        rule
        for rule in (*case.settings.rules.deny, *case.settings.rules.ask)
        if rule.pattern is not None and (matches_tool(rule, "bash") or matches_tool(rule, case.facts.tool))
    ]
    if not rules:
        return None
    if not case.text.is_parsed:
        return Decision(
            "ask", "unreadable", f"Rules cannot be checked for this command: {case.text.unclear_reason}."
        )
    if case.text.computed_reason:
        return Decision(
            "ask", "computed program", f"Rules cannot be checked for this command: {case.text.computed_reason}."
        )
    for rule in rules:
        if word := program_as_argument(rule, case.text):
            reason = f"It names {word}, which the rule {rule.text!r} covers, and may run it."
            return Decision("ask", f"program of {rule.text}", reason)
    return None


def _named_access(case: _Case, rules: Iterable[Rule], verdict: Literal["deny", "ask"]) -> Decision | None:
    """A command that names a path or host covered by a rule asks, because it may use it in any way."""
    if case.text is None:
        return None
    for rule in rules:
        named = names_path(rule, case.facts, case.settings, case.text)
        if named or names_host(rule, case.text):
            what = "a path" if named else "a host"
            effect = "denies" if verdict == "deny" else "asks about"
            is_literal = not named or names_literally(rule, case.facts, case.settings, case.text)
            reason = f"The command {'names' if is_literal else 'may name'} {what} that {rule.text!r} {effect}."
            # The sandbox is made from the configured rules.
            is_enforced = rule.pattern is not None and not rule.origin and case.facts.sandbox != "none"
            if named and verdict == "deny" and is_enforced:
                closed = "hides it" if matches_tool(rule, "read_file") else "keeps it read-only"
                reason += f" The sandbox {closed}; outside the sandbox the command can reach it."
            return Decision("ask", f"{verdict} {rule.text}", reason)
    return None


def _denied_access(case: _Case) -> Decision | None:
    return _named_access(case, case.settings.rules.deny, "deny")


def _ask_rules(case: _Case) -> Decision | None:
    return _strict_rules(case, "ask") or _named_access(case, case.settings.rules.ask, "ask")


def _undeclared_access(case: _Case) -> Decision | None:
    """A tool that does not declare what it accesses might do what a deny rule forbids."""
    if case.facts.declares_access:
        return None
    for rule in case.settings.rules.deny:
        if any(matches_tool(rule, tool) for tool in ACCESS_RULES):
            reason = (
                f"{case.facts.tool} does not declare what it accesses, so {rule.text!r} cannot be checked on it. "
                "An allow rule that names the tool lets it run."
            )
            return Decision("ask", "undeclared access", reason)
    return None


def _allow_rules(case: _Case) -> Decision | None:
    rule = find_allow_rule(case.settings.rules.allow, case.facts, case.settings, case.text)
    return Decision("allow", f"allow {rule.text}", f"The rule {rule.text!r} allows it.") if rule else None


def _grants(case: _Case) -> Decision | None:
    """Grants together with the allow rules, as a list of commands may need both."""
    facts, settings = case.facts, case.settings
    if case.text is not None and case.text.written:
        # The rule names a command and not the file, so "always" for one redirection would allow all.
        return None

    def suffice(grants: Sequence[Grant]) -> bool:
        rules = [*settings.rules.allow, *(rule for grant in grants for rule in grant.rules)]
        return find_allow_rule(rules, facts, settings, case.text) is not None

    applying = [grant for grant in settings.grants if grant_applies(grant, facts.mode)]
    if not applying or not suffice(applying):
        return None
    needed = minimal_grants(applying, suffice)
    name = ", ".join(grant.name for grant in needed)
    rules = ", ".join(repr(rule.text) for grant in needed for rule in grant.rules)
    return Decision("allow", name, f"Always allowed by {name}: {rules}.")


def _accept_edits(case: _Case) -> Decision | None:
    facts = case.facts
    is_edit = facts.tool in ("write_file", "edit_file") and facts.paths and all(path.inside for path in facts.paths)
    if facts.mode != "acceptEdits" or not is_edit:
        return None
    return Decision("allow", "acceptEdits", "This mode accepts file changes in the workspace.")


def _by_risk(case: _Case) -> Decision:
    facts, text = case.facts, case.text
    for path in facts.paths:
        if not (path.inside or path.is_memory) or path.exposes_process:
            leads = f"{path.given} leads to " if path.given != str(path.resolved) else ""
            reason = f"{leads}{path.resolved}, outside the workspace {facts.workspace}."
            return Decision("ask", "outside the workspace", reason)
    risk = call_risk(facts, case.settings)
    because = f": it {risk.reason}" if risk.reason else ""
    reason = f"{facts.tool} has {risk.level} risk{because}."
    if risk.leaves_workspace:
        return Decision("ask", "outside the workspace", reason)
    if risk.level == "low":
        return Decision("allow", "risk low", reason)
    why = unclear_reason(facts, text) if text else ""
    # The same reason is not given twice.
    why = f" It cannot be allowed by a rule: {why}." if why and why not in risk.reason else ""
    return Decision("ask", f"risk {risk.level}", f"{reason}{why}")


class _Step(NamedTuple):
    description: str
    source: StepSource
    decide: Callable[[_Case], Decision | None]


_CHAIN = (
    _Step(
        "hard refusals: commands that destroy disks or the root folder, and the agent's own files",
        "built in",
        _hard_refusals,
    ),
    _Step("plan mode denies tools that are not for planning", "built in", _plan_mode),
    _Step("deny rules", "deny", partial(_strict_rules, verdict="deny")),
    _Step("questions to the user are asked in every mode", "built in", _questions),
    _Step("commands that name a denied path or host ask", "built in", _denied_access),
    _Step("commands for which deny and ask rules cannot be checked ask", "built in", _unverifiable_commands),
    _Step("bypassPermissions allows", "built in", _bypass),
    _Step("ask rules", "ask", _ask_rules),
    _Step("writes to protected names ask", "built in", _protected_names),
    _Step(
        "changes to the memory file ask if the conversation contains untrusted content",
        "built in",
        _untrusted_memory,
    ),
    _Step("allow rules", "allow", _allow_rules),
    _Step("saved permissions", "granted", _grants),
    _Step("tools that do not declare what they access ask while deny rules exist", "built in", _undeclared_access),
    _Step("acceptEdits allows file changes in the workspace", "built in", _accept_edits),
    _Step("risk: LOW allows, reads outside the workspace ask, MEDIUM and HIGH ask", "built in", _by_risk),
)

CHAIN_STEPS: tuple[tuple[str, StepSource], ...] = (
    *((step.description, step.source) for step in _CHAIN),
    ("auto: a model's stored verdict may allow a MEDIUM call that nothing but its risk asks about", "built in"),
    ("dontAsk turns ask into deny", "built in"),
)
"""The order of evaluation in words, each step with what it reads; the last two change an ask of the others."""


class HostAccess(NamedTuple):
    """What the rules say about a network host that was not part of the call, such as the target of a redirect."""

    is_denied: bool
    is_closed: bool
    """By a deny rule, and not only because the mode never asks."""
    is_allowed: bool
    """Without asking."""
    is_named: bool
    """By an allow rule that names it, or a domain it is in: then it may also be in a private network."""


def host_access(facts: CallFacts, settings: PolicySettings) -> HostAccess:
    """Evaluate a call by its host; the facts name one."""
    decision = evaluate(facts, settings)
    naming = [rule for rule in settings.rules.allow if (rule.pattern or "").partition(":")[0].strip("*. ")]
    is_named = find_allow_rule(naming, facts, settings, None) is not None
    is_closed = any(covers_any_part(rule, facts, settings, None) for rule in settings.rules.deny)
    return HostAccess(decision.verdict == "deny", is_closed, decision.verdict == "allow", is_named)


def is_reserved(
    path: PurePath, workspace: PurePath, reserved: Iterable[PurePath], exempt_files: Iterable[PurePath] = ()
) -> bool:
    """Whether a resolved path is, or is in, one of the agent's own folders and files.

    A workspace in such a folder is the user's choice: what is in the workspace is then not reserved.
    """
    if path in exempt_files:
        return False
    return any(
        path.is_relative_to(root) and not (workspace.is_relative_to(root) and path.is_relative_to(workspace))
        for root in reserved
    )


def mentioned_reserved_path(command: str, workspace: PurePath, reserved: Iterable[PurePath]) -> str:
    """The reserved path that a command's text names, in full or by its last two parts; empty when it names none."""
    for root in reserved:
        if workspace.is_relative_to(root):
            continue
        # Only a name of our own is distinctive enough to be matched without the folders above it.
        spellings = [str(root), *(["/".join(root.parts[-2:])] if "graph-agent" in root.name else [])]
        if any(re.search(f"{re.escape(text)}(?![\\w.-])", command) for text in spellings):
            return str(root)
    return ""
