"""From a tool and its arguments to the facts that policy judges. The one place where both are known."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from graph_agent.ports import Scope
from policy import CallFacts, PathFact, PolicySettings, is_reserved, risk_of
from tools.base import BaseTool, CommandTarget, HostTarget, PathTarget, ToolKind
from tools.paths import resolve
from tools.registry import Origin, plans

__all__ = ["Setting", "call_facts", "kind_of"]

Kind = Literal["readonly", "write", "execute"]


class Setting(NamedTuple):
    """What judging needs to know besides the call."""

    workspace: Path
    policy: PolicySettings


def kind_of(tool: BaseTool, arguments: Mapping[str, Any]) -> Kind:
    """The kind of this very call."""
    if tool.is_read_only(arguments):
        return "readonly"
    return "write" if tool.kind == ToolKind.WRITE else "execute"


def call_facts(
    tool: BaseTool, arguments: Mapping[str, Any], scope: Scope, setting: Setting, origin: Origin | None
) -> CallFacts:
    """The facts about one validated call.

    Raises:
        PathRefused: a path it names cannot be resolved.
    """
    targets = tool.targets(arguments)
    commands = [target.text for target in targets if isinstance(target, CommandTarget)]
    hosts = [target.text for target in targets if isinstance(target, HostTarget)]
    paths = tuple(_path_fact(target, setting) for target in targets if isinstance(target, PathTarget))
    declared = str(tool.risk_level)
    return CallFacts(
        tool=tool.name,
        mode=scope.mode,
        risk=risk_of(tool.name, declared, is_own=origin == "builtin", settings=setting.policy.risk),
        kind=kind_of(tool, arguments),
        workspace=setting.workspace,
        plans=plans(tool),
        cwd=Path(scope.cwd) if scope.cwd else None,
        paths=paths,
        command="\n".join(commands) if commands else None,
        signature=hosts[0] if hosts else tool.signature(arguments),
    )


def _path_fact(target: PathTarget, setting: Setting) -> PathFact:
    found = resolve(target.text, workspace=setting.workspace)
    policy = setting.policy
    return PathFact(
        given=target.text,
        resolved=found.path,
        access=target.access,
        inside=found.inside,
        reserved=is_reserved(found.path, setting.workspace, policy.reserved, policy.open_files),
        is_memory=found.path in policy.open_files,
        reaches_process=found.reaches_process,
    )
