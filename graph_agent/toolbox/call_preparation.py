"""Prepare a call before it runs: validate its arguments, collect the facts, evaluate policy, compute the preview.

A call is prepared once per process. Routing, approval page, execution and record read the same result; it is
prepared again only when rules, mode or the files that it names have changed.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from graph_agent.calls import ToolCallInfo
from graph_agent.ports import Grants, PreparedCall, Proposal, Scope
from graph_agent.toolbox.facts import Targets, call_facts, kind_of, resolve_targets, stored_preview
from graph_agent.toolbox.shell_facts import command_in_words
from graph_agent.toolbox.tool_context import Surroundings, admitted_paths, with_grants
from policy import CallFacts, PolicySettings, evaluate, propose
from tools.base import BaseTool, PathTarget, Preview, Target, ToolErrorType, failure
from tools.paths import PathRefused
from tools.registry import Origin, is_third_party
from tools.result import ToolResult
from tools.running import CallProfile, parse_call, preview, run_in_thread
from tools.schema import InvalidArguments
from tools.third_party import ToolQueryFailed, ToolThread, query_tool, query_tool_async

__all__ = ["CallKey", "CallPreparation", "RunPermit", "key_of"]

_MOST_KEPT = 64
"""Prepared calls that are kept; one that was dropped is prepared again."""
_FOLDER = "folder"
_MOVED = (
    "It was approved to run in {then}, and would run in {now} now, so nothing was done. Call it again, and it is "
    "asked about there."
)


class CallKey(NamedTuple):
    """One attempt at a call. With the arguments, which are compared too, it names what was prepared."""

    thread_id: str
    call_id: str
    attempt: int


class RunPermit(NamedTuple):
    """What a call may run with."""

    paths: frozenset[Path] | None
    """The only paths it may open; None where it names none."""
    keywords: Mapping[str, Any] | None
    """Its parsed arguments; None for a tool of others, whose schema is its own code."""
    cache: dict[str, Any]
    """What the tool computed for the preview, for its execution to use."""


class CallPreparation:
    """Prepares calls of registered tools. Exceptions from a tool's own code are not caught here."""

    def __init__(self, contexts: Surroundings, grants: Grants) -> None:
        self._contexts = contexts
        self._grants = grants
        self._kept: dict[CallKey, _Kept] = {}

    async def prepare(
        self, tool: BaseTool, origin: Origin, arguments: Mapping[str, Any], scope: Scope, key: CallKey | None
    ) -> PreparedCall:
        """The call, ready to be decided on; its verdict is `unusable` where arguments or paths are."""
        kept = self._kept_for(key, tool, arguments)
        try:
            if kept is not None and await self._is_current(kept, scope):
                return kept.call
            parsed = kept.parsed if kept else await _parse(tool, origin, arguments)
            if objection := parsed.profile.validate(parsed.arguments):
                return PreparedCall(tool.name, parsed.arguments, "unusable", objection)
            policy = await self._policy(scope)
            facts, resolved = await self._facts(parsed, scope)
            decision = evaluate(facts, policy)
            cache: dict[str, Any] = {}
            shown = None if decision.verdict == "deny" else await self._preview(parsed, scope, facts, cache)
        except (InvalidArguments, PathRefused, ToolQueryFailed) as error:
            kind = tool.kind.value if is_third_party(origin) else kind_of(tool, arguments)
            return PreparedCall(tool.name, dict(arguments), "unusable", str(error), kind=kind)
        call = PreparedCall(
            tool_name=tool.name,
            arguments=parsed.arguments,
            verdict=decision.verdict,
            reason=decision.reason,
            rule=decision.rule,
            risk=facts.risk,
            kind=facts.kind,
            concurrency_safe=parsed.profile.is_concurrency_safe(parsed.arguments),
            requires_input=tool.requires_input,
            resumable=tool.resumable,
            summary=parsed.profile.display_call(parsed.arguments),
            paths=tuple(str(path.resolved) for path in facts.paths),
            preview=shown,
        )
        if key is not None:
            self._kept[key] = _Kept(
                tool, dict(arguments), parsed, scope.mode, scope.cwd, policy, facts, resolved, call, cache
            )
            while len(self._kept) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        return call

    async def propose(self, tool: BaseTool, origin: Origin, arguments: Mapping[str, Any], scope: Scope) -> Proposal:
        """The rules by which the call would run unasked from now on."""
        keys = (key for key in self._kept if key.thread_id == scope.thread_id)
        kept = next((known for key in keys if (known := self._kept_for(key, tool, arguments))), None)
        try:
            parsed = kept.parsed if kept else await _parse(tool, origin, arguments)
            if kept is not None and await self._is_current(kept, scope):
                facts = kept.facts
            else:
                facts, _ = await self._facts(parsed, scope)
        except (InvalidArguments, PathRefused, ToolQueryFailed) as error:
            return Proposal(objection=str(error))
        suggested = parsed.profile.suggest_rule(parsed.arguments)
        rules, objection = propose(facts, await self._policy(scope), suggested)
        return Proposal(rules, objection, facts.folder)

    async def permit(
        self, tool: BaseTool, origin: Origin, call: ToolCallInfo, scope: Scope
    ) -> RunPermit | ToolResult:
        """What the call may run with now, or the error result of one that may not run."""
        kept = self._kept_for(key_of(call, scope), tool, call["arguments"])
        try:
            parsed = kept.parsed if kept else await _parse(tool, origin, call["arguments"])
            cache = kept.cache if kept else {}
            names_paths = any(isinstance(target, PathTarget) for target in parsed.targets)
            approved_in = _approved_folder(call)
            if not names_paths and approved_in is None:
                return RunPermit(None, parsed.keywords, cache)
            if kept is not None and await self._is_current(kept, scope):
                facts = kept.facts
            else:
                facts, _ = await self._facts(parsed, scope)
            if approved_in not in (None, _folder(facts)):
                return failure(ToolErrorType.EXECUTION, _MOVED.format(then=approved_in, now=_folder(facts)))
            paths = admitted_paths(facts, call.get("paths"), await self._policy(scope)) if names_paths else None
            return RunPermit(paths, parsed.keywords, cache)
        except InvalidArguments as error:
            return failure(ToolErrorType.VALIDATION, str(error))
        except ToolQueryFailed as error:
            return failure(ToolErrorType.EXECUTION, str(error))
        except PathRefused as refused:
            return refused.as_result()

    def forget(self, call: ToolCallInfo, scope: Scope) -> None:
        """Drop what was kept of a call that has run."""
        self._kept.pop(key_of(call, scope), None)

    def _kept_for(self, key: CallKey | None, tool: BaseTool, arguments: Mapping[str, Any]) -> "_Kept | None":
        kept = self._kept.get(key) if key else None
        if kept is None or kept.tool is not tool or arguments not in (kept.given, kept.parsed.arguments):
            return None
        return kept

    async def _is_current(self, kept: "_Kept", scope: Scope) -> bool:
        """Whether mode, rules and target files are those that the call was prepared with."""
        if (scope.mode, scope.cwd) != (kept.mode, kept.cwd) or await self._policy(scope) != kept.policy:
            return False
        now = await run_in_thread(resolve_targets, kept.parsed.targets, scope.cwd, self._contexts.setting)
        return now == kept.resolved

    async def _facts(self, parsed: "_ParsedCall", scope: Scope) -> tuple[CallFacts, Targets]:
        def collect() -> tuple[CallFacts, Targets]:
            setting = self._contexts.setting
            resolved = resolve_targets(parsed.targets, scope.cwd, setting)
            return call_facts(parsed.profile, parsed.arguments, scope, setting, parsed.origin, resolved), resolved

        return await run_in_thread(collect)

    async def _policy(self, scope: Scope) -> PolicySettings:
        return await with_grants(self._contexts.setting, self._grants, scope)

    async def _preview(
        self, parsed: "_ParsedCall", scope: Scope, facts: CallFacts, cache: dict[str, Any]
    ) -> dict[str, Any] | None:
        blobs = self._contexts.blobs
        if facts.shell is not None:
            words = command_in_words(facts, facts.shell)
            return await stored_preview(Preview("text", words, {_FOLDER: _folder(facts)}), blobs)
        if parsed.profile.is_read_only(parsed.arguments):
            return None
        paths = frozenset(Path(path.resolved) for path in facts.paths) or None
        context = replace(self._contexts.of_thread(scope), approved_paths=paths, cache=cache)
        try:
            if is_third_party(parsed.origin):
                make = partial(preview, parsed.tool, parsed.arguments, ToolThread().context(context))
                shown = await query_tool_async(parsed.tool.name, make, reraise=(PathRefused,))
            else:
                shown = await preview(parsed.tool, parsed.arguments, context)
        except PathRefused as refused:
            if not scope.follows_change:
                raise
            # What is missing now may be created by the calls before it: execution looks again once they are done.
            shown = Preview("text", f"This depends on the calls ahead of it. As things are now: {refused}")
        return None if shown is None else await stored_preview(shown, blobs)


def key_of(call: ToolCallInfo, scope: Scope) -> CallKey:
    """The key under which a recorded call was prepared."""
    return CallKey(scope.thread_id, call["call_id"], call.get("attempt", 1))


@dataclass(frozen=True, slots=True)
class _ParsedCall:
    """A call whose arguments are valid, and whose tool was asked about them."""

    tool: BaseTool
    profile: BaseTool
    """Answers questions about the call: for a tool of others what it answered once, else the tool itself."""
    origin: Origin
    arguments: dict[str, Any]
    keywords: Mapping[str, Any] | None
    targets: list[Target]


@dataclass(frozen=True, slots=True)
class _Kept:
    """A prepared call with what it was prepared from."""

    tool: BaseTool
    given: Mapping[str, Any]
    """The arguments as the model wrote them."""
    parsed: _ParsedCall
    mode: str
    cwd: str
    policy: PolicySettings
    facts: CallFacts
    resolved: Targets
    call: PreparedCall
    cache: dict[str, Any] = field(default_factory=dict)


async def _parse(tool: BaseTool, origin: Origin, arguments: Mapping[str, Any]) -> _ParsedCall:
    """Raises InvalidArguments, PathRefused or ToolQueryFailed."""
    if not is_third_party(origin):
        usable, keywords = parse_call(tool, arguments)
        return _ParsedCall(
            tool, tool, origin, usable, keywords, [] if tool.validate(usable) else tool.targets(usable)
        )
    profile = await query_tool(
        tool.name, partial(CallProfile, tool, arguments), reraise=(InvalidArguments, PathRefused)
    )
    objection = profile.validate(profile.arguments)
    return _ParsedCall(
        tool, profile, origin, profile.arguments, None, [] if objection else profile.targets(profile.arguments)
    )


def _folder(facts: CallFacts) -> str:
    """Where its command would run."""
    return str(facts.cwd or facts.workspace)


def _approved_folder(call: ToolCallInfo) -> str | None:
    """Where a person let its command run; None where there is none, or nobody was asked."""
    observed = (call.get("preview") or {}).get("observed") or {}
    return observed.get(_FOLDER) if "approved_at" in call else None
