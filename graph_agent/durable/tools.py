"""`DurableTools`, which takes the place of LangGraph's `ToolNode`, and `durable`, which wraps one tool."""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self, TypedDict, Unpack, cast

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.runnables.config import ensure_config
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as create_tool
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt import ToolNode
from langgraph.prebuilt.tool_node import AsyncToolCallWrapper, ToolCallRequest, ToolCallWrapper
from pydantic import ConfigDict, PrivateAttr

from graph_agent.durable.guard import CallGuard, GuardedCall, Result, idempotency_key, journal_call, run_in_thread
from graph_agent.durable.journal import Claim, Journal
from graph_agent.durable.tool_policy import KEY_PARAMETER, OnUnknown, ToolPolicy
from graph_agent.errors import AgentError, ConfigError, InternalError

__all__ = ["DurableTools", "RequestGuard", "ToolNodeOptions", "durable"]

Execute = Callable[[ToolCallRequest], Any]
AsyncExecute = Callable[[ToolCallRequest], Awaitable[Any]]


class RequestGuard:
    """Guards the requests of a `ToolNode`: those of `DurableTools`, and those that middleware wraps."""

    def __init__(self, journal: Journal, policies: Mapping[str, ToolPolicy], default: ToolPolicy) -> None:
        self._guard = CallGuard(journal)
        self._policies = policies
        self._default = default
        self._tools: Mapping[str, BaseTool] = {}

    def set_tools(self, tools: Mapping[str, BaseTool]) -> None:
        """Name the tools, all of whose questions are asked with `ask` before they run.

        Raises:
            ConfigError: a policy names an unknown tool, or says `retry` for a tool that may not be repeated.
        """
        self._tools = tools
        if unknown := sorted(self._policies.keys() - tools.keys()):
            names = ", ".join(tools)
            raise ConfigError(f"A policy names {unknown[0]!r}, but there is no such tool. Tools: {names}.")
        for name, tool in tools.items():
            self._policy(name).action(name, takes_key=_takes_key(tool))

    def ask(self, tool_calls: Sequence[Mapping[str, Any]], messages: Sequence[Any], config: RunnableConfig) -> None:
        """Ask everything that is open about the calls of one message."""
        if tool_calls:
            self._guard.ask(
                [self._guarded(one, self._tools.get(one["name"]), messages, config) for one in tool_calls]
            )

    def run(self, request: ToolCallRequest, messages: Sequence[Any], execute: Execute) -> Any:
        """The result of a request, recorded or new."""
        guarded = self._guarded(request.tool_call, request.tool, messages, request.runtime.config)
        return self._guard.run(guarded, lambda claim: execute(_prepared(request, claim)))

    async def arun(self, request: ToolCallRequest, messages: Sequence[Any], execute: AsyncExecute) -> Any:
        """As `run`."""
        guarded = self._guarded(request.tool_call, request.tool, messages, request.runtime.config)
        return await self._guard.arun(guarded, lambda claim: execute(_prepared(request, claim)))

    def _policy(self, tool_name: str) -> ToolPolicy:
        return self._policies.get(tool_name, self._default)

    def _guarded(
        self,
        tool_call: Mapping[str, Any],
        tool: BaseTool | None,
        messages: Sequence[Any],
        config: RunnableConfig,
    ) -> GuardedCall:
        guarded = _guarded_call(tool_call, self._policy(tool_call["name"]), tool, messages, config)
        return replace(guarded, is_asked_about=bool(self._tools))


def _guarded_call(
    tool_call: Mapping[str, Any],
    policy: ToolPolicy,
    tool: BaseTool | None,
    messages: Sequence[Any],
    config: RunnableConfig,
) -> GuardedCall:
    """A call with what is declared about its tool."""
    settings = config.get("configurable", {})
    call = journal_call(config, tool_call, messages, is_read_only=policy.read_only)
    task = f"{call.thread_id}|{settings.get('checkpoint_ns', '')}"
    return GuardedCall(call, str(tool_call["id"]), policy, tool is not None and _takes_key(tool), task)


def _takes_key(tool: BaseTool) -> bool:
    return KEY_PARAMETER in _parameters(tool.args_schema or tool.get_input_schema())


def _parameters(schema: Any) -> set[str]:
    """The names in a schema of any of the kinds that tools have."""
    return set(schema.get("properties", ()) if isinstance(schema, Mapping) else schema.model_fields)


def _prepared(request: ToolCallRequest, claim: Claim) -> ToolCallRequest:
    """The request with the arguments that were claimed, and with the key where the tool takes one."""
    prepared = request.override(tool_call={**request.tool_call, "args": dict(claim.arguments)})
    if request.tool is not None and _takes_key(request.tool):
        # The node removes arguments that it does not inject itself, so the tool adds the key when it is called.
        prepared = prepared.override(tool=_KeyedTool.around(request.tool, key=idempotency_key(claim.call)))
    return prepared


class _Failed(GraphBubbleUp):
    """Carries an error past the error handling that `ToolNode` adds for wrappers: a model cannot react to our
    errors, and the tool's own have been handled already."""

    def __init__(self, error: Exception) -> None:
        self.error = error


class ToolNodeOptions(TypedDict, total=False):
    """The options that `DurableTools` passes on to `ToolNode`."""

    name: str
    tags: list[str] | None
    handle_tool_errors: bool | str | Callable[..., str] | type[Exception] | tuple[type[Exception], ...]
    messages_key: str


class DurableTools(ToolNode):
    """A `ToolNode` that does not run a call a second time unless its policy or a person says so.

    All questions about the calls of one message are asked together, before any of them runs.
    """

    def __init__(
        self,
        tools: Sequence[BaseTool | Callable[..., Any]],
        *,
        journal: Journal,
        on_unknown: OnUnknown | None = None,
        policies: Mapping[str, ToolPolicy] | None = None,
        wrap_tool_call: ToolCallWrapper | None = None,
        awrap_tool_call: AsyncToolCallWrapper | None = None,
        **options: Unpack[ToolNodeOptions],
    ) -> None:
        """Create the node.

        Args:
            tools: as for `ToolNode`.
            journal: where calls are recorded; several nodes may share one.
            on_unknown: for tools without a policy of their own; see `ToolPolicy`.
            policies: by the name of the tool.
            wrap_tool_call: as for `ToolNode`; it is called only for a call that runs.
            awrap_tool_call: likewise.
            options: as for `ToolNode`.
        """
        # A node whose only wrapper is a synchronous one uses that in asynchronous runs too.
        awrap = None if wrap_tool_call and not awrap_tool_call else _make_async_wrapper(self, awrap_tool_call)
        super().__init__(
            tools, wrap_tool_call=_make_wrapper(self, wrap_tool_call), awrap_tool_call=awrap, **options
        )
        self.guard = RequestGuard(journal, policies or {}, ToolPolicy(on_unknown=on_unknown))
        self.guard.set_tools(self.tools_by_name)

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's
        """Run the calls of the newest message of the model that are not answered yet."""
        config = ensure_config(config)
        try:
            self.guard.ask(*self._open_calls(input), config)
            return super().invoke(input, config, **kwargs)
        except _Failed as failed:
            raise failed.error from failed

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's
        """As `invoke`."""
        config = ensure_config(config)
        try:
            await run_in_thread(lambda: self.guard.ask(*self._open_calls(input), config))
            return await super().ainvoke(input, config, **kwargs)
        except _Failed as failed:
            raise failed.error from failed

    def messages(self, state: Any) -> Sequence[Any]:
        """The conversation in an input of the node or a state."""
        if isinstance(state, list):
            return state
        key = self._messages_key
        found = state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)
        return found if isinstance(found, list) else ()

    def _open_calls(self, state: Any) -> tuple[list[Mapping[str, Any]], Sequence[Any]]:
        if isinstance(state, Mapping) and state.get("__type") == "tool_call_with_context":
            return [state["tool_call"]], self.messages(state["state"])
        messages = self.messages(state)
        calls = _newest_calls(messages)
        known = [one for one in calls if one["name"] in self.tools_by_name and not _is_duplicate(one, calls)]
        return [one for one in known if not _is_answered(one, messages)], messages


def _newest_calls(messages: Sequence[Any]) -> Sequence[Mapping[str, Any]]:
    """The calls that a node is to run: those of the newest message with any, or what it got instead of messages."""
    if messages and isinstance(messages[-1], dict) and messages[-1].get("type") == "tool_call":
        return messages
    return next((one.tool_calls for one in reversed(messages) if getattr(one, "tool_calls", None)), [])


def _is_duplicate(tool_call: Mapping[str, Any], calls: Sequence[Mapping[str, Any]]) -> bool:
    """Whether an earlier call of the same message has this id; the journal could not tell the two apart."""
    return any(one is tool_call for one in [one for one in calls if one.get("id") == tool_call["id"]][1:])


def _is_answered(tool_call: Mapping[str, Any], messages: Sequence[Any]) -> bool:
    """Whether the conversation holds the result of this call behind the newest message that asks for it."""
    for message in reversed(messages):
        if isinstance(message, ToolMessage) and message.tool_call_id == tool_call["id"]:
            return True
        if any(call.get("id") == tool_call["id"] for call in getattr(message, "tool_calls", None) or ()):
            return False
    return False


def _result_without_run(request: ToolCallRequest, messages: Sequence[Any]) -> Result | None:
    """What a call gets that must not run; None if it may."""
    call = request.tool_call
    if _is_answered(call, messages):
        return []  # One result for each call, whatever ran before this node.
    if not _is_duplicate(call, _newest_calls(messages)):
        return None
    text = (
        f"Call {call['id']} was not run: an earlier call of the same message has this id. Call the tool again, "
        "with a new id."
    )
    return ToolMessage(text, name=call["name"], tool_call_id=call["id"], status="error")


def _make_wrapper(node: DurableTools, inner: Any) -> Any:
    def wrap(request: ToolCallRequest, execute: Execute) -> Result:
        messages = node.messages(request.state)
        if request.tool is None:
            return cast("Result", execute(request))
        if (result := _result_without_run(request, messages)) is not None:
            return result
        run = execute if inner is None else lambda one: inner(one, execute)
        with _bypass_error_handling(AgentError if inner else Exception):
            return cast("Result", node.guard.run(request, messages, run))

    return wrap


def _make_async_wrapper(node: DurableTools, inner: Any) -> Any:
    async def awrap(request: ToolCallRequest, execute: AsyncExecute) -> Result:
        messages = node.messages(request.state)
        if request.tool is None:
            return cast("Result", await execute(request))
        if (result := _result_without_run(request, messages)) is not None:
            return result
        run = execute if inner is None else lambda one: inner(one, execute)
        with _bypass_error_handling(AgentError if inner else Exception):
            return cast("Result", await node.guard.arun(request, messages, run))

    return awrap


@contextmanager
def _bypass_error_handling(kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except GraphBubbleUp:
        raise
    except kind as error:
        raise _Failed(error) from error


class _Wrapper(BaseTool):
    """A tool that calls another one; models, nodes and schemas see the other one's declaration."""

    model_config = ConfigDict(arbitrary_types_allowed=True)
    _inner: BaseTool = PrivateAttr()

    @classmethod
    def around(cls, inner: BaseTool, **private: Any) -> Self:
        """Wrap a tool."""
        wrapper = cls(
            name=inner.name,
            description=inner.description,
            args_schema=inner.args_schema or inner.get_input_schema(),
            return_direct=inner.return_direct,
            response_format=inner.response_format,
            tags=inner.tags,
            metadata=inner.metadata,
        )
        wrapper._inner = inner
        for name, value in private.items():
            setattr(wrapper, f"_{name}", value)
        return wrapper

    @property
    def func(self) -> Any:
        """The function whose annotations say what a node injects."""
        return getattr(self._inner, "func", None) or getattr(self._inner, "coroutine", None) or self._inner.invoke

    def _run(self, *_: Any, **arguments: Any) -> Any:
        raise InternalError(f"tool {self.name!r} was called past its wrapper with {sorted(arguments)}")


class _KeyedTool(_Wrapper):
    """Calls the tool with the key of its call, whatever the model wrote there."""

    _key: str = PrivateAttr()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's
        return self._inner.invoke(_with_key(input, self._key), config, **kwargs)

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's
        return await self._inner.ainvoke(_with_key(input, self._key), config, **kwargs)


def _with_key(tool_call: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {**tool_call, "args": {**tool_call["args"], KEY_PARAMETER: key}}


class _DurableTool(_Wrapper):
    """Guards each call of one tool."""

    _guard: CallGuard = PrivateAttr()
    _policy: ToolPolicy = PrivateAttr()

    def invoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's
        config = ensure_config(config)
        guarded = self._guarded(input, config)
        return self._guard.run(
            guarded, lambda claim: self._inner.invoke(self._input(input, claim), config, **kwargs)
        )

    async def ainvoke(self, input: Any, config: RunnableConfig | None = None, **kwargs: Any) -> Any:  # noqa: A002 - LangChain's
        config = ensure_config(config)
        guarded = self._guarded(input, config)
        return await self._guard.arun(
            guarded, lambda claim: self._inner.ainvoke(self._input(input, claim), config, **kwargs)
        )

    def _guarded(self, tool_call: Any, config: RunnableConfig) -> GuardedCall:
        if not isinstance(tool_call, Mapping) or tool_call.get("type") != "tool_call":
            tool_call = {"name": self.name, "id": None}
        visible = _parameters(self._inner.tool_call_schema) - {KEY_PARAMETER}
        arguments = {name: value for name, value in (tool_call.get("args") or {}).items() if name in visible}
        return _guarded_call({**tool_call, "args": arguments}, self._policy, self._inner, (), config)

    def _input(self, tool_call: Mapping[str, Any], claim: Claim) -> dict[str, Any]:
        called = {**tool_call, "args": {**tool_call["args"], **claim.arguments}}
        return _with_key(called, idempotency_key(claim.call)) if _takes_key(self._inner) else called


def durable(tool: BaseTool | Callable[..., Any], journal: Journal, policy: ToolPolicy | None = None) -> BaseTool:
    """The tool, with each of its calls durable; it must be called with whole tool calls, as nodes do.

    One tool sees no conversation, so ids of calls must be unique in a thread, and each call asks for itself. Where
    you have the choice, take `DurableTools`.

    Raises:
        ConfigError: the policy would run the tool again although nothing says that it may.
    """
    inner = tool if isinstance(tool, BaseTool) else create_tool(tool)
    policy = policy or ToolPolicy()
    policy.action(inner.name, takes_key=_takes_key(inner))
    return _DurableTool.around(inner, guard=CallGuard(journal), policy=policy)
