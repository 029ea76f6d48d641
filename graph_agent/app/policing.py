"""Answers what the rules would say to a call, and which rules there are. Runs no tool, writes nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from graph_agent.app.catalog import registry_about
from graph_agent.app.roots import roots_of
from graph_agent.app.tooling import policy_of
from graph_agent.config.settings import Settings
from graph_agent.config.tightening import item_key
from graph_agent.errors import UsageError
from graph_agent.ports import Grant
from graph_agent.toolbox.checking import Checked, check_call
from graph_agent.toolbox.granting import granted
from graph_agent.toolbox.places import Setting
from policy import CHAIN_STEPS, CallFacts, PathFact, PolicySettings, judge
from tools.asking import Unanswered, asked
from tools.coercion import BadArguments

__all__ = ["EffectiveRule", "Report", "effective_rules", "report_on"]

_WAIT_S = 30.0
"""How long a call may take to be judged; a tool of others that never answers would keep the command for ever."""


@dataclass(frozen=True)
class Report:
    """What policy says to a call."""

    decision: Literal["allow", "ask", "deny"]
    rule: str
    reason: str
    parsed: Mapping[str, Any]
    """How the call was understood: its commands, its paths, its hosts."""
    problems: tuple[str, ...] = ()
    """A line for each plug-in, or tool of one, that is left out: it was not there to be judged."""
    allowed_in: tuple[str, ...] = ()
    """Where it asks: the threads that were allowed it always."""


@dataclass(frozen=True)
class EffectiveRule:
    """One line of what judges a call, in the order of judgement."""

    step: str
    list: str
    """allow, ask or deny; empty for what is built in."""
    rule: str
    source: str


async def report_on(
    tool: str, arguments: Mapping[str, Any], settings: Settings, workspace: Path, grants: Sequence[Grant] = ()
) -> Report:
    """Judge a call that a new thread makes in this workspace under these settings and grants.

    Grants of single threads only tell where else it would pass. A server's tool is judged as the server says.

    Raises:
        ConfigError: a rule of the settings cannot be read.
        UsageError: the arguments are not what the tool takes.
    """
    everywhere = [grant for grant in grants if grant.scope != "thread"]
    policy = policy_of(settings)
    setting = Setting(workspace, granted(policy, everywhere), roots_of(workspace, (), settings).usable)
    async with registry_about(tool, workspace, settings) as (registry, problems):
        try:
            judged = partial(check_call, tool, arguments, settings.mode, registry=registry, setting=setting)
            checked = await asked(tool, judged, passing=(BadArguments,), seconds=_WAIT_S)
        except (BadArguments, Unanswered) as error:
            raise UsageError(str(error)) from error
        allowed_in = tuple(_allowed_in(checked, policy, grants))
        return replace(_as_report(checked), problems=tuple(problems), allowed_in=allowed_in)


def _allowed_in(checked: Checked, policy: PolicySettings, grants: Sequence[Grant]) -> Iterator[str]:
    if checked.facts is None or checked.decision.verdict != "ask":
        return
    for thread_id in dict.fromkeys(grant.thread_id for grant in grants if grant.scope == "thread"):
        holding = [grant for grant in grants if grant.scope != "thread" or grant.thread_id == thread_id]
        if judge(checked.facts, granted(policy, holding)).verdict == "allow":
            yield thread_id


def _as_report(checked: Checked) -> Report:
    """The decision with how the call was understood."""
    decision, facts = checked
    return Report(decision.verdict, decision.rule, decision.reason, {} if facts is None else _parsed(facts))


def effective_rules(settings: Settings, grants: Sequence[Grant] = ()) -> Sequence[EffectiveRule]:
    """Everything that judges, first what speaks first.

    Raises:
        ConfigError: a rule cannot be read.
    """
    policy_of(settings)
    found: list[EffectiveRule] = []
    for step, speaker in CHAIN_STEPS:
        match speaker:
            case "built in":
                found.append(EffectiveRule(step, "", step, "built in"))
            case "granted":
                found += [
                    EffectiveRule(step, "allow", rule, f"grant {grant.id}")
                    for grant in grants
                    for rule in grant.rules
                ]
            case _:
                found += _of_list(step, speaker, settings)
    return found


def _of_list(step: str, name: Literal["allow", "ask", "deny"], settings: Settings) -> Iterator[EffectiveRule]:
    key, origins = f"policy.{name}", settings.origins
    for entry in settings.policy.rules(name):
        source = origins.get(item_key(key, entry.rule), origins.get(key, ""))
        yield EffectiveRule(step, name, entry.rule, source)


def _parsed(facts: CallFacts) -> Mapping[str, Any]:
    parsed: dict[str, Any] = {"tool": facts.tool, "mode": facts.mode, "risk": facts.risk}
    if facts.shell is not None:
        text = facts.shell
        parsed |= {
            "commands": [command.text for command in text.commands],
            "also_runs": [one.text for one in text.runs if one not in text.commands],
            "writes": list(map(_path, facts.redirects)),
            "is_plain": not text.not_plain,
            "not_plain_because": text.not_plain,
        }
    if facts.paths:
        parsed["paths"] = list(map(_path, facts.paths))
    if facts.hosts:
        parsed["hosts"] = list(facts.hosts)
    return parsed


def _path(path: PathFact) -> Mapping[str, Any]:
    return {"given": path.given, "resolved": str(path.resolved), "access": path.access, "inside": path.inside}
