"""Reads the content of messages: text, reasoning in fields or between tags; and puts images into a request."""

import base64
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


__all__ = [
    "REASONING_FIELDS",
    "LoadImage",
    "Piece",
    "ThinkingFilter",
    "content_text",
    "has_images",
    "image_references",
    "insert_images",
    "named_images",
    "reasoning_text",
    "strip_thinking",
]

REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")
"""Names under which servers send reasoning; some send the same text under two of them."""
_REASONING_TYPES = ("thinking", "reasoning", "reasoning.text", "reasoning.summary")
"""Types of content parts that are reasoning."""
_TEXT_FIELDS = ("thinking", "reasoning", "text", "summary", "content")
"""Names under which reasoning has its text, or parts of it."""


def content_text(content: Any) -> str:
    """The text of a content field, which may be a part or a list of parts; reasoning parts are left out."""
    text = ""
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            text += part
        elif isinstance(part, Mapping) and not _is_reasoning(part):
            text += str(part.get("text") or "")
    return text


def reasoning_text(message: Mapping[str, Any]) -> str:
    """Reasoning in a field of its own, or among the parts of the content."""
    for name in REASONING_FIELDS:
        if value := message.get(name):
            return _reasoning(value)
    content = message.get("content")
    return "".join(map(_reasoning, filter(_is_reasoning, content))) if isinstance(content, list) else ""


def _is_reasoning(part: Any) -> bool:
    return isinstance(part, Mapping) and ("thinking" in part or part.get("type") in _REASONING_TYPES)


def _reasoning(value: Any) -> str:
    """Reasoning may be a text, an object that holds one, or a list of these."""
    match value:
        case str():
            return value
        case list():
            return "".join(map(_reasoning, value))
        case Mapping():
            return _reasoning(next((inner for name in _TEXT_FIELDS if (inner := value.get(name))), ""))
        case _:
            return ""


_TAGS = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "<thought>": "</thought>",
    "<seed:think>": "</seed:think>",
    "[THINK]": "[/THINK]",
    "◁think▷": "◁/think▷",
}
_LONE_END = re.compile(r"(?:^|\n)</think>[ \t]*(?:\n|$)")


def strip_thinking(text: str) -> str:
    """The text after a lone end tag: some servers put the start tag into the prompt and never send it."""
    if "<think>" in text or len(_LONE_END.findall(text)) != 1:
        return text
    return _LONE_END.split(text)[1].lstrip()


class Piece(NamedTuple):
    """Text of one kind."""

    kind: Literal["text", "reasoning"]
    text: str


class ThinkingFilter:
    """Separates reasoning between tags from the text of a streamed reply; only tags at its beginning count."""

    def __init__(self) -> None:
        self._state: Literal["beginning", "thinking", "text"] = "beginning"
        self._buffer = ""
        self._end_tag = ""
        """What ends the newest block of reasoning; empty before the first."""

    def feed(self, text: str) -> list[Piece]:
        """The pieces that are certain now; the possible beginning of a tag is buffered."""
        pieces: list[Piece] = []
        self._buffer += text
        while self._state != "text":
            if self._state == "thinking":
                if not self._find_end(pieces):
                    return pieces
                continue
            start = self._buffer.lstrip()
            if self._end_tag:
                self._buffer = start
            tag = next((tag for tag in _TAGS if start.startswith(tag)), None)
            if tag:
                self._state, self._buffer, self._end_tag = "thinking", start[len(tag) :], _TAGS[tag]
            elif any(tag.startswith(start) for tag in _TAGS):
                return pieces
            else:
                self._state = "text"
        if self._buffer:
            pieces.append(Piece("text", self._buffer))
            self._buffer = ""
        return pieces

    def flush(self) -> list[Piece]:
        """What is still buffered when the reply ends."""
        text, self._buffer = self._buffer, ""
        kind: Literal["text", "reasoning"] = "reasoning" if self._state == "thinking" else "text"
        return [Piece(kind, text)] if text else []

    def _find_end(self, pieces: list[Piece]) -> bool:
        """Whether the block of reasoning has ended."""
        end = self._end_tag
        reasoning, tag, following = self._buffer.partition(end)
        if tag:
            self._state, self._buffer = "beginning", following
        else:
            keep = next((size for size in range(len(end) - 1, 0, -1) if reasoning.endswith(end[:size])), 0)
            split = len(reasoning) - keep
            reasoning, self._buffer = reasoning[:split], reasoning[split:]
        if reasoning:
            pieces.append(Piece("reasoning", reasoning))
        return bool(tag)


LoadImage = Callable[[str], bytes | None]
"""The bytes behind a reference; None where they are gone."""

_MAX_IMAGES = 20
"""The newest images in one request; providers take no more of them."""
_MAX_IMAGE_BYTES = 12_000_000
"""The newest images in one request, together: 16 MB in base64, as some providers take no bodies over 20 MB."""


def has_images(messages: "Sequence[BaseMessage]") -> bool:
    """Whether the history refers to any image."""
    return any(message.additional_kwargs.get("images") for message in messages)


def named_images(messages: "Sequence[BaseMessage]") -> dict[str, str]:
    """The images that the history refers to, oldest first: their references and what the user calls them."""
    found = [one for message in messages for one in image_references(message)]
    return {str(one["blob"]): str(one.get("name") or "an image") for one in found}


def insert_images(messages: "Sequence[BaseMessage]", load: LoadImage) -> "list[BaseMessage]":
    """The history with the images that it refers to.

    Images of tool results come in a user message after the last result of each batch, because most endpoints reject
    them as part of a tool message. Images that a user message names become part of it. Only the newest are sent, up
    to a number and a size; a text says where older ones were left out.
    """
    from langchain_core.messages import HumanMessage  # noqa: PLC0415 - a request without images leaves before it is loaded

    inserted: list[BaseMessage] = []
    parts: list[_Part] = []
    skip = _count_too_old(messages, load)
    for position, message in enumerate(messages):
        references = image_references(message)
        new, skip = _image_parts(references, load, skip)
        if message.type == "human":
            inserted.append(HumanMessage([{"type": "text", "text": message.text}, *new]) if new else message)
            continue
        inserted.append(message)
        parts += new
        if position + 1 == len(messages) or messages[position + 1].type != "tool":
            if parts:
                text = {"type": "text", "text": "The images of the results above, in their order."}
                inserted.append(HumanMessage([text, *parts]))
            parts = []
    return inserted


def image_references(message: "BaseMessage") -> list[Mapping[str, Any]]:
    """The images that a message refers to: maps with `blob`, `media_type` and `name`."""
    images = message.additional_kwargs.get("images") if message.type in ("tool", "human") else None
    return [one for one in images or () if isinstance(one, Mapping) and "blob" in one]


_Part = str | dict[str, Any]


def _count_too_old(messages: "Sequence[BaseMessage]", load: LoadImage) -> int:
    """How many of the oldest images are beyond the limits."""
    blobs = [str(one["blob"]) for message in messages for one in image_references(message)]
    size = 0
    for number, blob in enumerate(reversed(blobs)):
        size += len(load(blob) or b"")
        if number == _MAX_IMAGES or size > _MAX_IMAGE_BYTES:
            return len(blobs) - number
    return 0


def _image_parts(references: Sequence[Mapping[str, Any]], load: LoadImage, skip: int) -> tuple[list[_Part], int]:
    """The parts of these images, and how many of the images after them are too old."""
    too_old = min(skip, len(references))
    parts: list[_Part] = []
    if too_old:
        parts.append({"type": "text", "text": f"[{too_old} older image{'s' * (too_old > 1)} not sent again]"})
    for reference in references[too_old:]:
        if (data := load(str(reference["blob"]))) is not None:
            encoded = base64.b64encode(data).decode()
            url = f"data:{reference.get('media_type', 'image/png')};base64,{encoded}"
            parts.append({"type": "image_url", "image_url": {"url": url}})
    return parts, skip - too_old
