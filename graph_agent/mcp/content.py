"""What a server answers, as text for the model. What is no text is kept as a blob, and named by its reference."""

import base64
import binascii
import json
from collections.abc import Callable
from typing import Any

from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

__all__ = ["text_of"]

Keep = Callable[[bytes], str | None]
"""Stores bytes and returns their reference; None where they cannot be stored."""


def _kept_nowhere(_: bytes) -> str | None:
    return None


def text_of(result: CallToolResult, keep: Keep = _kept_nowhere) -> str:
    """The blocks one after the other, and the structured content where they do not say the same."""
    blocks = [_text(block, keep) for block in result.content]
    structured = result.structuredContent
    if structured is not None and not _is_told(structured, blocks):
        blocks.append(json.dumps(structured, ensure_ascii=False, indent=2))
    return "\n".join(blocks)


def _is_told(structured: dict[str, Any], blocks: list[str]) -> bool:
    """Whether the text says it already, as servers do for clients that know of text only."""
    if structured == {"result": "\n".join(blocks)}:
        return True
    told = [_parsed(block) for block in blocks]
    return structured in told or structured == {"result": told} or structured in [{"result": one} for one in told]


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _text(block: ContentBlock, keep: Keep) -> str:
    match block:
        case TextContent(text=text):
            return text
        case ImageContent(mimeType=kind, data=data) | AudioContent(mimeType=kind, data=data):
            return _kept(kind, data, keep)
        case ResourceLink(uri=uri, name=name, description=about):
            return f"[{name}: {uri}{f' ({about})' if about else ''}]"
        case EmbeddedResource(resource=TextResourceContents(uri=uri, text=text)):
            return f"[{uri}]\n{text}"
        case EmbeddedResource(resource=BlobResourceContents(uri=uri, blob=data)):
            return _kept(str(uri), data, keep)
        case EmbeddedResource(resource=resource):
            return f"[{resource.uri}, not shown]"


def _kept(what: str, data: str, keep: Keep) -> str:
    try:
        raw = base64.b64decode(data)
    except (binascii.Error, ValueError):
        return f"[{what}, not shown: its data is no base64]"
    reference = keep(raw)
    return f"[{what}, {len(raw)} bytes, {f'kept as {reference}' if reference else 'not shown'}]"
