"""Facts about a call for policy, and tools' values as the JSON values that records, journal and events hold."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any, Literal, NamedTuple

from graph_agent.ports import Finding, Outcome, Scope
from graph_agent.toolbox.path_facts import Setting, path_fact
from graph_agent.toolbox.shell_facts import CommandFacts, command_facts
from policy import CallFacts, PathFact, PolicySettings, Risk, host_access, risk_of
from tools.base import (
    BaseTool,
    BlobStore,
    CommandTarget,
    HostPermission,
    HostTarget,
    InterruptedCall,
    PathTarget,
    Preview,
    Target,
    ToolKind,
    ToolResult,
)
from tools.registry import Origin, is_offered_in_plan_mode
from tools.running import run_in_thread

__all__ = [
    "Setting",
    "Targets",
    "as_outcome",
    "as_preview",
    "call_facts",
    "host_permission",
    "kind_of",
    "reconciled",
    "resolve_targets",
    "risk_here",
    "stored_preview",
    "whole_command",
    "with_command",
]

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


class Targets(NamedTuple):
    """What a call names, as the file system has it now. Two that are equal give the same facts."""

    paths: tuple[PathFact, ...]
    files: tuple[tuple[int, ...] | None, ...]
    """Of each path what identifies its file and the version of it; None where there is none."""
    hosts: tuple[str, ...]
    command: CommandFacts | None


def resolve_targets(targets: Sequence[Target], cwd: str, setting: Setting) -> Targets:
    """Look up what a call names.

    Raises:
        PathRefused: a path, or the folder of a command, cannot be resolved.
    """
    paths = tuple(path_fact(target, setting) for target in targets if isinstance(target, PathTarget))
    hosts = tuple(target.text for target in targets if isinstance(target, HostTarget))
    command = whole_command(targets)
    return Targets(
        paths,
        tuple(_file_version(path.resolved) for path in paths),
        hosts,
        None if command is None else command_facts(command, Path(cwd or setting.workspace), setting),
    )


def whole_command(targets: Sequence[Target]) -> CommandTarget | None:
    """The commands of a call as one text, as they are evaluated; None where it has none."""
    commands = [target for target in targets if isinstance(target, CommandTarget)]
    if not commands:
        return None
    text = "\n".join(command.text for command in commands)
    return replace(commands[0], text=text, is_bash=all(command.is_bash for command in commands))


def _file_version(path: PurePath) -> tuple[int, ...] | None:
    try:
        now = os.stat(path, follow_symlinks=False)  # noqa: PTH116 - a pure path
    except OSError:
        return None
    return now.st_dev, now.st_ino, now.st_mode, now.st_nlink, now.st_size, now.st_mtime_ns, now.st_ctime_ns


def call_facts(
    tool: BaseTool,
    arguments: Mapping[str, Any],
    scope: Scope,
    setting: Setting,
    origin: Origin | None,
    resolved: Targets | None = None,
) -> CallFacts:
    """The facts about one validated call; `resolved` are its targets, where they were looked up already.

    Raises:
        PathRefused: a path it names cannot be resolved.
    """
    targets = tool.targets(arguments)
    found = resolved or resolve_targets(targets, scope.cwd, setting)
    facts = CallFacts(
        tool=tool.name,
        mode=scope.mode,
        risk=risk_here(tool, origin, setting.policy),
        kind=kind_of(tool, arguments),
        workspace=setting.workspace,
        original_tool=tool.rule_name,
        allowed_in_plan_mode=is_offered_in_plan_mode(tool),
        requires_input=tool.requires_input,
        cwd=Path(scope.cwd) if scope.cwd else None,
        paths=found.paths,
        hosts=found.hosts,
        signature=found.hosts[0] if found.hosts else tool.signature(arguments),
    )
    command = whole_command(targets)
    return facts if command is None or found.command is None else with_command(facts, command, found.command)


def with_command(facts: CallFacts, command: CommandTarget, read: CommandFacts) -> CallFacts:
    """The facts with those about the call's command."""
    return replace(
        facts,
        command=command.text,
        cwd=read.cwd if command.working_directory else facts.cwd,
        shell=read.shell,
        redirects=read.redirects,
        mentions=read.mentions,
        patterns=read.patterns,
    )


def host_permission(host: str, scope: Scope, setting: Setting) -> HostPermission:
    """What the rules say; what was allowed "always" counts for calls alone, not for where they lead."""
    facts = CallFacts(
        tool="web_fetch",
        mode=scope.mode,
        risk="medium",
        kind="readonly",
        workspace=setting.workspace,
        allowed_in_plan_mode=True,
        hosts=(host,),
    )
    reach = host_access(facts, setting.policy)
    return HostPermission(is_denied=reach.is_denied, may_follow=reach.is_allowed, may_be_private=reach.is_named)


_PREVIEW_CHARS = 20_000


def as_outcome(result: ToolResult) -> Outcome:
    """The result of a call that ran to its end."""
    return Outcome(
        status="success" if result.error is None else "error",
        output=_storable(result.output),
        error=None if result.error is None else _storable(result.error),
        summary=_storable(result.display),
        metadata=_as_json(result.metadata),
    )


async def reconciled(tool: BaseTool, call: InterruptedCall) -> Finding:
    """What a tool finds out about a call that was broken off."""
    found = await tool.reconcile(call)
    return Finding(found.verdict, found.detail)


def as_preview(preview: Preview, blobs: BlobStore) -> dict[str, Any]:
    """The preview with a bounded text; the whole of a long one lies in a blob, and the text says so."""
    text = _storable(preview.text)
    shown: dict[str, Any] = {"kind": preview.kind, "text": text, "observed": preview.observed}
    if len(text) <= _PREVIEW_CHARS:
        return shown
    end = text.rfind("\n", 0, _PREVIEW_CHARS) + 1 or _PREVIEW_CHARS
    lines = text.count("\n", end) + 1
    reference = blobs.put(text.encode())
    notice = (
        f"[… {lines} more lines, {len(text) - end} characters, are not shown here; the whole text is {reference}]"
    )
    return {**shown, "text": f"{text[:end]}{notice}\n", "full": reference, "full_chars": len(text)}


async def stored_preview(preview: Preview, blobs: BlobStore) -> dict[str, Any]:
    """The same; a thread is only waited for where there is a blob to write."""
    if len(preview.text) <= _PREVIEW_CHARS:
        return as_preview(preview, blobs)
    return await run_in_thread(as_preview, preview, blobs)


def _as_json(metadata: dict[str, Any]) -> dict[str, Any]:
    # A tool may put anything there; what is not JSON becomes text, so that a record can always be stored.
    plain: dict[str, Any] = json.loads(_storable(json.dumps(metadata, default=str, ensure_ascii=False)))
    return plain


def _storable(text: str) -> str:
    """The text without what UTF-8 cannot hold: lone surrogates, as undecodable file names leave them."""
    return text.encode("utf-8", "replace").decode("utf-8")
