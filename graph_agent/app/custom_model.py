"""A chat model from a factory that the settings name, `package.module:factory`, behind the model port.

The factory takes no arguments and returns a LangChain chat model. Its stream is read like that of an endpoint.
Errors are reported in the provider's own words and are final.
"""

import asyncio
import importlib
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.ai import add_usage

from graph_agent.errors import ConfigError, ModelError
from graph_agent.model.openai.endpoint import RetryPolicy, format_tools_json
from graph_agent.model.openai.errors import EmptyReply, Failure
from graph_agent.model.openai.prompted_tools import FormatTools, reply_with_corrections, to_prompt_protocol
from graph_agent.model.openai.stream import DONE, ReplyStream
from graph_agent.model.single_model import SingleModel, messages_with_notices
from graph_agent.ports import Delta, ModelRequest, OnDelta

__all__ = ["CustomModel"]

_FAILURES = (ImportError, AttributeError, TypeError, ValueError, RuntimeError, OSError, LookupError)
_ENDS = ("finish_reason", "stop_reason", "done_reason")
"""What providers call the reason to finish."""


class CustomModel(SingleModel):
    """Implements `ChatModel` and `Models`."""

    def __init__(
        self,
        factory: str,
        *,
        tool_protocol: str = "auto",
        format_tools: FormatTools = format_tools_json,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Make the model.

        Raises:
            ConfigError: the line names nothing that makes a chat model.
        """
        super().__init__(f"model.factory = {factory!r} makes the model here.")
        self._factory = factory
        self._chat = _made(factory)
        self._protocol = tool_protocol
        self._rendered = format_tools
        self._sleep = sleep

    @property
    def label(self) -> str:
        """See `ChatModel.label`."""
        name = getattr(self._chat, "model_name", None) or getattr(self._chat, "model", None)
        return f"{name if isinstance(name, str) else type(self._chat).__name__} @ {self._factory}"

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """See `ChatModel.reply`."""
        return await reply_with_corrections(lambda asked: self._answered(asked, on_delta), request, on_delta)

    async def _answered(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        retry_policy = RetryPolicy()
        while True:
            asking = asyncio.ensure_future(self._ask(request, on_delta))
            try:
                await asyncio.wait({asking})
            finally:
                asking.cancel()
            failure = asking.exception()
            if failure is None:
                return asking.result()
            if not isinstance(failure, EmptyReply):
                raise ModelError(f"{self.label} failed: {type(failure).__name__}: {failure}")
            empty = Failure("empty", f"{self.label} gave an empty reply ({failure}).")
            wait = retry_policy.next_delay(empty)
            if wait is None:
                raise ModelError(retry_policy.final_message(empty))
            words = f"{empty.message} Waiting {wait:.1f} s, then try {retry_policy.attempts}."
            on_delta(Delta("retry", words, wait_s=round(wait, 3)))
            await self._sleep(wait)

    async def _ask(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        asked: Any = self._with_functions(request)
        messages = list(messages_with_notices(request))
        if is_text := asked is None:
            asked, messages = self._chat, to_prompt_protocol(messages, request.tools, self._rendered)
        offered = [str(tool["function"]["name"]) for tool in request.tools]
        stream, usage = ReplyStream(offered, calls_are_text=is_text), None
        async for piece in asked.astream(messages):
            usage = add_usage(usage, piece.usage_metadata) if piece.usage_metadata else usage
            for delta in stream.add(json.dumps(_event(piece))):
                on_delta(delta)
        for delta in (*stream.add(DONE), *stream.end()):
            on_delta(delta)
        return stream.message().model_copy(update={"usage_metadata": usage})

    def _with_functions(self, request: ModelRequest) -> Any:
        """The model with the tools as functions; None where it takes them as text only."""
        if not request.tools:
            return self._chat
        knows_none = type(self._chat).bind_tools is BaseChatModel.bind_tools
        if self._protocol == "prompt" or (knows_none and self._protocol == "auto"):
            return None
        return self._chat.bind_tools([dict(tool) for tool in request.tools])


def _made(factory: str) -> BaseChatModel:
    module, _, name = factory.partition(":")
    try:
        chat = getattr(importlib.import_module(module), name)()
    except _FAILURES as failure:
        raise ConfigError(f"model.factory = {factory!r} fails: {type(failure).__name__}: {failure}") from failure
    if not isinstance(chat, BaseChatModel):
        raise ConfigError(f"model.factory = {factory!r} made a {type(chat).__name__}, and no LangChain chat model.")
    return chat


def _event(piece: AIMessage) -> Mapping[str, Any]:
    """A piece as an endpoint would have sent it."""
    delta = {"content": str(piece.text), "tool_calls": list(_calls(piece))}
    if reasoning := piece.additional_kwargs.get("reasoning_content"):
        delta["reasoning_content"] = reasoning
    ends = (piece.response_metadata.get(name) for name in _ENDS)
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": next(filter(None, ends), None)}]}


def _calls(piece: AIMessage) -> Iterator[Mapping[str, Any]]:
    """As they were sent where they come in fragments: LangChain itself completes what was cut off."""
    if isinstance(piece, AIMessageChunk) and piece.tool_call_chunks:
        for part in piece.tool_call_chunks:
            function = {"name": part["name"], "arguments": part["args"]}
            yield {"index": part["index"], "id": part["id"], "function": function}
        return
    whole = [(call["id"], call["name"], json.dumps(call["args"])) for call in piece.tool_calls]
    broken = [(call["id"], call["name"], call["args"]) for call in piece.invalid_tool_calls]
    for place, (call_id, name, arguments) in enumerate((*whole, *broken)):
        yield {"index": place, "id": call_id, "function": {"name": name, "arguments": arguments}}
