"""From a tool and its arguments to the facts that policy judges. The one place where both are known."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from graph_agent.ports import Scope
from graph_agent.toolbox.command import command_facts
from graph_agent.toolbox.places import Setting, path_fact
from policy import CallFacts, PolicySettings, Risk, risk_of
from tools.base import BaseTool, CommandTarget, HostTarget, PathTarget, ToolKind
from tools.registry import Origin, plans

__all__ = ["Setting", "call_facts", "kind_of", "risk_here", "with_command"]

Kind = Literal["readonly", "write", "execute"]


def kind_of(tool: BaseTool, arguments: Mapping[str, Any]) -> Kind:
    """The kind of this very call."""
    if tool.is_read_only(arguments):
        return "readonly"
    return "write" if tool.kind == ToolKind.WRITE else "execute"


def risk_here(tool: BaseTool, origin: Origin | None, policy: PolicySettings) -> Risk:
    """The risk of a registered tool's calls.

    A server's tool whose risk the user configured is taken at that word. A plug-in could say so itself.
    """
    is_own = origin == "builtin" or (origin == "mcp" and tool.risk_is_configured)
    return risk_of(tool.name, str(tool.risk_level), is_own=is_own, settings=policy.risk)


def call_facts(
    tool: BaseTool, arguments: Mapping[str, Any], scope: Scope, setting: Setting, origin: Origin | None
) -> CallFacts:
    """The facts about one validated call.

    Raises:
        PathRefused: a path it names cannot be resolved.
    """
    targets = tool.targets(arguments)
    commands = [target for target in targets if isinstance(target, CommandTarget)]
    hosts = tuple(target.text for target in targets if isinstance(target, HostTarget))
    facts = CallFacts(
        tool=tool.name,
        mode=scope.mode,
        risk=risk_here(tool, origin, setting.policy),
        kind=kind_of(tool, arguments),
        workspace=setting.workspace,
        original_tool=tool.rule_name,
        plans=plans(tool),
        wants_answer=tool.wants_answer,
        cwd=Path(scope.cwd) if scope.cwd else None,
        paths=tuple(path_fact(target, setting) for target in targets if isinstance(target, PathTarget)),
        hosts=hosts,
        signature=hosts[0] if hosts else tool.signature(arguments),
    )
    return with_command(facts, commands, setting) if commands else facts


def with_command(facts: CallFacts, commands: Sequence[CommandTarget], setting: Setting) -> CallFacts:
    """The facts with those about its commands, which are judged as one text.

    Raises:
        PathRefused: the folder it would start in cannot be resolved.
    """
    whole = replace(
        commands[0],
        text="\n".join(target.text for target in commands),
        is_bash=all(target.is_bash for target in commands),
    )
    read = command_facts(whole, Path(facts.cwd or setting.workspace), setting)
    return replace(
        facts,
        command=whole.text,
        cwd=read.cwd if whole.working_directory else facts.cwd,
        shell=read.shell,
        redirects=read.redirects,
        mentions=read.mentions,
        patterns=read.patterns,
    )
