"""Factories that a setting may name, and what they make."""

from collections.abc import Iterator
from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.tool import ToolCallChunk
from langchain_core.outputs import ChatGenerationChunk

__all__ = ["cuts", "fails", "knows_no_functions", "makes_nothing", "speaks"]


class _Speaks(GenericFakeChatModel):
    def bind_tools(self, tools: object, **_: object) -> "_Speaks":
        assert tools
        return self


def speaks() -> GenericFakeChatModel:
    return _Speaks(messages=iter([AIMessage("hello there")]))


class _InPieces(_Speaks):
    """Streams each reply of the script in the pieces given."""

    pieces: list[list[AIMessageChunk]]

    def _stream(self, *_: Any, **__: Any) -> Iterator[ChatGenerationChunk]:
        yield from (ChatGenerationChunk(message=piece) for piece in self.pieces.pop(0))


def cuts() -> GenericFakeChatModel:
    part = ToolCallChunk(name="f", args='{"command": "rm -rf /tm', id="c1", index=0)
    end = AIMessageChunk(content="", response_metadata={"stop_reason": "max_tokens"})
    cut = [AIMessageChunk(content="", tool_call_chunks=[part]), end]
    return _InPieces(messages=iter([]), pieces=[[AIMessageChunk(content="")], cut])


def knows_no_functions() -> GenericFakeChatModel:
    return GenericFakeChatModel(messages=iter([AIMessage('<tool_call>{"name": "f", "arguments": {}}</tool_call>')]))


def fails() -> GenericFakeChatModel:
    raise RuntimeError("no licence")


def makes_nothing() -> str:
    return "a text"
