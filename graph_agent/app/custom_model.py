"""A LangChain chat model from a factory that the settings name, `package.module:factory`, behind the model port.

The factory takes no arguments. The model's stream is read like that of an endpoint. Its errors are reported in the
provider's own words and are final.
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

_FACTORY_ERRORS = (ImportError, AttributeError, TypeError, ValueError, RuntimeError, OSError, LookupError)
_FINISH_REASONS = ("finish_reason", "stop_reason", "done_reason")
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
            ConfigError: the factory fails or makes no chat model.
        """
        super().__init__(f"model.factory = {factory!r} defines the model.")
        module, _, name = factory.partition(":")
        try:
            chat = getattr(importlib.import_module(module), name)()
        except _FACTORY_ERRORS as error:
            raise ConfigError(f"model.factory = {factory!r} fails: {type(error).__name__}: {error}") from error
        if not isinstance(chat, BaseChatModel):
            raise ConfigError(
                f"model.factory = {factory!r} returned a {type(chat).__name__}, not a LangChain chat model."
            )
        self._factory = factory
        self._chat = chat
        self._protocol = tool_protocol
        self._format_tools = format_tools
        self._sleep = sleep

    @property
    def label(self) -> str:
        """See `ChatModel.label`."""
        name = getattr(self._chat, "model_name", None) or getattr(self._chat, "model", None)
        return f"{name if isinstance(name, str) else type(self._chat).__name__} @ {self._factory}"

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """See `ChatModel.reply`."""
        reply = await self._reply(request, on_delta)
        return await reply_with_corrections(reply, lambda asked: self._reply(asked, on_delta), request, on_delta)

    async def _reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """One reply; an empty one is asked for again."""
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
            empty = Failure("empty", f"{self.label} returned an empty reply ({failure}).")
            wait = retry_policy.next_delay(empty)
            if wait is None:
                raise ModelError(retry_policy.final_message(empty))
            words = f"{empty.message} Waiting {wait:.1f} s, then try {retry_policy.attempts}."
            on_delta(Delta("retry", words, wait_s=round(wait, 3)))
            await self._sleep(wait)

    async def _ask(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        chat: Any = self._chat
        messages = list(messages_with_notices(request))
        knows_no_tools = type(chat).bind_tools is BaseChatModel.bind_tools and self._protocol == "auto"
        as_text = bool(request.tools) and (self._protocol == "prompt" or knows_no_tools)
        if as_text:
            messages = to_prompt_protocol(messages, request.tools, self._format_tools)
        elif request.tools:
            chat = chat.bind_tools([dict(tool) for tool in request.tools])
        tool_names = [str(tool["function"]["name"]) for tool in request.tools]
        stream, usage = ReplyStream(tool_names, calls_are_text=as_text), None
        async for piece in chat.astream(messages):
            usage = add_usage(usage, piece.usage_metadata) if piece.usage_metadata else usage
            for delta in stream.add(json.dumps(_event(piece))):
                on_delta(delta)
        for delta in (*stream.add(DONE), *stream.end()):
            on_delta(delta)
        return stream.message().model_copy(update={"usage_metadata": usage})


def _event(piece: AIMessage) -> Mapping[str, Any]:
    """A piece as an endpoint would have sent it."""
    delta = {"content": str(piece.text), "tool_calls": list(_calls(piece))}
    if reasoning := piece.additional_kwargs.get("reasoning_content"):
        delta["reasoning_content"] = reasoning
    ends = (piece.response_metadata.get(name) for name in _FINISH_REASONS)
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": next(filter(None, ends), None)}]}


def _calls(piece: AIMessage) -> Iterator[Mapping[str, Any]]:
    """As they were sent if they come in fragments: LangChain itself completes what was cut off."""
    if isinstance(piece, AIMessageChunk) and piece.tool_call_chunks:
        for part in piece.tool_call_chunks:
            function = {"name": part["name"], "arguments": part["args"]}
            yield {"index": part["index"], "id": part["id"], "function": function}
        return
    calls = [(call["id"], call["name"], json.dumps(call["args"])) for call in piece.tool_calls]
    invalid = [(call["id"], call["name"], call["args"]) for call in piece.invalid_tool_calls]
    for index, (call_id, name, arguments) in enumerate((*calls, *invalid)):
        yield {"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}
