"""What models without an endpoint share: there is no other to switch to, and notices come beside their replies.

Notices say which background shells ended since the model last looked. A remote model reads them behind the newest
message; as a message of their own they could be refused, because roles must alternate. Where this process writes
the reply itself, they are part of the reply as well, since they are sent only once.
"""

from typing import TYPE_CHECKING

from graph_agent.errors import UsageError
from graph_agent.ports import Delta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import AIMessage, BaseMessage

    from graph_agent.ports import ModelRequest, OnDelta


__all__ = ["SingleModel", "append_notices", "messages_with_notices", "reply_with_notices"]

_NOTICE = """\
[From the program, not from the user. Background shells that ended since your last message:
{lines}
Read their output with bash_output; restart one only if it is still needed.]"""


class SingleModel:
    """Implements `Models` where there is only one."""

    def __init__(self, reason: str) -> None:
        self._reason = reason
        """Why no other model can be chosen; ends the sentence that says so."""

    @property
    def name(self) -> str:
        """See `Models.name`."""
        return ""

    @property
    def chosen(self) -> dict[str, str]:
        """Nothing: there was nothing to choose."""
        return {}

    async def names(self) -> tuple[str, ...]:
        """See `Models.names`: none."""
        return ()

    async def switch(self, name: str) -> None:
        """See `Models.switch`.

        Raises:
            UsageError: always.
        """
        raise UsageError(f"Cannot switch to {name!r}: {self._reason}")

    async def close(self) -> None:
        """Nothing was opened."""


def messages_with_notices(request: "ModelRequest") -> "Sequence[BaseMessage]":
    """The messages of a request as they are sent; the stored ones stay as they are."""
    *before, newest = request.messages
    if not request.notices or not isinstance(newest.content, str):
        return request.messages
    notice = _NOTICE.format(lines=_lines(request))
    return [*before, newest.model_copy(update={"content": f"{newest.content}\n\n{notice}"})]


def reply_with_notices(
    reply: "AIMessage", request: "ModelRequest", on_delta: "OnDelta", *, chinese: bool
) -> "AIMessage":
    """The reply with the notices below its text, streamed like the rest of it."""
    if not request.notices:
        return reply
    text = append_notices(reply.text, request, chinese=chinese)
    on_delta(Delta("text", text.removeprefix(reply.text)))
    return reply.model_copy(update={"content": text})


def append_notices(text: str, request: "ModelRequest", *, chinese: bool = False) -> str:
    """The text and, where there are any, the notices."""
    if not request.notices:
        return text
    head = "后台命令已结束：" if chinese else "Ended in the background:"
    return "\n\n".join(filter(None, (text, f"{head}\n{_lines(request)}")))


def _lines(request: "ModelRequest") -> str:
    return "\n".join(f"- {line}" for line in request.notices)
