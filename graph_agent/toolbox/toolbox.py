"""The toolbox of the graph: tool registry and policy behind one port."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from graph_agent.calls import ToolCallInfo
from graph_agent.config.redaction import Redactor
from graph_agent.errors import ControlFlow
from graph_agent.ports import Finding, Intent, Outcome, PreparedCall, Proposal, Scope
from graph_agent.toolbox.background_shells import readable_end
from graph_agent.toolbox.call_preparation import CallKey, CallPreparation, RunPermit
from graph_agent.toolbox.facts import as_outcome, reconciled
from graph_agent.toolbox.path_facts import Setting
from graph_agent.toolbox.tool_context import Surroundings, ToolboxPorts
from policy import PolicySettings, Rule, hidden_tools
from tools.agent_ops.tool_search import ToolSearchTool, with_deferred_names
from tools.base import BaseTool, InterruptedCall, Limits, ToolContext, ToolErrorType, failure
from tools.files import sha256_hex
from tools.registry import (
    Origin,
    RegistryChange,
    ToolRegistry,
    is_third_party,
    resolve_tool_name,
    unknown_tool_message,
)
from tools.result import ToolResult
from tools.running import execute, limit_result, predict_effect, run_in_thread
from tools.schema import InvalidArguments
from tools.third_party import ToolThread, query_tool, query_tool_async

__all__ = [
    "MCP_PREFIX",
    "GraphToolbox",
    "add_tool_search",
    "declared",
    "guarded",
    "hidden",
    "hidden_names",
    "offered_names",
]

_log = logging.getLogger(__name__)

T = TypeVar("T")


async def guarded(work: Awaitable[T], fallback: T) -> T:
    """What the work gives, or the fallback where the tool has a bug; its traceback goes to the log."""
    try:
        return await work
    except ControlFlow:
        raise
    except Exception:  # noqa: BLE001 - the one boundary between a tool's bugs and planning or recovery
        _log.exception("a tool failed outside of its execution")
        return fallback


def hidden(result: ToolResult, scrub: Redactor) -> ToolResult:
    """The result without secrets, in every field."""
    return replace(
        result,
        output=scrub(result.output),
        display=scrub(result.display),
        error=None if result.error is None else scrub(result.error),
        metadata=scrub.value(result.metadata),
    )


_SEARCH = ToolSearchTool.name


def hidden_names(registry: ToolRegistry, deny: Sequence[Rule]) -> frozenset[str]:
    """The tools that a bare deny rule takes away, by whichever of their names it speaks of."""
    by_rule_name = hidden_tools(deny, {tool.rule_name for tool in registry if tool.rule_name})
    return hidden_tools(deny, registry.names()) | {tool.name for tool in registry if tool.rule_name in by_rule_name}


def add_tool_search(registry: ToolRegistry, deny: Sequence[Rule]) -> None:
    """Register the search over what this registry defers; what is denied is not found."""

    def deferred() -> list[BaseTool]:
        hidden = hidden_names(registry, deny)
        return [tool for tool in registry.deferred() if tool.name not in hidden]

    registry.register(ToolSearchTool(deferred))


def offered_names(registry: ToolRegistry, mode: str, hidden: frozenset[str]) -> frozenset[str]:
    """What is offered in a mode, if by name alone; the search only where there is something to find."""
    names = {tool.name for tool in registry.offered(mode, hidden)}
    by_name = {tool.name for tool in registry.deferred()} & names
    return frozenset(names if by_name else names - {_SEARCH})


def declared(
    registry: ToolRegistry,
    mode: str,
    hidden: frozenset[str],
    loaded: Sequence[str],
    computed: Mapping[str, dict[str, Any]],
) -> list[dict[str, Any]]:
    """Function declarations: those that never change place first, then what was loaded, in the order of loading.

    A prefix that a provider has cached so stays the same when the model loads one more.
    """
    whole = {
        item["function"]["name"]: computed.get(item["function"]["name"], item)
        for item in registry.declarations(mode, hidden)
    }
    by_name = [tool for tool in registry.deferred() if tool.name in whole]
    if not by_name or _SEARCH not in whole:
        return [item for name, item in whole.items() if name != _SEARCH]
    whole[_SEARCH] = with_deferred_names(whole[_SEARCH], by_name)
    later = {tool.name for tool in by_name}
    first = [item for name, item in whole.items() if name not in later]
    return [*first, *(whole[name] for name in loaded if name in later)]


_UNSURE = failure(ToolErrorType.EXECUTION, "The tool failed before it began, and nothing was done; see the log.")

_LEAST_CHARS = 1_000
"""What a result may always have, among however many."""

MCP_PREFIX = "mcp__"
"""How the names of all tools begin that come from servers."""


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
        self._policy = policy
        self._ports = ports
        self._around = Surroundings(Setting(workspace.resolve(), policy, tuple(roots)), ports, limits or Limits())
        self._preparation = CallPreparation(self._around, ports.grants)
        self._computed: dict[str, dict[str, Any]] = {}
        self._declared: dict[tuple[str, ...], Sequence[Mapping[str, Any]]] = {}
        """By mode and names of loaded tools: what is sent with each request is the same object each time."""
        registry.listen(self._forget)

    async def load_descriptions(self) -> None:
        """Let the tools compute their descriptions; until then, and for later tools, the declared ones hold."""
        now = await self._registry.function_declarations()
        self._computed = {item["function"]["name"]: item for item in now}
        self._declared.clear()

    def declarations(self, mode: str, loaded: Sequence[str] = ()) -> Sequence[Mapping[str, Any]]:
        """See the port; tools that a bare deny rule takes away are not offered."""
        key = (mode, *loaded)
        if key not in self._declared:
            hidden = hidden_names(self._registry, self._policy.rules.deny)
            self._declared[key] = declared(self._registry, mode, hidden, loaded, self._computed)
        return self._declared[key]

    async def prepare(
        self, tool_name: str, arguments: Mapping[str, Any], scope: Scope, call_id: str = "", attempt: int = 1
    ) -> PreparedCall:
        """See the port."""
        tool = await self._found(tool_name)
        if tool is None:
            return PreparedCall(tool_name, dict(arguments), "unusable", self._unknown(tool_name))
        unusable = PreparedCall(
            tool.name, dict(arguments), "unusable", f"{tool.name} failed while it was planned; see the log."
        )
        key = CallKey(scope.thread_id, call_id, attempt) if call_id else None
        work = self._preparation.prepare(tool, self._origin(tool), arguments, scope, key)
        call = await guarded(work, unusable)
        if call.verdict == "unusable" and tool in self._registry.deferred():
            return replace(call, reason=f"{call.reason} tool_search with its name tells what it takes.")
        return call

    async def propose(self, tool_name: str, arguments: Mapping[str, Any], scope: Scope) -> Proposal:
        """See the port."""
        tool = self._find(tool_name)
        if tool is None:
            return Proposal(objection=self._unknown(tool_name))
        failed = Proposal(objection=f"{tool.name} failed while a rule was looked for; see the log.")
        return await guarded(self._preparation.propose(tool, self._origin(tool), arguments, scope), failed)

    async def record_intent(self, call: ToolCallInfo, scope: Scope) -> Intent | None:
        """See the port."""
        tool = self._find(call["tool_name"])
        if tool is None or self._only_reads(tool, call):
            return None
        permit = await self._permit(tool, call, scope)
        if isinstance(permit, ToolResult):
            return None
        context = self._context(call, scope, permit)
        effect = await guarded(self._there(tool, partial(predict_effect, tool, call["arguments"], context)), None)
        if effect is None:
            return None
        before = None if effect.before is None else await run_in_thread(self._before_image, effect.before)
        digest, reference = before or (None, None)
        return Intent(effect.path, digest, effect.after_sha256, reference, effect.before_mode, effect.new_folder)

    async def run(self, call: ToolCallInfo, scope: Scope) -> Outcome:
        """See the port."""
        found = await self._found(call["tool_name"])
        if found is None:
            return as_outcome(failure(ToolErrorType.NOT_FOUND, self._unknown(call["tool_name"])))
        permit = await self._permit(found, call, scope)
        if isinstance(permit, ToolResult):
            return as_outcome(permit)
        context = self._context(call, scope, permit)
        tool = await guarded(self._instance(found, context), None)
        if tool is None:
            return as_outcome(_UNSURE)
        try:
            tool_thread = ToolThread() if is_third_party(self._origin(found)) else None
            result = await execute(
                tool,
                call["arguments"],
                context,
                reraise=(ControlFlow,),
                tool_thread=tool_thread,
                keywords=permit.keywords,
            )
        except InvalidArguments as error:
            return as_outcome(failure(ToolErrorType.VALIDATION, str(error)))
        finally:
            self._preparation.forget(call, scope)
        return as_outcome(await self._shaped(tool, hidden(result, self._ports.scrub), scope))

    async def reconcile(self, call: ToolCallInfo, intent: Intent | None, scope: Scope) -> Finding:  # noqa: ARG002 - port
        """See the port."""
        tool = self._find(call["tool_name"])
        if tool is None:
            return Finding("unknown", f"There is no tool {call['tool_name']!r} any more that could tell.")
        foreseen = (intent.path, intent.before_sha256, intent.after_sha256) if intent else (None, None, None)
        failed = Finding("unknown", f"{tool.name} failed while it looked; see the log.")
        look = partial(reconciled, tool, InterruptedCall(call["arguments"], *foreseen))
        return await guarded(self._there(tool, look), failed)

    async def partial_output(self, call: ToolCallInfo, attempt: int, scope: Scope) -> str:
        """See the port."""
        if call.get("kind") == "readonly":
            return ""
        spool = self._ports.blobs.spool(scope.thread_id, call["call_id"], attempt)
        return self._ports.scrub(await run_in_thread(readable_end, spool))

    def room_for(self, scope: Scope) -> int:
        """How many characters the result of one call of a message may have, among those of the others."""
        return max(self._around.limits.message_chars // scope.calls_in_message, _LEAST_CHARS)

    async def _shaped(self, tool: BaseTool, result: ToolResult, scope: Scope) -> ToolResult:
        limit = min(tool.max_result_chars or self._around.limits.result_chars, self.room_for(scope))
        if len(result.output) <= limit:
            return result
        return await run_in_thread(limit_result, result, limit, self._around.blobs)

    async def _permit(self, tool: BaseTool, call: ToolCallInfo, scope: Scope) -> RunPermit | ToolResult:
        return await guarded(self._preparation.permit(tool, self._origin(tool), call, scope), _UNSURE)

    def _context(self, call: ToolCallInfo, scope: Scope, permit: RunPermit) -> ToolContext:
        return replace(self._around.of_call(call, scope), approved_paths=permit.paths, cache=permit.cache)

    async def _found(self, written: str) -> BaseTool | None:
        if written.startswith(MCP_PREFIX) and written not in self._registry:
            await self._ports.servers_settled()
        return self._find(written)

    def _find(self, written: str) -> BaseTool | None:
        name = resolve_tool_name(written, self._registry.names())
        return self._registry.get(name) if name else None

    async def _instance(self, tool: BaseTool, context: ToolContext) -> BaseTool | None:
        if not is_third_party(self._origin(tool)):
            return self._registry.instance(tool.name, context)
        return await query_tool(tool.name, partial(self._registry.instance, tool.name, context))

    def _only_reads(self, tool: BaseTool, call: ToolCallInfo) -> bool:
        """Whether this very call changes nothing; a tool of others said so when the call was planned."""
        if is_third_party(self._origin(tool)):
            return call.get("kind") == "readonly"
        return tool.is_read_only(call["arguments"])

    async def _there(self, tool: BaseTool, question: Callable[[], Awaitable[T]]) -> T:
        """What a tool says of a call that was planned; one of others is not waited for longer than is fit."""
        return await (query_tool_async(tool.name, question) if is_third_party(self._origin(tool)) else question())

    def _origin(self, tool: BaseTool) -> Origin:
        return self._registry.origin(tool.name) or "plugin"

    def _unknown(self, written: str) -> str:
        return self._ports.why_missing(written) or unknown_tool_message(written, self._registry.names())

    def _before_image(self, data: bytes) -> tuple[str, str]:
        return sha256_hex(data), self._ports.blobs.put(data)

    def _forget(self, change: RegistryChange) -> None:
        self._computed.pop(change.name, None)
        self._declared.clear()
