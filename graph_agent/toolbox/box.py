"""The toolbox the graph works with: registry and policy behind one port. Knows no graph and no model."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from graph_agent.calls import ToolCallInfo, process_mark
from graph_agent.config.scrub import Scrub
from graph_agent.errors import ControlFlow
from graph_agent.ports import Blobs, FileStates, Finding, Grants, Intent, Outcome, Plan, Proposal, Scope
from graph_agent.toolbox.adapters import RecordedProcesses, RecordProcess, StoredBlobs, progress_in_words
from graph_agent.toolbox.binding import admitted_paths
from graph_agent.toolbox.command_words import command_in_words
from graph_agent.toolbox.facts import Setting, call_facts, kind_of
from graph_agent.toolbox.granting import NoGrants, with_grants
from graph_agent.toolbox.hiding import hidden
from graph_agent.toolbox.hosts import host_leave
from graph_agent.toolbox.partial import readable_end
from graph_agent.toolbox.places import other_names
from graph_agent.toolbox.planned import planned
from graph_agent.toolbox.values import as_outcome, as_preview, reconciled
from policy import CallFacts, PolicySettings, hidden_tools, judge, may_read, propose
from tools.base import BaseTool, InterruptedCall, Limits, Preview, Progress, ToolContext, ToolErrorType, failure
from tools.blocking import in_thread
from tools.coercion import BadArguments
from tools.files import digest
from tools.finding import resolve_name, unknown_tool
from tools.paths import PathRefused
from tools.registry import RegistryChange, ToolRegistry
from tools.result import ToolResult
from tools.running import execute, foresee, parsed, preview
from tools.sandbox import Sandbox
from tools.shaping import shape
from tools.targets import PathTarget

__all__ = ["MCP_PREFIX", "GraphToolbox", "ToolboxPorts"]

_log = logging.getLogger(__name__)

T = TypeVar("T")

_UNSURE = failure(ToolErrorType.EXECUTION, "The tool failed before it began, and nothing was done; see the log.")

MCP_PREFIX = "mcp__"
"""How the names of all tools begin that come from servers."""


def _silent(call_id: str, kind: str, text: str) -> None: ...


async def _at_once() -> None: ...


@dataclass(frozen=True)
class ToolboxPorts:
    """What the toolbox needs of the world."""

    blobs: Blobs
    file_states: FileStates
    record_process: RecordProcess
    on_progress: Callable[[str, str, str], None] = _silent
    """Call id, kind (`shell_output`, `bytes_fetched`, `files_searched`, `message`), text."""
    grants: Grants = field(default_factory=NoGrants)
    scrub: Scrub = field(default_factory=Scrub)
    """Hides what must not be kept."""
    sandbox: Sandbox | None = None
    servers_settled: Callable[[], Awaitable[None]] = _at_once
    """Waits until every server has its tools, or never will; a call may come before its server is there."""


class GraphToolbox:
    """Implements `graph_agent.ports.Toolbox`."""

    def __init__(
        self,
        registry: ToolRegistry,
        *,
        workspace: Path,
        policy: PolicySettings,
        ports: ToolboxPorts,
        limits: Limits | None = None,
        roots: Sequence[Path] = (),
    ) -> None:
        self._registry = registry
        self._setting = Setting(workspace.resolve(), policy, tuple(roots))
        self._ports = ports
        self._limits = limits or Limits()
        self._blobs = StoredBlobs(ports.blobs, ports.scrub)
        self._computed: dict[str, dict[str, Any]] = {}
        registry.listen(self._forget)

    async def prepare(self) -> None:
        """Let the tools compute their descriptions; until then, and for later tools, the declared ones hold."""
        declared = await self._registry.function_declarations()
        self._computed = {item["function"]["name"]: item for item in declared}

    def declarations(self, mode: str) -> Sequence[Mapping[str, Any]]:
        """See the port; tools that a bare deny rule takes away are not offered."""
        offered = self._registry.declarations(mode, self._hidden())
        return [self._computed.get(item["function"]["name"], item) for item in offered]

    async def plan(self, tool_name: str, arguments: Mapping[str, Any], scope: Scope) -> Plan:
        """See the port."""
        tool = await self._found(tool_name)
        if tool is None:
            return Plan(tool_name, dict(arguments), "unusable", unknown_tool(tool_name, self._registry.names()))
        unusable = Plan(
            tool.name, dict(arguments), "unusable", f"{tool.name} failed while it was planned; see the log."
        )
        return await self._guarded(self._plan(tool, arguments, scope), unusable)

    async def propose(self, tool_name: str, arguments: Mapping[str, Any], scope: Scope) -> Proposal:
        """See the port."""
        tool = self._find(tool_name)
        if tool is None:
            return Proposal(objection=unknown_tool(tool_name, self._registry.names()))
        failed = Proposal(objection=f"{tool.name} failed while a rule was looked for; see the log.")
        return await self._guarded(self._propose(tool, arguments, scope), failed)

    async def intend(self, call: ToolCallInfo, scope: Scope) -> Intent | None:
        """See the port."""
        tool = self._find(call["tool_name"])
        if tool is None or tool.is_read_only(call["arguments"]):
            return None
        context = await self._bound(tool, call, scope)
        if isinstance(context, ToolResult):
            return None
        effect = await self._guarded(foresee(tool, call["arguments"], context), None)
        if effect is None:
            return None
        before = None if effect.before is None else await in_thread(self._before_image, effect.before)
        digest, reference = before or (None, None)
        return Intent(effect.path, digest, effect.after_sha256, reference, effect.before_mode, effect.new_folder)

    async def run(self, call: ToolCallInfo, scope: Scope) -> Outcome:
        """See the port."""
        judged = await self._found(call["tool_name"])
        context = self._context(call, scope) if judged is None else await self._bound(judged, call, scope)
        if isinstance(context, ToolResult):
            return as_outcome(context)
        name = resolve_name(call["tool_name"], self._registry.names())
        tool = self._registry.instance(name, context) if name else None
        if tool is None:
            known = self._registry.names()
            return as_outcome(failure(ToolErrorType.NOT_FOUND, unknown_tool(call["tool_name"], known)))
        try:
            result = await execute(tool, call["arguments"], context, passing=(ControlFlow,))
        except BadArguments as error:
            return as_outcome(failure(ToolErrorType.VALIDATION, str(error)))
        result = hidden(result, self._ports.scrub)
        limit = tool.max_result_chars or self._limits.result_chars
        if len(result.output) > limit:
            result = await in_thread(shape, result, limit, self._blobs)
        return as_outcome(result)

    async def reconcile(self, call: ToolCallInfo, intent: Intent | None, scope: Scope) -> Finding:  # noqa: ARG002 - port
        """See the port."""
        tool = self._find(call["tool_name"])
        if tool is None:
            return Finding("unknown", f"There is no tool {call['tool_name']!r} any more that could tell.")
        foreseen = (intent.path, intent.before_sha256, intent.after_sha256) if intent else (None, None, None)
        failed = Finding("unknown", f"{tool.name} failed while it looked; see the log.")
        return await self._guarded(reconciled(tool, InterruptedCall(call["arguments"], *foreseen)), failed)

    async def partial_output(self, call: ToolCallInfo, attempt: int, scope: Scope) -> str:
        """See the port."""
        if call.get("kind") == "readonly":
            return ""
        spool = self._ports.blobs.spool(scope.thread_id, call["call_id"], attempt)
        return self._ports.scrub(await in_thread(readable_end, spool))

    def _hidden(self) -> frozenset[str]:
        deny = self._setting.policy.rules.deny
        originals = {tool.original_name: tool.name for tool in self._registry if tool.original_name}
        return hidden_tools(deny, self._registry.names()) | {
            originals[name] for name in hidden_tools(deny, originals)
        }

    async def _found(self, written: str) -> BaseTool | None:
        if written.startswith(MCP_PREFIX) and written not in self._registry:
            await self._ports.servers_settled()
        return self._find(written)

    def _find(self, written: str) -> BaseTool | None:
        name = resolve_name(written, self._registry.names())
        return self._registry.get(name) if name else None

    async def _plan(self, tool: BaseTool, arguments: Mapping[str, Any], scope: Scope) -> Plan:
        try:
            usable = parsed(tool, arguments)
            if objection := tool.validate(usable):
                return Plan(tool.name, usable, "unusable", objection)
            facts = await in_thread(self._facts, tool, usable, scope)
            decision = judge(facts, await self._policy(scope))
            shown = None if decision.verdict == "deny" else await self._preview(tool, usable, scope, facts)
        except (BadArguments, PathRefused) as error:
            return Plan(tool.name, dict(arguments), "unusable", str(error), kind=kind_of(tool, arguments))
        return planned(tool, usable, facts, decision, shown)

    async def _propose(self, tool: BaseTool, arguments: Mapping[str, Any], scope: Scope) -> Proposal:
        try:
            usable = parsed(tool, arguments)
            facts = await in_thread(self._facts, tool, usable, scope)
        except (BadArguments, PathRefused) as error:
            return Proposal(objection=str(error))
        rules, objection = propose(facts, await self._policy(scope), tool.suggest_rule(usable))
        return Proposal(rules, objection, facts.place)

    def _facts(self, tool: BaseTool, usable: Mapping[str, Any], scope: Scope) -> CallFacts:
        return call_facts(tool, usable, scope, self._setting, self._registry.origin(tool.name))

    async def _bound(self, tool: BaseTool, call: ToolCallInfo, scope: Scope) -> ToolContext | ToolResult:
        admitted = await self._guarded(self._admitted(tool, call, scope), _UNSURE)
        return (
            admitted if isinstance(admitted, ToolResult) else replace(self._context(call, scope), admitted=admitted)
        )

    async def _admitted(
        self, tool: BaseTool, call: ToolCallInfo, scope: Scope
    ) -> frozenset[Path] | ToolResult | None:
        try:
            usable = parsed(tool, call["arguments"])
            if not any(isinstance(target, PathTarget) for target in tool.targets(usable)):
                return None
            facts = await in_thread(self._facts, tool, usable, scope)
            return admitted_paths(facts, call.get("paths"), await self._policy(scope))
        except BadArguments as error:
            return failure(ToolErrorType.VALIDATION, str(error))
        except PathRefused as refused:
            return refused.as_result()

    async def _policy(self, scope: Scope) -> PolicySettings:
        return await with_grants(self._setting, self._ports.grants, scope)

    async def _preview(
        self, tool: BaseTool, arguments: dict[str, Any], scope: Scope, facts: CallFacts
    ) -> dict[str, Any] | None:
        if facts.shell is not None:
            words = command_in_words(facts, facts.shell)
            return await in_thread(as_preview, Preview("text", words), self._blobs)
        if tool.is_read_only(arguments):
            return None
        admitted = frozenset(Path(path.resolved) for path in facts.paths) or None
        shown = await preview(tool, arguments, replace(self._around(scope), admitted=admitted))
        return None if shown is None else await in_thread(as_preview, shown, self._blobs)

    def _around(self, scope: Scope) -> ToolContext:
        """What every use of a tool in the thread has in common."""
        return ToolContext(
            self._setting.workspace,
            roots=self._setting.roots,
            thread_id=scope.thread_id,
            cwd=Path(scope.cwd) if scope.cwd else None,
            file_states=self._ports.file_states,
            blobs=self._blobs,
            limits=self._limits,
        )

    def _context(self, call: ToolCallInfo, scope: Scope) -> ToolContext:
        return replace(
            self._around(scope),
            call_id=call["call_id"],
            attempt=call.get("attempt", 1),
            mark=process_mark(call.get("run_token", ""), call["call_id"], call.get("attempt", 1)),
            todo=scope.todo,
            answer=call.get("answer"),
            processes=RecordedProcesses(self._ports.record_process),
            progress=lambda progress: self._report(call["call_id"], progress),
            sandbox=None if call.get("outside_sandbox") else self._ports.sandbox,
            may_read=self._may_read,
            host_leave=lambda host: host_leave(host, scope, self._setting),
            seen=(call.get("preview") or {}).get("seen"),
        )

    def _report(self, call_id: str, progress: Progress) -> None:
        kind, text = progress_in_words(progress)
        self._ports.on_progress(call_id, kind, self._ports.scrub(text))

    def _may_read(self, path: Path) -> bool:
        policy, workspace = self._setting.policy, self._setting.workspace
        names = (path, *other_names(path, self._setting))
        return all(may_read(name, workspace=workspace, rules=policy.rules, home=policy.home) for name in names)

    def _before_image(self, data: bytes) -> tuple[str, str]:
        return digest(data), self._ports.blobs.put(data)

    def _forget(self, change: RegistryChange) -> None:
        self._computed.pop(change.name, None)

    async def _guarded(self, work: Awaitable[T], fallback: T) -> T:
        try:
            return await work
        except ControlFlow:
            raise
        except Exception:  # noqa: BLE001 - the one boundary between a tool's bugs and planning or recovery
            _log.exception("a tool failed outside of its execution")
            return fallback
