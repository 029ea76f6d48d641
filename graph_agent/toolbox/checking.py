"""What policy would say to a call that nobody makes: by the tool's name and its arguments, known tool or not."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from graph_agent.ports import Scope
from graph_agent.toolbox.facts import call_facts
from graph_agent.toolbox.places import Setting, path_fact
from policy import ARGUMENT_ALIASES, CallFacts, Decision, judge, risk_of, tool_named
from tools.base import BaseTool
from tools.coercion import BadArguments
from tools.finding import resolve_name
from tools.paths import PathRefused
from tools.registry import ToolRegistry
from tools.running import parsed
from tools.targets import PathTarget

__all__ = ["Checked", "check_call"]

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
    name = tool_named(tool_name)
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
    return Checked(judge(facts, setting.policy), facts)


def _tool_named(name: str, registry: ToolRegistry) -> BaseTool | None:
    known = resolve_name(name, registry.names())
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
    usable = parsed(tool, named)
    if not is_ours and (objection := tool.validate(usable)):
        raise BadArguments(objection)
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
        plans=is_reader,
        paths=tuple(path_fact(target, setting) for target in paths),
    )
