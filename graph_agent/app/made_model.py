"""A chat model that a line of the user's settings names, `package.module:factory`, behind the port.

The factory is called without arguments and returns any LangChain chat model. Knows no provider: what goes wrong in
one is told with its own words and is final.
"""

import asyncio
import importlib
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, ToolCall, message_chunk_to_message

from graph_agent.errors import ConfigError, ModelError
from graph_agent.model.noting import noted_messages
from graph_agent.model.only import OnlyModel
from graph_agent.ports import Delta, ModelRequest, OnDelta

__all__ = ["MadeModel"]

_FAILURES = (ImportError, AttributeError, TypeError, ValueError, RuntimeError, OSError, LookupError)
_WHY_UNUSABLE = "the arguments are no JSON object"


class MadeModel(OnlyModel):
    """Implements `ChatModel` and `Models`."""

    def __init__(self, factory: str) -> None:
        """Make the model.

        Raises:
            ConfigError: the line names nothing that makes a chat model.
        """
        super().__init__(f"model.factory = {factory!r} makes the model here.")
        self._factory = factory
        self._chat = _made(factory)

    @property
    def label(self) -> str:
        """See `ChatModel.label`."""
        name = getattr(self._chat, "model_name", None) or getattr(self._chat, "model", None)
        return f"{name if isinstance(name, str) else type(self._chat).__name__} @ {self._factory}"

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """See `ChatModel.reply`."""
        asking = asyncio.ensure_future(self._ask(request, on_delta))
        try:
            await asyncio.wait({asking})
        finally:
            asking.cancel()
        if failure := asking.exception():
            raise ModelError(f"{self.label} failed: {type(failure).__name__}: {failure}")
        return asking.result()

    async def _ask(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        asked: Any = self._chat.bind_tools([dict(tool) for tool in request.tools]) if request.tools else self._chat
        whole: AIMessageChunk | None = None
        async for piece in asked.astream(list(noted_messages(request))):
            if text := str(piece.text):
                on_delta(Delta("text", text))
            whole = piece if whole is None else whole + piece
        if whole is None:
            raise ModelError("it answered nothing")
        return _usable(whole)


def _made(factory: str) -> BaseChatModel:
    module, _, name = factory.partition(":")
    try:
        chat = getattr(importlib.import_module(module), name)()
    except _FAILURES as failure:
        raise ConfigError(f"model.factory = {factory!r} fails: {type(failure).__name__}: {failure}") from failure
    if not isinstance(chat, BaseChatModel):
        raise ConfigError(f"model.factory = {factory!r} made a {type(chat).__name__}, and no LangChain chat model.")
    return chat


def _usable(whole: AIMessageChunk) -> AIMessage:
    """The finished message; calls whose arguments cannot be used are kept, and said to be so."""
    message = message_chunk_to_message(whole)
    if not isinstance(message, AIMessage):
        raise ModelError(f"a {type(message).__name__} came where a reply was due")
    broken = message.invalid_tool_calls
    kept: list[ToolCall] = [{"name": call["name"] or "unnamed", "args": {}, "id": call["id"]} for call in broken]
    unusable = {str(len(message.tool_calls) + at): _WHY_UNUSABLE for at in range(len(broken))}
    return AIMessage(
        str(message.text),
        tool_calls=[*message.tool_calls, *kept],
        usage_metadata=message.usage_metadata,
        response_metadata={"unusable_arguments": unusable} if unusable else {},
    )
