"""Whether a rule means what its examples say. Needs no workspace: an example speaks for itself."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple

from graph_agent.toolbox.facts import with_command
from graph_agent.toolbox.places import Setting, path_fact
from policy import BadRule, CallFacts, PolicySettings, Rule, covers, parse_rule, tool_named
from tools.paths import PathRefused
from tools.targets import CommandTarget, HostTarget, PathTarget
from tools.web_ops.web_fetch import WebFetchTool

__all__ = ["Examples", "hold_examples"]

_NOWHERE = Path("/graph-agent-examples/workspace")
"""Paths in examples are read below it: no link of a real folder may change what a rule is seen to mean."""

_ACCESS: Mapping[str, Literal["read", "write"]] = {
    "read_file": "read",
    "ls": "read",
    "glob": "read",
    "grep": "read",
    "write_file": "write",
    "edit_file": "write",
}


class Examples(NamedTuple):
    """A rule with what it must and must not cover."""

    rule: str
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()


def hold_examples(kind: Literal["allow", "ask", "deny"], examples: Examples) -> None:
    """Hold a rule of one of the three lists against its examples.

    Raises:
        BadRule: it is no rule, or an example is on the wrong side; the message names both.
    """
    rule = parse_rule(examples.rule)
    for text in examples.match:
        if not _covers(kind, rule, text):
            raise BadRule(f"the {kind} rule {rule.text!r} does not cover {text!r}, which its examples say it must")
    for text in examples.not_match:
        if _covers(kind, rule, text):
            raise BadRule(f"the {kind} rule {rule.text!r} covers {text!r}, which its examples say it must not")


def _covers(kind: str, rule: Rule, example: str) -> bool:
    setting = Setting(_NOWHERE, PolicySettings(home=Path.home()))
    try:
        facts = _facts(rule, example, setting)
    except BadRule:
        raise
    except (PathRefused, ValueError) as error:
        raise BadRule(f"the example {example!r} of {rule.text!r} cannot be used: {error}") from error
    return covers(rule, facts, setting.policy, is_strict=kind != "allow")


def _facts(rule: Rule, example: str, setting: Setting) -> CallFacts:
    tool = tool_named(example) if rule.pattern is None else rule.tool
    facts = CallFacts(tool, "default", "medium", "execute", _NOWHERE)
    if rule.pattern is None:
        return facts
    if tool == "bash":
        return with_command(facts, [CommandTarget(example)], setting)
    if tool in _ACCESS:
        return replace(facts, paths=(path_fact(PathTarget(example, _ACCESS[tool]), setting),))
    if tool == "web_fetch":
        address = example if "://" in example else f"https://{example}"
        hosts = [
            target.text for target in WebFetchTool().targets({"url": address}) if isinstance(target, HostTarget)
        ]
        return replace(facts, hosts=tuple(hosts))
    raise BadRule(
        f"{rule.text!r} cannot carry examples: only rules about bash, files, web_fetch or whole tools can"
    )
