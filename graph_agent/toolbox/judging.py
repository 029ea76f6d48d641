"""The stages of a call before it runs: validate, state the facts, judge, preview. Executes nothing.

What policy would say to a call that nobody makes: by the tool's name and its arguments, known tool or not.

Whether a rule means what its examples say. Needs no workspace: an example speaks for itself.

A judged call as the graph is told of it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

from graph_agent.calls import ToolCallInfo
from graph_agent.ports import Grants, Plan, Proposal, Scope
from graph_agent.toolbox.facts import call_facts, kind_of, stored_preview, with_command
from graph_agent.toolbox.path_facts import Setting, path_fact
from graph_agent.toolbox.shell_facts import command_in_words
from graph_agent.toolbox.tool_context import Surroundings, admitted_paths, with_grants
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
    propose,
    risk_of,
    rule_covers,
)
from tools.base import BaseTool, CommandTarget, HostTarget, PathTarget, Preview, ToolContext, ToolErrorType, failure
from tools.paths import PathRefused
from tools.registry import Origin, ToolRegistry, is_third_party, resolve_tool_name
from tools.result import ToolResult
from tools.running import CallProfile, normalize_arguments, preview, run_in_thread
from tools.schema import InvalidArguments
from tools.third_party import ToolQueryFailed, ToolThread, query_tool, query_tool_async
from tools.web_ops.web_fetch import WebFetchTool

__all__ = ["Checked", "Examples", "Judging", "check_call", "hold_examples", "planned"]


def planned(
    tool: BaseTool,
    arguments: dict[str, Any],
    facts: CallFacts,
    decision: Decision,
    shown: dict[str, Any] | None,
) -> Plan:
    """The plan of a call; `shown` is what a person is to see of its effect."""
    return Plan(
        tool_name=tool.name,
        arguments=arguments,
        verdict=decision.verdict,
        reason=decision.reason,
        rule=decision.rule,
        risk=facts.risk,
        kind=facts.kind,
        concurrency_safe=tool.is_concurrency_safe(arguments),
        requires_input=tool.requires_input,
        resumable=tool.resumable,
        summary=tool.display_call(arguments),
        paths=tuple(str(path.resolved) for path in facts.paths),
        preview=shown,
    )


_FOLDER = "folder"
_MOVED = (
    "It was approved to run in {then}, and would run in {now} now, so nothing was done. Call it again, and it is "
    "asked about there."
)


class Judging:
    """Plans and proposals for a tool that was found; its bugs come out as they are."""

    def __init__(self, around: Surroundings, grants: Grants) -> None:
        self._around = around
        self._grants = grants

    async def plan(self, tool: BaseTool, origin: Origin, arguments: Mapping[str, Any], scope: Scope) -> Plan:
        """What would happen with the call; unusable where its arguments or paths are."""
        try:
            about = await _about(tool, origin, arguments)
            if objection := about.told.validate(about.arguments):
                return Plan(tool.name, about.arguments, "unusable", objection)
            facts = await self._facts(about, scope)
            decision = evaluate(facts, await self._policy(scope))
            shown = None if decision.verdict == "deny" else await self._preview(about, scope, facts)
        except (InvalidArguments, PathRefused, ToolQueryFailed) as error:
            kind = tool.kind.value if is_third_party(origin) else kind_of(tool, arguments)
            return Plan(tool.name, dict(arguments), "unusable", str(error), kind=kind)
        return planned(about.told, about.arguments, facts, decision, shown)

    async def propose(self, tool: BaseTool, origin: Origin, arguments: Mapping[str, Any], scope: Scope) -> Proposal:
        """The rules by which the call would run unasked from now on."""
        try:
            about = await _about(tool, origin, arguments)
            facts = await self._facts(about, scope)
        except (InvalidArguments, PathRefused, ToolQueryFailed) as error:
            return Proposal(objection=str(error))
        rules, objection = propose(facts, await self._policy(scope), about.told.suggest_rule(about.arguments))
        return Proposal(rules, objection, facts.folder)

    async def admitted(
        self, tool: BaseTool, origin: Origin, call: ToolCallInfo, scope: Scope
    ) -> frozenset[Path] | ToolResult | None:
        """The only paths the call may open now; None where it names none, a result where it may not run."""
        try:
            about = await _about(tool, origin, call["arguments"])
            names_paths = any(isinstance(target, PathTarget) for target in about.told.targets(about.arguments))
            approved_in = _approved_folder(call)
            if not names_paths and approved_in is None:
                return None
            facts = await self._facts(about, scope)
            if approved_in not in (None, _folder(facts)):
                return failure(ToolErrorType.EXECUTION, _MOVED.format(then=approved_in, now=_folder(facts)))
            return admitted_paths(facts, call.get("paths"), await self._policy(scope)) if names_paths else None
        except InvalidArguments as error:
            return failure(ToolErrorType.VALIDATION, str(error))
        except ToolQueryFailed as error:
            return failure(ToolErrorType.EXECUTION, str(error))
        except PathRefused as refused:
            return refused.as_result()

    async def _facts(self, about: "_About", scope: Scope) -> CallFacts:
        return await run_in_thread(
            call_facts, about.told, about.arguments, scope, self._around.setting, about.origin
        )

    async def _policy(self, scope: Scope) -> PolicySettings:
        return await with_grants(self._around.setting, self._grants, scope)

    async def _preview(self, about: "_About", scope: Scope, facts: CallFacts) -> dict[str, Any] | None:
        blobs = self._around.blobs
        if facts.shell is not None:
            words = command_in_words(facts, facts.shell)
            return await stored_preview(Preview("text", words, {_FOLDER: _folder(facts)}), blobs)
        if about.told.is_read_only(about.arguments):
            return None
        admitted = frozenset(Path(path.resolved) for path in facts.paths) or None
        try:
            shown = await _previewed(about, replace(self._around.of_thread(scope), approved_paths=admitted))
        except PathRefused as refused:
            if not scope.follows_change:
                raise
            # What is missing now may be the work of the calls before it: the run itself looks once they are done.
            shown = Preview("text", f"This depends on the calls ahead of it. As things are now: {refused}")
        return None if shown is None else await stored_preview(shown, blobs)


def _folder(facts: CallFacts) -> str:
    """Where its command would run."""
    return str(facts.cwd or facts.workspace)


def _approved_folder(call: ToolCallInfo) -> str | None:
    """Where a person let its command run; None where there is none, or nobody was asked."""
    seen = (call.get("preview") or {}).get("observed") or {}
    return seen.get(_FOLDER) if "approved_at" in call else None


@dataclass(frozen=True)
class _About:
    """A call whose tool has been asked about it."""

    tool: BaseTool
    told: BaseTool
    """What answers in its place: of a tool of others what it said, of ours the tool itself."""
    origin: Origin
    arguments: dict[str, Any]


async def _about(tool: BaseTool, origin: Origin, arguments: Mapping[str, Any]) -> _About:
    if not is_third_party(origin):
        return _About(tool, tool, origin, normalize_arguments(tool, arguments))
    told = await query_tool(
        tool.name, partial(CallProfile, tool, arguments), reraise=(InvalidArguments, PathRefused)
    )
    return _About(tool, told, origin, told.arguments)


async def _previewed(about: _About, context: ToolContext) -> Preview | None:
    if not is_third_party(about.origin):
        return await preview(about.tool, about.arguments, context)
    make = partial(preview, about.tool, about.arguments, ToolThread().context(context))
    return await query_tool_async(about.tool.name, make, reraise=(PathRefused,))


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
        BadRule: it is no rule, or an example is on the wrong side; the message names both.
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
        return with_command(facts, [CommandTarget(example)], setting)
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
