"""A chat model that plays replies from a list, and keeps what it was asked."""

from collections.abc import Sequence
from typing import Any

from langchain_core.messages import AIMessage

from graph_agent.ports import Delta, ModelRequest, OnDelta

__all__ = ["ScriptedModel", "calls", "text"]


def text(content: str) -> AIMessage:
    """A final answer."""
    return AIMessage(content, usage_metadata={"input_tokens": 10, "output_tokens": 5, "total_tokens": 15})


def calls(*wanted: tuple[str, str] | tuple[str, str, dict[str, Any]]) -> AIMessage:
    """A message that asks for calls, each given as id, tool name and, if it has any, arguments."""
    return AIMessage(
        "",
        tool_calls=[{"id": call[0], "name": call[1], "args": call[2] if len(call) == 3 else {}} for call in wanted],
    )


class ScriptedModel:
    """Plays replies, or raises them where they are exceptions; after the last one it says "end"."""

    name = "scripted"

    def __init__(self, *replies: AIMessage | Exception) -> None:
        self.label = "scripted"
        self._replies = list(replies)
        self.requests: list[ModelRequest] = []

    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        """Play the next reply, streamed as one piece."""
        self.requests.append(request)
        reply = self._replies.pop(0) if self._replies else text("end")
        if isinstance(reply, Exception):
            raise reply
        if reply.text:
            on_delta(Delta("text", reply.text))
        return reply

    async def names(self) -> tuple[str, ...]:
        return ("scripted", "other")

    async def switch(self, name: str) -> None:
        self.label = name

    def sent(self, request: int = -1) -> Sequence[tuple[str, str]]:
        """Kind and text of each message of a request, the newest one by default, without the system message."""
        return [
            (message.type, message.text) for message in self.requests[request].messages if message.type != "system"
        ]
