"""Check a call or a rule against policy without a session: `policy check`, and examples in rules."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

from graph_agent.ports import Scope
from graph_agent.toolbox.facts import PolicyContext, call_facts, command_facts, path_fact, with_command
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
from tools.base import CommandTarget, HostTarget, PathTarget
from tools.file_ops.edit_file import EditFileTool
from tools.file_ops.glob import GlobTool
from tools.file_ops.grep import GrepTool
from tools.file_ops.ls import LsTool
from tools.file_ops.read_file import ReadFileTool
from tools.file_ops.write_file import WriteFileTool
from tools.paths import PathRefused
from tools.registry import ToolRegistry, resolve_tool_name
from tools.result import ToolKind
from tools.running import normalize_arguments
from tools.schema import InvalidArguments
from tools.web_ops.web_fetch import WebFetchTool

__all__ = ["Examples", "PolicyCheck", "check_call", "check_examples"]

_PATH_TOOLS = (ReadFileTool, LsTool, GlobTool, GrepTool, WriteFileTool, EditFileTool)
"""The built-in tools that work on one path."""
_ACCESS: Mapping[str, Literal["read", "write"]] = {
    tool.name: "read" if tool.kind is ToolKind.READONLY else "write" for tool in _PATH_TOOLS
}

_NOWHERE = Path("/graph-agent-examples/workspace")
"""The workspace of examples: no link of a real folder may change what a rule seems to mean."""


class PolicyCheck(NamedTuple):
    """What policy decides, and the facts it evaluated."""

    decision: Decision
    facts: CallFacts | None
    """None if a path could not be resolved: such a call is refused before it is evaluated."""


class Examples(NamedTuple):
    """A rule with what it must and must not cover."""

    rule: str
    match: tuple[str, ...] = ()
    not_match: tuple[str, ...] = ()


def check_call(
    tool_name: str, arguments: Mapping[str, Any], mode: str, *, registry: ToolRegistry, context: PolicyContext
) -> PolicyCheck:
    """Evaluate a call as a session would, without any effect.

    Raises:
        InvalidArguments: the tool does not take these arguments.
    """
    name = canonical_tool_name(tool_name)
    known = resolve_tool_name(name, registry.names())
    tool = registry.get(known) if known is not None else None
    if tool is None:
        tool = next((one for one in registry if one.rule_name and one.rule_name.casefold() == name), None)
    try:
        if tool is None:
            facts = _facts_of_unknown_tool(name, arguments, mode, context)
        else:
            fields = tool.args_schema.model_fields
            named = {
                ARGUMENT_ALIASES.get(key, key) if ARGUMENT_ALIASES.get(key) in fields else key: value
                for key, value in arguments.items()
            }
            usable = normalize_arguments(tool, named)
            origin = registry.origin(tool.name)
            # Objections of a built-in tool matter only to a run: rules are evaluated all the same.
            if origin != "builtin" and (objection := tool.validate(usable)):
                raise InvalidArguments(objection)
            facts = call_facts(tool, usable, Scope("", mode), context, origin)
    except PathRefused as error:
        return PolicyCheck(Decision("deny", "unusable path", str(error)), None)
    return PolicyCheck(evaluate(facts, context.policy), facts)


def _facts_of_unknown_tool(name: str, arguments: Mapping[str, Any], mode: str, context: PolicyContext) -> CallFacts:
    """Facts about a tool that is not registered: a server's, a plug-in's, or a built-in one that is off."""
    access = _ACCESS.get(name)
    is_reader = access == "read"
    given = arguments.get("file_path", arguments.get("path", "." if is_reader else None))
    paths = (path_fact(PathTarget(str(given), access), context),) if access and given is not None else ()
    return CallFacts(
        tool=name,
        mode=mode,
        risk=risk_of(name, None, is_own=not name.startswith("mcp__"), settings=context.policy.risk),
        kind="readonly" if is_reader else "execute",
        workspace=context.workspace,
        allowed_in_plan_mode=is_reader,
        paths=paths,
        declares_access=name in _ACCESS,
    )


def check_examples(kind: Literal["allow", "ask", "deny"], examples: Examples) -> None:
    """Check a rule of one of the three lists against its examples.

    Raises:
        InvalidRule: it is no rule, or an example is on the wrong side; the message names both.
    """
    rule = parse_rule(examples.rule)
    context = PolicyContext(_NOWHERE, PolicySettings(home=Path.home()))
    for text in (*examples.match, *examples.not_match):
        try:
            facts = _facts_of_example(rule, text, context)
        except InvalidRule:
            raise
        except (PathRefused, ValueError) as error:
            raise InvalidRule(f"the example {text!r} of {rule.text!r} cannot be used: {error}") from error
        is_covered = rule_covers(rule, facts, context.policy, is_strict=kind != "allow")
        if text in examples.match and not is_covered:
            raise InvalidRule(
                f"the {kind} rule {rule.text!r} does not cover {text!r}, which its examples say it must"
            )
        if text in examples.not_match and is_covered:
            raise InvalidRule(f"the {kind} rule {rule.text!r} covers {text!r}, which its examples say it must not")


def _facts_of_example(rule: Rule, example: str, context: PolicyContext) -> CallFacts:
    tool = canonical_tool_name(example) if rule.pattern is None else rule.tool
    facts = CallFacts(tool, "default", "medium", "execute", _NOWHERE)
    if rule.pattern is None:
        return facts
    if tool == "bash":
        return with_command(facts, command_facts(CommandTarget(example), context.workspace, context))
    if tool in _ACCESS:
        return replace(facts, paths=(path_fact(PathTarget(example, _ACCESS[tool]), context),))
    if tool == "web_fetch":
        address = example if "://" in example else f"https://{example}"
        targets = WebFetchTool().targets({"url": address})
        return replace(facts, hosts=tuple(target.text for target in targets if isinstance(target, HostTarget)))
    raise InvalidRule(
        f"{rule.text!r} cannot carry examples: only rules about bash, files, web_fetch or whole tools can"
    )
