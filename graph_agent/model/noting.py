"""News that a request carries beside its messages, put where every server takes it: behind the newest message.

A message of its own could be refused: roles have to alternate, or only tools may answer calls.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.messages import BaseMessage

    from graph_agent.ports import ModelRequest

__all__ = ["noted_messages"]


def noted_messages(request: "ModelRequest") -> "Sequence[BaseMessage]":
    """The messages of a request as they are sent; the stored ones stay as they are."""
    *before, newest = request.messages
    if not request.note or not isinstance(newest.content, str):
        return request.messages
    return [*before, newest.model_copy(update={"content": f"{newest.content}\n\n{request.note}"})]
