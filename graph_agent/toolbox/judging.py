"""The stages of a call before it runs: validate, state the facts, judge, preview. Executes nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from graph_agent.calls import ToolCallInfo
from graph_agent.ports import Grants, Plan, Proposal, Scope
from graph_agent.toolbox.binding import admitted_paths
from graph_agent.toolbox.command_words import command_in_words
from graph_agent.toolbox.facts import call_facts, kind_of
from graph_agent.toolbox.granting import with_grants
from graph_agent.toolbox.planned import planned
from graph_agent.toolbox.surroundings import Surroundings
from graph_agent.toolbox.values import stored_preview
from policy import CallFacts, PolicySettings, judge, propose
from tools.aside import Aside
from tools.asking import Unanswered, asked, asked_there
from tools.base import BaseTool, Preview, ToolContext, ToolErrorType, failure
from tools.blocking import in_thread
from tools.coercion import BadArguments
from tools.foretold import Foretold
from tools.paths import PathRefused
from tools.registry import Origin, is_foreign
from tools.result import ToolResult
from tools.running import parsed, preview
from tools.targets import PathTarget

__all__ = ["Judging"]

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
            decision = judge(facts, await self._policy(scope))
            shown = None if decision.verdict == "deny" else await self._preview(about, scope, facts)
        except (BadArguments, PathRefused, Unanswered) as error:
            kind = tool.kind.value if is_foreign(origin) else kind_of(tool, arguments)
            return Plan(tool.name, dict(arguments), "unusable", str(error), kind=kind)
        return planned(about.told, about.arguments, facts, decision, shown)

    async def propose(self, tool: BaseTool, origin: Origin, arguments: Mapping[str, Any], scope: Scope) -> Proposal:
        """The rules by which the call would run unasked from now on."""
        try:
            about = await _about(tool, origin, arguments)
            facts = await self._facts(about, scope)
        except (BadArguments, PathRefused, Unanswered) as error:
            return Proposal(objection=str(error))
        rules, objection = propose(facts, await self._policy(scope), about.told.suggest_rule(about.arguments))
        return Proposal(rules, objection, facts.place)

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
        except BadArguments as error:
            return failure(ToolErrorType.VALIDATION, str(error))
        except Unanswered as error:
            return failure(ToolErrorType.EXECUTION, str(error))
        except PathRefused as refused:
            return refused.as_result()

    async def _facts(self, about: "_About", scope: Scope) -> CallFacts:
        return await in_thread(call_facts, about.told, about.arguments, scope, self._around.setting, about.origin)

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
            shown = await _previewed(about, replace(self._around.of_thread(scope), admitted=admitted))
        except PathRefused as refused:
            if not scope.comes_after_change:
                raise
            # What is missing now may be the work of the calls before it: the run itself looks once they are done.
            shown = Preview("text", f"This depends on the calls ahead of it. As things are now: {refused}")
        return None if shown is None else await stored_preview(shown, blobs)


def _folder(facts: CallFacts) -> str:
    """Where its command would run."""
    return str(facts.cwd or facts.workspace)


def _approved_folder(call: ToolCallInfo) -> str | None:
    """Where a person let its command run; None where there is none, or nobody was asked."""
    seen = (call.get("preview") or {}).get("seen") or {}
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
    if not is_foreign(origin):
        return _About(tool, tool, origin, parsed(tool, arguments))
    told = await asked(tool.name, partial(Foretold, tool, arguments), passing=(BadArguments, PathRefused))
    return _About(tool, told, origin, told.arguments)


async def _previewed(about: _About, context: ToolContext) -> Preview | None:
    if not is_foreign(about.origin):
        return await preview(about.tool, about.arguments, context)
    make = partial(preview, about.tool, about.arguments, Aside().context(context))
    return await asked_there(about.tool.name, make, passing=(PathRefused,))
