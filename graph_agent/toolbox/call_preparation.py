"""Prepare a call before it runs: validate its arguments, collect the facts, evaluate policy, compute the preview.

A call is prepared once per process. Routing, approval page, execution and record read the same result; it is
prepared again only when rules, mode or the files that it names have changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from graph_agent.calls import ToolCallInfo
from graph_agent.ports import GrantEffect, PreparedCall, Proposal, ProposedRules, Scope
from graph_agent.ports.stored_text import storable
from graph_agent.toolbox.facts import Targets, call_facts, format_command, kind_of, resolve_targets
from graph_agent.toolbox.tool_context import ToolboxDependencies, ToolContexts, add_grants
from policy import CallFacts, PolicySettings, call_risk, evaluate, propose, propose_denial
from tools.base import BaseTool, BlobStore, PathTarget, Preview, Target, ToolContext, ToolErrorType, failure
from tools.paths import PathRefused
from tools.registry import Origin, ToolRegistry
from tools.result import ToolResult
from tools.running import CallProfile, parse_call, preview, run_in_thread
from tools.schema import InvalidArguments
from tools.third_party import ToolQueryFailed, ToolThread, query_tool, query_tool_async

__all__ = ["CallKey", "CallPreparation", "RunPermit", "allowed_paths", "as_preview"]

_MAX_KEPT = 64
"""Prepared calls that are kept; one that was dropped is prepared again."""
_PREVIEW_CHARS = 20_000
_FOLDER = "folder"
_MOVED = (
    "It was approved to run in {then}, and would run in {now} now, so nothing was done. Call it again to ask for "
    "approval there."
)


class CallKey(NamedTuple):
    """One attempt at a call. With the arguments, which are compared too, it names what was prepared."""

    thread_id: str
    call_id: str
    attempt: int


class RunPermit(NamedTuple):
    """What a call may run with."""

    context: ToolContext
    keywords: Mapping[str, Any] | None
    """Its parsed arguments; None for a third-party tool, whose schema is its own code."""


@dataclass(frozen=True, slots=True)
class _ParsedCall:
    """A call whose arguments are valid, and whose tool was asked about them."""

    tool: BaseTool
    profile: BaseTool
    """Answers questions about the call: the tool itself, or what a third-party tool answered once."""
    origin: Origin
    arguments: dict[str, Any]
    keywords: Mapping[str, Any] | None
    objection: str | None
    targets: list[Target]


@dataclass(frozen=True, slots=True)
class _Kept:
    """A prepared call with what it was prepared from."""

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


class CallPreparation:
    """Prepares calls of registered tools. Exceptions from a tool's own code are not caught here."""

    def __init__(self, registry: ToolRegistry, contexts: ToolContexts, dependencies: ToolboxDependencies) -> None:
        self._registry = registry
        self._contexts = contexts
        self._grants = dependencies.grants
        self._find_untrusted_content = dependencies.find_untrusted_content
        self._kept: dict[CallKey, _Kept] = {}

    async def prepare(
        self, tool: BaseTool, arguments: Mapping[str, Any], scope: Scope, key: CallKey | None
    ) -> PreparedCall:
        """The call, ready to be decided on; its verdict is `unusable` if its arguments or paths are."""
        kept = self._kept_for(key, tool, arguments)
        try:
            policy = await self._policy(scope)
            if kept is not None and await self._is_current(kept, scope, policy):
                return kept.call
            parsed = kept.parsed if kept else await self._parse(tool, arguments)
            if parsed.objection:
                return PreparedCall(tool.name, parsed.arguments, "unusable", parsed.objection)
            facts, resolved = await self._facts(parsed, scope, policy)
            decision = evaluate(facts, policy)
            cache: dict[str, Any] = {}
            shown = None if decision.verdict == "deny" else await self._preview(parsed, scope, facts, cache)
        except (InvalidArguments, PathRefused, ToolQueryFailed) as error:
            kind = tool.kind.value if self._registry.is_third_party(tool.name) else kind_of(tool, arguments)
            return PreparedCall(tool.name, dict(arguments), "unusable", str(error), kind=kind)
        profile, risk = parsed.profile, call_risk(facts, policy)
        call = PreparedCall(
            tool_name=tool.name,
            arguments=parsed.arguments,
            verdict=decision.verdict,
            reason=decision.reason,
            rule=decision.rule,
            risk=risk.level,
            risk_reason=risk.reason,
            kind=facts.kind,
            concurrency_safe=profile.is_concurrency_safe(parsed.arguments),
            requires_input=tool.requires_input,
            resumable=tool.resumable,
            summary=profile.display_call(parsed.arguments),
            paths=tuple([str(path.resolved) for path in facts.paths]),
            preview=shown,
        )
        if key is not None:
            kept = _Kept(dict(arguments), parsed, scope.mode, scope.cwd, policy, facts, resolved, call, cache)
            self._kept[key] = kept
            while len(self._kept) > _MAX_KEPT:
                del self._kept[next(iter(self._kept))]
        return call

    async def propose(
        self, tool: BaseTool, arguments: Mapping[str, Any], scope: Scope, effect: GrantEffect
    ) -> Proposal:
        """The rules by which the call would run unasked from now on, or be denied."""
        keys = [key for key in self._kept if key.thread_id == scope.thread_id]
        kept = next((known for key in keys if (known := self._kept_for(key, tool, arguments))), None)
        try:
            parsed = kept.parsed if kept else await self._parse(tool, arguments)
            policy = await self._policy(scope)
            facts = await self._current_facts(kept, parsed, scope, policy)
        except (InvalidArguments, PathRefused, ToolQueryFailed) as error:
            return Proposal(objection=str(error))
        make = propose if effect == "allow" else propose_denial
        proposal = make(facts, policy, parsed.profile.suggest_rule(parsed.arguments))
        prefix = None if proposal.prefix is None else ProposedRules(*proposal.prefix)
        exact = (proposal.rules, proposal.objection, facts.folder, proposal.coverage, proposal.folders)
        decision = evaluate(facts, policy)
        return Proposal(*exact, prefix, denied=decision.reason if decision.verdict == "deny" else "")

    async def permit(self, tool: BaseTool, call: ToolCallInfo, scope: Scope) -> RunPermit | ToolResult:
        """What the call may run with now, or the error result of one that may not run."""
        kept = self._kept_for(_key_of(call, scope), tool, call["arguments"])
        observed = (call.get("preview") or {}).get("observed") or {}
        # The folder for which a person approved its command; None if there is none, or nobody was asked.
        approved_folder = observed.get(_FOLDER) if "approved_at" in call else None
        try:
            parsed = kept.parsed if kept else await self._parse(tool, call["arguments"])
            names_paths = any(isinstance(target, PathTarget) for target in parsed.targets)
            paths, policy = None, await self._policy(scope)
            if names_paths or approved_folder is not None:
                facts = await self._current_facts(kept, parsed, scope, policy)
                if approved_folder is not None and approved_folder != _folder(facts):
                    moved = _MOVED.format(then=approved_folder, now=_folder(facts))
                    return failure(ToolErrorType.EXECUTION, moved)
                paths = allowed_paths(facts, call.get("paths"), policy) if names_paths else None
            cache = kept.cache if kept else {}
            context = self._contexts.for_call(call, scope, policy.rules)
            context = replace(context, approved_paths=paths, cache=cache)
            return RunPermit(context, parsed.keywords)
        except InvalidArguments as error:
            return failure(ToolErrorType.VALIDATION, str(error))
        except ToolQueryFailed as error:
            return failure(ToolErrorType.EXECUTION, str(error))
        except PathRefused as refused:
            return refused.as_result()

    def forget(self, call: ToolCallInfo, scope: Scope) -> None:
        """Drop what was kept of a call that has run."""
        self._kept.pop(_key_of(call, scope), None)

    async def _parse(self, tool: BaseTool, arguments: Mapping[str, Any]) -> _ParsedCall:
        """Raises InvalidArguments, PathRefused or ToolQueryFailed."""
        origin = self._registry.origin(tool.name) or "plugin"
        profile, keywords = tool, None
        if origin == "plugin":
            ask = partial(CallProfile, tool, arguments)
            answers = await query_tool(tool.name, ask, reraise=(InvalidArguments, PathRefused))
            profile, usable = answers, answers.arguments
        else:
            usable, keywords = parse_call(tool, arguments)
        objection = profile.validate(usable)
        targets = [] if objection else profile.targets(usable)
        return _ParsedCall(tool, profile, origin, usable, keywords, objection, targets)

    def _kept_for(self, key: CallKey | None, tool: BaseTool, arguments: Mapping[str, Any]) -> _Kept | None:
        kept = self._kept.get(key) if key else None
        if kept is None or kept.parsed.tool is not tool or arguments not in (kept.given, kept.parsed.arguments):
            return None
        return kept

    async def _is_current(self, kept: _Kept, scope: Scope, policy: PolicySettings) -> bool:
        """Whether mode, rules and target files are those that the call was prepared with."""
        if (scope.mode, scope.cwd, policy) != (kept.mode, kept.cwd, kept.policy):
            return False
        context = self._contexts.context_with(policy.rules)
        return kept.resolved == await run_in_thread(resolve_targets, kept.parsed.targets, scope.cwd, context)

    async def _current_facts(
        self, kept: _Kept | None, parsed: _ParsedCall, scope: Scope, policy: PolicySettings
    ) -> CallFacts:
        if kept is not None and await self._is_current(kept, scope, policy):
            return kept.facts
        return (await self._facts(parsed, scope, policy))[0]

    async def _facts(self, parsed: _ParsedCall, scope: Scope, policy: PolicySettings) -> tuple[CallFacts, Targets]:
        context = self._contexts.context_with(policy.rules)

        def look_up() -> tuple[CallFacts, Targets]:
            resolved = resolve_targets(parsed.targets, scope.cwd, context)
            return call_facts(parsed.profile, parsed.arguments, scope, context, parsed.origin, resolved), resolved

        facts, resolved = await run_in_thread(look_up)
        if facts.changes_memory:
            facts = replace(facts, untrusted_content=await self._find_untrusted_content(scope.thread_id))
        return facts, resolved

    async def _policy(self, scope: Scope) -> PolicySettings:
        """The settings with the grants that hold here and now."""
        workspace, policy, *_ = self._contexts.policy_context
        if self._grants is None:
            return policy
        grants = await self._grants.in_force(scope.thread_id, str(workspace))
        return add_grants(policy, grants) if grants else policy

    async def _preview(
        self, parsed: _ParsedCall, scope: Scope, facts: CallFacts, cache: dict[str, Any]
    ) -> dict[str, Any] | None:
        if facts.shell is not None:
            shown: Preview | None = Preview("text", format_command(facts, facts.shell), {_FOLDER: _folder(facts)})
        elif parsed.profile.is_read_only(parsed.arguments):
            return None
        else:
            paths = frozenset([Path(path.resolved) for path in facts.paths]) or None
            context = replace(self._contexts.for_thread(scope), approved_paths=paths, cache=cache)
            try:
                if parsed.origin == "plugin":
                    make = partial(preview, parsed.tool, parsed.arguments, ToolThread().context(context))
                    shown = await query_tool_async(parsed.tool.name, make, reraise=(PathRefused,))
                else:
                    shown = await preview(parsed.tool, parsed.arguments, context)
            except PathRefused as refused:
                if not scope.follows_change:
                    raise
                # The calls before it may create what is missing: it is looked up again when they are done.
                shown = Preview("text", f"This depends on the calls ahead of it. As things are now: {refused}")
        if shown is None or len(shown.text) <= _PREVIEW_CHARS:
            return None if shown is None else as_preview(shown, self._contexts.blobs)
        return await run_in_thread(as_preview, shown, self._contexts.blobs)


def allowed_paths(facts: CallFacts, approved: Sequence[str] | None, policy: PolicySettings) -> frozenset[Path]:
    """The only paths the call may open: where its arguments lead now, if that was evaluated or is allowed unasked.

    Args:
        facts: the call as it is now.
        approved: where its arguments led when it was evaluated; None if that was not recorded.
        policy: evaluates the call again if they lead elsewhere now.

    Raises:
        PathRefused: they lead elsewhere now, to where the call may not go unasked.
    """
    moved = [] if approved is None else [path for path in facts.paths if str(path.resolved) not in approved]
    if moved and evaluate(facts, policy).verdict != "allow":
        raise PathRefused(
            ToolErrorType.PERMISSION,
            f"{moved[0].given!r} leads to {str(moved[0].resolved)!r} now, and led elsewhere when the call was "
            "evaluated. Nothing was done; make the call again.",
        )
    return frozenset([Path(path.resolved) for path in facts.paths])


def as_preview(preview: Preview, blobs: BlobStore) -> dict[str, Any]:
    """The preview as JSON with a bounded text; a longer one is stored in a blob, and the text says so."""
    text = storable(preview.text)
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


def _key_of(call: ToolCallInfo, scope: Scope) -> CallKey:
    return CallKey(scope.thread_id, call["call_id"], call.get("attempt", 1))


def _folder(facts: CallFacts) -> str:
    """Where its command would run."""
    return str(facts.cwd or facts.workspace)
