"""Check a call or a rule against policy without a session: `policy check`, and examples in rules."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from graph_agent.ports import Scope
from graph_agent.toolbox.facts import call_facts, with_command
from graph_agent.toolbox.path_facts import Setting, path_fact
from graph_agent.toolbox.shell_facts import command_facts
from policy import (
    ARGUMENT_ALIASES,
    CallFacts,
    Decision,
    InvalidRule,
    PolicySettings,
    Rule,
    canonical_tool_name,
    evaluate,
    parse_rule,
    risk_of,
    rule_covers,
)
from tools.base import BaseTool, CommandTarget, HostTarget, PathTarget
from tools.paths import PathRefused
from tools.registry import ToolRegistry, resolve_tool_name
from tools.running import normalize_arguments
from tools.schema import InvalidArguments
from tools.web_ops.web_fetch import WebFetchTool

__all__ = ["Checked", "Examples", "check_call", "hold_examples"]

_READERS = frozenset(("read_file", "ls", "glob", "grep"))
_WRITERS = frozenset(("write_file", "edit_file"))


class Checked(NamedTuple):
    """What policy says, and of what."""

    decision: Decision
    facts: CallFacts | None
    """None where a path could not be resolved: such a call is refused before it is judged."""


def check_call(
    tool_name: str, arguments: Mapping[str, Any], mode: str, *, registry: ToolRegistry, setting: Setting
) -> Checked:
    """Judge a call as the agent would, without any effect.

    Raises:
        BadArguments: the arguments are not what the tool takes.
    """
    name = canonical_tool_name(tool_name)
    tool = _tool_named(name, registry)
    scope = Scope("", mode)
    try:
        if tool is None:
            facts = _foreign_facts(name, arguments, mode, setting)
        else:
            origin = registry.origin(tool.name)
            usable = _usable(tool, arguments, is_ours=origin == "builtin")
            facts = call_facts(tool, usable, scope, setting, origin)
    except PathRefused as error:
        return Checked(Decision("deny", "unusable path", str(error)), None)
    return Checked(evaluate(facts, setting.policy), facts)


def _tool_named(name: str, registry: ToolRegistry) -> BaseTool | None:
    known = resolve_tool_name(name, registry.names())
    if known is not None:
        return registry.get(known)
    return next((tool for tool in registry if tool.rule_name and tool.rule_name.casefold() == name), None)


def _usable(tool: BaseTool, arguments: Mapping[str, Any], *, is_ours: bool) -> dict[str, Any]:
    """The arguments as rules see them. What a tool of ours says of them beyond that is for whoever runs it."""
    fields = tool.args_schema.model_fields
    named = {
        ARGUMENT_ALIASES.get(key, key) if ARGUMENT_ALIASES.get(key) in fields else key: value
        for key, value in arguments.items()
    }
    usable = normalize_arguments(tool, named)
    if not is_ours and (objection := tool.validate(usable)):
        raise InvalidArguments(objection)
    return usable


def _foreign_facts(name: str, arguments: Mapping[str, Any], mode: str, setting: Setting) -> CallFacts:
    """Facts about a tool that is not here: a server's, a plug-in's, one of ours that is switched off."""
    is_reader = name in _READERS
    is_ours = is_reader or name in _WRITERS
    given = arguments.get("file_path", arguments.get("path", "." if is_reader else None))
    paths = (PathTarget(str(given), "read" if is_reader else "write"),) if is_ours and given is not None else ()
    return CallFacts(
        tool=name,
        mode=mode,
        risk=risk_of(name, None, is_own=not name.startswith("mcp__"), settings=setting.policy.risk),
        kind="readonly" if is_reader else "execute",
        workspace=setting.workspace,
        allowed_in_plan_mode=is_reader,
        paths=tuple(path_fact(target, setting) for target in paths),
    )


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
        InvalidRule: it is no rule, or an example is on the wrong side; the message names both.
    """
    rule = parse_rule(examples.rule)
    for text in examples.match:
        if not _covers(kind, rule, text):
            raise InvalidRule(
                f"the {kind} rule {rule.text!r} does not cover {text!r}, which its examples say it must"
            )
    for text in examples.not_match:
        if _covers(kind, rule, text):
            raise InvalidRule(f"the {kind} rule {rule.text!r} covers {text!r}, which its examples say it must not")


def _covers(kind: str, rule: Rule, example: str) -> bool:
    setting = Setting(_NOWHERE, PolicySettings(home=Path.home()))
    try:
        facts = _facts(rule, example, setting)
    except InvalidRule:
        raise
    except (PathRefused, ValueError) as error:
        raise InvalidRule(f"the example {example!r} of {rule.text!r} cannot be used: {error}") from error
    return rule_covers(rule, facts, setting.policy, is_strict=kind != "allow")


def _facts(rule: Rule, example: str, setting: Setting) -> CallFacts:
    tool = canonical_tool_name(example) if rule.pattern is None else rule.tool
    facts = CallFacts(tool, "default", "medium", "execute", _NOWHERE)
    if rule.pattern is None:
        return facts
    if tool == "bash":
        command = CommandTarget(example)
        return with_command(facts, command, command_facts(command, setting.workspace, setting))
    if tool in _ACCESS:
        return replace(facts, paths=(path_fact(PathTarget(example, _ACCESS[tool]), setting),))
    if tool == "web_fetch":
        address = example if "://" in example else f"https://{example}"
        hosts = [
            target.text for target in WebFetchTool().targets({"url": address}) if isinstance(target, HostTarget)
        ]
        return replace(facts, hosts=tuple(hosts))
    raise InvalidRule(
        f"{rule.text!r} cannot carry examples: only rules about bash, files, web_fetch or whole tools can"
    )
