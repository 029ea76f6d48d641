"""Images in a request: from the references in the history to what a model sees. Knows no store."""

import base64
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langchain_core.messages import HumanMessage

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

__all__ = ["LoadImage", "has_images", "with_images"]

LoadImage = Callable[[str], bytes | None]
"""The bytes behind a reference; None where they are gone."""

_MOST = 20
"""Images in one request, the newest; providers take no more of them."""


def has_images(messages: "Sequence[BaseMessage]") -> bool:
    """Whether the history refers to any."""
    return any(message.additional_kwargs.get("images") for message in messages)


def with_images(messages: "Sequence[BaseMessage]", load: LoadImage) -> "list[BaseMessage]":
    """The history with the images that results refer to, after the last result of each batch.

    They come as a message of the user: as part of a tool's message most endpoints refuse them. Those that a message
    of the user names stand in it.
    """
    shown: list[BaseMessage] = []
    waiting: list[Mapping[str, Any]] = []
    left_out = max(sum(len(_references(message)) for message in messages) - _MOST, 0)
    for position, message in enumerate(messages):
        references = _references(message)
        wanted = references[left_out:]
        left_out = max(left_out - len(references), 0)
        shown.append(_with_own(message, wanted, load) if message.type == "human" else message)
        waiting += wanted if message.type == "tool" else []
        is_last = position + 1 == len(messages) or messages[position + 1].type != "tool"
        if is_last and waiting:
            shown += _told(waiting, load)
            waiting = []
    return shown


def _references(message: "BaseMessage") -> list[Mapping[str, Any]]:
    images = message.additional_kwargs.get("images") if message.type in ("tool", "human") else None
    return [one for one in images or () if isinstance(one, Mapping) and "blob" in one]


def _with_own(message: "BaseMessage", references: Sequence[Mapping[str, Any]], load: LoadImage) -> "BaseMessage":
    parts = [_part(one, data) for one in references if (data := load(str(one["blob"]))) is not None]
    return HumanMessage([{"type": "text", "text": message.text}, *parts]) if parts else message


def _told(references: Sequence[Mapping[str, Any]], load: LoadImage) -> "Iterator[BaseMessage]":
    parts = [_part(one, data) for one in references if (data := load(str(one["blob"]))) is not None]
    if parts:
        text = {"type": "text", "text": "The images of the results above, in their order."}
        yield HumanMessage([text, *parts])


def _part(reference: Mapping[str, Any], data: bytes) -> dict[str, Any]:
    encoded = base64.b64encode(data).decode()
    address = f"data:{reference.get('media_type', 'image/png')};base64,{encoded}"
    return {"type": "image_url", "image_url": {"url": address}}
