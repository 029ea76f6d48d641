"""News that a request carries beside its messages: which background shells ended since the model last looked.

A remote model reads them behind the newest message; a message of their own could be refused, as roles have to
alternate, or only tools may answer calls. Where this process itself writes the reply, they stand in it as well: a
step that asks no language model would lose them, for they are told once.
"""

from typing import TYPE_CHECKING

from graph_agent.ports import Delta

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import AIMessage, BaseMessage

    from graph_agent.ports import ModelRequest, OnDelta


__all__ = ["append_notices", "messages_with_notices", "reply_with_notices"]

_TOLD = """\
[From the program, not from the user. Background shells ended since you last looked:
{lines}
bash_output shows what one wrote; start it again only where it is still wanted.]"""


def messages_with_notices(request: "ModelRequest") -> "Sequence[BaseMessage]":
    """The messages of a request as they are sent; the stored ones stay as they are."""
    *before, newest = request.messages
    if not request.news or not isinstance(newest.content, str):
        return request.messages
    told = _TOLD.format(lines=_listed(request))
    return [*before, newest.model_copy(update={"content": f"{newest.content}\n\n{told}"})]


def reply_with_notices(
    reply: "AIMessage", request: "ModelRequest", on_delta: "OnDelta", *, chinese: bool
) -> "AIMessage":
    """The reply with the news behind its text, shown as the rest of it is."""
    if not request.news:
        return reply
    said = append_notices(reply.text, request, chinese=chinese)
    on_delta(Delta("text", said.removeprefix(reply.text)))
    return reply.model_copy(update={"content": said})


def append_notices(text: str, request: "ModelRequest", *, chinese: bool = False) -> str:
    """The text and, where there is any, the news in a few plain words."""
    head = "后台命令已结束：" if chinese else "Ended in the background:"
    return "\n\n".join(filter(None, (text, f"{head}\n{_listed(request)}"))) if request.news else text


def _listed(request: "ModelRequest") -> str:
    return "\n".join(f"- {line}" for line in request.news)
