"""What a content field and the fields beside it say: text, and thinking. Knows no stream.

Tells thinking that a model writes between <think> tags from the reply itself. Knows no transport.

Images in a request: from the references in the history to what a model sees. Knows no store.
"""

import base64
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from langchain_core.messages import HumanMessage

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


__all__ = [
    "REASONING_FIELDS",
    "LoadImage",
    "Piece",
    "ThinkingFilter",
    "has_images",
    "plain_text",
    "thinking_text",
    "with_images",
    "without_thinking",
]

REASONING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")
"""Names under which servers send thinking; some send the same under two of them."""
_THOUGHT_TYPES = ("thinking", "reasoning", "reasoning.text", "reasoning.summary")
"""Types of parts of the content that are thinking."""
_TEXTS = ("thinking", "reasoning", "text", "summary", "content")
"""Names under which a thought holds its text, or parts of it."""


def plain_text(content: Any) -> str:
    """Text of a content field, which may be a part or a list of them; thinking among them is none."""
    parts = content if isinstance(content, list) else [content]
    return "".join(_text_of(part) for part in parts)


def thinking_text(part: Mapping[str, Any]) -> str:
    """Thinking in a field of its own, or among the parts of the content."""
    told = next((value for name in REASONING_FIELDS if (value := part.get(name))), None)
    if told is not None:
        return _thought(told)
    content = part.get("content")
    return "".join(_thought(one) for one in content if _is_thought(one)) if isinstance(content, list) else ""


def _text_of(part: Any) -> str:
    if isinstance(part, str):
        return part
    is_text = isinstance(part, Mapping) and not _is_thought(part)
    return str(part.get("text") or "") if is_text else ""


def _is_thought(part: Any) -> bool:
    return isinstance(part, Mapping) and ("thinking" in part or part.get("type") in _THOUGHT_TYPES)


def _thought(told: Any) -> str:
    """A thought, which may be a text, an object that holds one, or a list of these."""
    match told:
        case str():
            return told
        case list():
            return "".join(_thought(one) for one in told)
        case Mapping():
            return _thought(next((value for name in _TEXTS if (value := told.get(name))), ""))
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


def without_thinking(text: str) -> str:
    """What follows the end of thinking, where its beginning stood in the prompt and was never sent."""
    if "<think>" in text or len(_LONE_END.findall(text)) != 1:
        return text
    return _LONE_END.split(text)[1].lstrip()


class Piece(NamedTuple):
    """Text of one kind."""

    kind: Literal["text", "reasoning"]
    text: str


class ThinkingFilter:
    """Takes a reply piece by piece; only tags at the very beginning open thinking."""

    def __init__(self) -> None:
        self._state: Literal["beginning", "thinking", "text"] = "beginning"
        self._held = ""
        self._close = ""
        """What ends the newest block of thinking; empty before the first."""

    def feed(self, text: str) -> list[Piece]:
        """What is certain now; what may be the beginning of a tag is held back."""
        pieces: list[Piece] = []
        self._held += text
        self._begin()
        while self._state == "thinking" and self._think(pieces):
            self._begin()
        if self._state == "text" and self._held:
            pieces.append(Piece("text", self._held))
            self._held = ""
        return pieces

    def flush(self) -> list[Piece]:
        """What was held back when the reply ended."""
        rest, self._held = self._held, ""
        kind: Literal["text", "reasoning"] = "reasoning" if self._state == "thinking" else "text"
        return [Piece(kind, rest)] if rest else []

    def _begin(self) -> None:
        if self._state != "beginning":
            return
        start = self._held.lstrip()
        if self._close:
            self._held = start
        opened = next((tag for tag in _TAGS if start.startswith(tag)), None)
        if opened:
            self._state, self._held, self._close = "thinking", start[len(opened) :], _TAGS[opened]
        elif not any(tag.startswith(start) for tag in _TAGS):
            self._state = "text"

    def _think(self, pieces: list[Piece]) -> bool:
        """Whether the block has come to its end."""
        close = self._close
        thought, tag, rest = self._held.partition(close)
        if tag:
            self._state, self._held = "beginning", rest
        else:
            keep = next((size for size in range(len(close) - 1, 0, -1) if thought.endswith(close[:size])), 0)
            thought, self._held = thought[: len(thought) - keep], thought[len(thought) - keep :]
        if thought:
            pieces.append(Piece("reasoning", thought))
        return bool(tag)


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
