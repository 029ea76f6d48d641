"""The toolbox of the graph: tool registry and policy behind one port."""

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from graph_agent.calls import ToolCallInfo
from graph_agent.config.redaction import Redactor
from graph_agent.errors import ControlFlow, LeaseLost, StorageError
from graph_agent.ports import Finding, GrantEffect, Intent, Outcome, PreparedCall, Proposal, Scope
from graph_agent.ports.stored_text import storable
from graph_agent.toolbox.background_shells import read_spool_end
from graph_agent.toolbox.call_preparation import CallKey, CallPreparation
from graph_agent.toolbox.facts import PolicyContext
from graph_agent.toolbox.tool_context import ToolboxDependencies, ToolContexts
from policy import PolicySettings, Rule, hidden_tools
from tools.agent_ops.tool_search import ToolSearchTool, with_deferred_names
from tools.base import BaseTool, InterruptedCall, Limits, ToolErrorType, failure
from tools.files import sha256_hex
from tools.registry import RegistryChange, ToolRegistry, resolve_tool_name, unknown_tool_message
from tools.result import ToolResult
from tools.running import execute, limit_result, predict_effect, run_in_thread
from tools.schema import InvalidArguments
from tools.third_party import ToolThread, query_tool, query_tool_async

__all__ = [
    "MCP_PREFIX",
    "GraphToolbox",
    "add_tool_search",
    "as_outcome",
    "available_tool_names",
    "await_or_default",
    "build_declarations",
    "denied_tools",
    "redact_result",
]

MCP_PREFIX = "mcp__"
"""The names of all tools of MCP servers begin with it."""

_NOT_STARTED = failure(
    ToolErrorType.EXECUTION, "The tool failed before it began, and nothing was done; see the log."
)
_ENDS_TURN = (ControlFlow, LeaseLost, StorageError)
"""What ends the turn while a call is prepared; it can be resumed. If a database that cannot be reached counted as a
failure of the tool, the model would be told so, and nobody would be asked about the call."""
_SEARCH = ToolSearchTool.name
_MIN_CHARS = 1_000
"""The output that every result may have, however many calls the message has."""

_log = logging.getLogger(__name__)

T = TypeVar("T")


class GraphToolbox:
    """Implements `graph_agent.ports.Toolbox`."""

    def __init__(
        self,
        registry: ToolRegistry,
        *,
        workspace: Path,
        policy: PolicySettings,
        dependencies: ToolboxDependencies,
        limits: Limits | None = None,
        roots: Sequence[Path] = (),
    ) -> None:
        self._registry = registry
        self._policy = policy
        self._dependencies = dependencies
        context = PolicyContext(workspace.resolve(), policy, tuple(roots), dependencies.sandbox)
        self._contexts = ToolContexts(context, dependencies, limits or Limits())
        self._preparation = CallPreparation(registry, self._contexts, dependencies)
        self._computed: dict[str, dict[str, Any]] = {}
        self._declared: dict[tuple[str, ...], Sequence[Mapping[str, Any]]] = {}
        """By mode and names of loaded tools: each request sends the same object."""
        registry.listen(self._on_registry_change)

    async def load_descriptions(self) -> None:
        """Let the tools compute their descriptions; until then, and for later tools, the declared ones hold."""
        now = await self._registry.function_declarations()
        self._computed = {item["function"]["name"]: item for item in now}
        self._declared.clear()

    def declarations(self, mode: str, loaded: Sequence[str] = ()) -> Sequence[Mapping[str, Any]]:
        """See the port; tools with a bare deny rule are not offered."""
        key = (mode, *loaded)
        if key not in self._declared:
            denied = denied_tools(self._registry, self._policy.rules.deny)
            self._declared[key] = build_declarations(self._registry, mode, denied, loaded, self._computed)
        return self._declared[key]

    async def prepare(
        self, tool_name: str, arguments: Mapping[str, Any], scope: Scope, call_id: str = "", attempt: int = 1
    ) -> PreparedCall:
        """See the port."""
        tool = await self._find_or_wait(tool_name)
        if tool is None:
            return PreparedCall(tool_name, dict(arguments), "unusable", self._explain_missing(tool_name))
        failed = PreparedCall(
            tool.name, dict(arguments), "unusable", f"{tool.name} failed while its call was prepared; see the log."
        )
        key = CallKey(scope.thread_id, call_id, attempt) if call_id else None
        prepared = self._preparation.prepare(tool, arguments, scope, key)
        call = await await_or_default(prepared, failed, reraise=_ENDS_TURN)
        if call.verdict == "unusable" and tool in self._registry.deferred():
            return replace(call, reason=f"{call.reason} Call tool_search with its name to see its arguments.")
        return call

    async def propose(
        self, tool_name: str, arguments: Mapping[str, Any], scope: Scope, effect: GrantEffect = "allow"
    ) -> Proposal:
        """See the port."""
        tool = self._find(tool_name)
        if tool is None:
            return Proposal(objection=self._explain_missing(tool_name))
        failed = Proposal(objection=f"{tool.name} failed while a rule was suggested; see the log.")
        proposed = self._preparation.propose(tool, arguments, scope, effect)
        return await await_or_default(proposed, failed, reraise=_ENDS_TURN)

    async def record_intent(self, call: ToolCallInfo, scope: Scope) -> Intent | None:
        """See the port."""
        tool = self._find(call["tool_name"])
        if tool is None:
            return None
        # A third-party tool said whether it only reads when the call was prepared.
        is_third_party = self._registry.is_third_party(tool.name)
        if call.get("kind") == "readonly" if is_third_party else tool.is_read_only(call["arguments"]):
            return None
        permitted = self._preparation.permit(tool, call, scope)
        permit = await await_or_default(permitted, _NOT_STARTED, reraise=_ENDS_TURN)
        if isinstance(permit, ToolResult):
            return None
        predict = partial(predict_effect, tool, call["arguments"], permit.context)
        effect = await await_or_default(self._ask(tool, predict), None)
        if effect is None:
            return None
        digest = reference = None
        if effect.before is not None:
            digest, reference = await run_in_thread(self._store_before_image, effect.before)
        return Intent(effect.path, digest, effect.after_sha256, reference, effect.before_mode, effect.new_folder)

    async def run(self, call: ToolCallInfo, scope: Scope) -> Outcome:
        """See the port."""
        tool = await self._find_or_wait(call["tool_name"])
        if tool is None:
            return as_outcome(failure(ToolErrorType.NOT_FOUND, self._explain_missing(call["tool_name"])))
        permit = await await_or_default(self._preparation.permit(tool, call, scope), _NOT_STARTED)
        if isinstance(permit, ToolResult):
            return as_outcome(permit)
        tool_thread = ToolThread() if self._registry.is_third_party(tool.name) else None
        create = partial(self._registry.instance, tool.name, permit.context)

        async def created() -> BaseTool | None:
            return create() if tool_thread is None else await query_tool(tool.name, create)

        instance = await await_or_default(created(), None)
        if instance is None:
            return as_outcome(_NOT_STARTED)
        try:
            result = await execute(
                instance,
                call["arguments"],
                permit.context,
                reraise=(ControlFlow,),
                tool_thread=tool_thread,
                keywords=permit.keywords,
            )
        except InvalidArguments as error:
            return as_outcome(failure(ToolErrorType.VALIDATION, str(error)))
        finally:
            self._preparation.forget(call, scope)
        result = redact_result(result, self._dependencies.redact)
        limit = min(instance.max_result_chars or self._contexts.limits.result_chars, self.max_output_chars(scope))
        if len(result.output) > limit:
            result = await run_in_thread(limit_result, result, limit, self._contexts.blobs)
        return as_outcome(result)

    async def reconcile(self, call: ToolCallInfo, intent: Intent | None, scope: Scope) -> Finding:  # noqa: ARG002 - port
        """See the port."""
        tool = self._find(call["tool_name"])
        if tool is None:
            return Finding("unknown", f"No tool {call['tool_name']!r} is known here, so the effect is unknown.")
        expected = (intent.path, intent.before_sha256, intent.after_sha256) if intent else (None, None, None)
        interrupted = InterruptedCall(call["arguments"], *expected)

        async def look() -> Finding:
            found = await tool.reconcile(interrupted)
            return Finding(found.verdict, found.detail)

        failed = Finding("unknown", f"{tool.name} failed while it checked the effect of the call; see the log.")
        return await await_or_default(self._ask(tool, look), failed)

    async def partial_output(self, call: ToolCallInfo, attempt: int, scope: Scope) -> str:
        """See the port."""
        if call.get("kind") == "readonly":
            return ""
        spool = self._dependencies.blobs.spool(scope.thread_id, call["call_id"], attempt)
        return self._dependencies.redact(await run_in_thread(read_spool_end, spool))

    def max_output_chars(self, scope: Scope) -> int:
        """How many characters the result of one call of a message may have: the calls share a maximum."""
        return max(self._contexts.limits.message_chars // scope.calls_in_message, _MIN_CHARS)

    async def _ask(self, tool: BaseTool, question: Callable[[], Awaitable[T]]) -> T:
        """The tool's answer about a call; a third-party tool has only limited time for it."""
        is_third_party = self._registry.is_third_party(tool.name)
        return await (query_tool_async(tool.name, question) if is_third_party else question())

    async def _find_or_wait(self, written: str) -> BaseTool | None:
        if written.startswith(MCP_PREFIX) and written not in self._registry:
            await self._dependencies.wait_for_servers()
        return self._find(written)

    def _find(self, written: str) -> BaseTool | None:
        if (tool := self._registry.get(written)) is not None:
            return tool
        name = resolve_tool_name(written, self._registry.names())
        return self._registry.get(name) if name else None

    def _store_before_image(self, data: bytes) -> tuple[str, str]:
        return sha256_hex(data), self._dependencies.blobs.put(data)

    def _explain_missing(self, written: str) -> str:
        return self._dependencies.explain_missing(written) or unknown_tool_message(written, self._registry.names())

    def _on_registry_change(self, change: RegistryChange) -> None:
        self._computed.pop(change.name, None)
        self._declared.clear()


async def await_or_default(
    work: Awaitable[T], default: T, *, reraise: tuple[type[Exception], ...] = (ControlFlow,)
) -> T:
    """The result, or the default if the tool has a bug, whose traceback is logged.

    An exception of `reraise` passes, also as a cause: tools see a failure of the storage as an OSError.
    """
    try:
        return await work
    except Exception as error:  # noqa: BLE001 - the one boundary between a tool's bugs and planning or recovery
        for one in (error, error.__cause__):
            if isinstance(one, reraise):
                raise one from one.__cause__
        _log.exception("a tool failed outside of its execution")
        return default


def redact_result(result: ToolResult, redact: Redactor) -> ToolResult:
    """The result without secrets, in every field."""
    return replace(
        result,
        output=redact(result.output),
        display=redact(result.display),
        error=None if result.error is None else redact(result.error),
        metadata=redact.value(result.metadata),
    )


def as_outcome(result: ToolResult) -> Outcome:
    """The result of a call that ran to its end, as records and journal store it."""
    # A tool may put anything into the metadata; what is not JSON becomes text.
    metadata = json.loads(storable(json.dumps(result.metadata, default=str, ensure_ascii=False)))
    return Outcome(
        status="success" if result.error is None else "error",
        output=storable(result.output),
        error=None if result.error is None else storable(result.error),
        summary=storable(result.display),
        metadata=metadata,
    )


def denied_tools(registry: ToolRegistry, deny: Sequence[Rule]) -> frozenset[str]:
    """The tools that a bare deny rule removes, by whichever of their names it mentions."""
    by_rule_name = hidden_tools(deny, {tool.rule_name for tool in registry if tool.rule_name})
    return hidden_tools(deny, registry.names()) | {tool.name for tool in registry if tool.rule_name in by_rule_name}


def add_tool_search(registry: ToolRegistry, deny: Sequence[Rule]) -> None:
    """Register the search for tools that this registry defers; denied ones are not found."""

    def deferred() -> list[BaseTool]:
        denied = denied_tools(registry, deny)
        return [tool for tool in registry.deferred() if tool.name not in denied]

    registry.register(ToolSearchTool(deferred))


def available_tool_names(registry: ToolRegistry, mode: str, denied: frozenset[str]) -> frozenset[str]:
    """The tools offered in a mode, including those by name only; the search only if it can find something."""
    names = frozenset(tool.name for tool in registry.available(mode, denied))
    has_deferred = any(tool.name in names for tool in registry.deferred())
    return names if has_deferred else names - {_SEARCH}


def build_declarations(
    registry: ToolRegistry,
    mode: str,
    denied: frozenset[str],
    loaded: Sequence[str],
    computed: Mapping[str, dict[str, Any]],
) -> list[dict[str, Any]]:
    """Function declarations: those with a fixed place first, then the loaded ones in the order of loading.

    So a prefix that a provider has cached stays the same when the model loads another tool.
    """
    whole = {
        item["function"]["name"]: computed.get(item["function"]["name"], item)
        for item in registry.declarations(mode, denied)
    }
    deferred = [tool for tool in registry.deferred() if tool.name in whole]
    if not deferred or _SEARCH not in whole:
        return [item for name, item in whole.items() if name != _SEARCH]
    whole[_SEARCH] = with_deferred_names(whole[_SEARCH], deferred)
    later = {tool.name for tool in deferred}
    first = [item for name, item in whole.items() if name not in later]
    return [*first, *(whole[name] for name in loaded if name in later)]
