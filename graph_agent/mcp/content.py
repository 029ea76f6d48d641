"""What a server answers, as text for the model. Pictures and sound are named, not shown."""

import json
from collections.abc import Sequence

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


def text_of(result: CallToolResult) -> str:
    """The blocks one after the other; the structured content where there are none."""
    if not result.content and result.structuredContent is not None:
        return json.dumps(result.structuredContent, ensure_ascii=False, indent=2)
    return _joined(result.content)


def _joined(blocks: Sequence[ContentBlock]) -> str:
    return "\n".join(_text(block) for block in blocks)


def _text(block: ContentBlock) -> str:
    match block:
        case TextContent(text=text):
            return text
        case ImageContent(mimeType=kind, data=data) | AudioContent(mimeType=kind, data=data):
            return f"[{kind}, {len(data) * 3 // 4} bytes, not shown]"
        case ResourceLink(uri=uri, name=name):
            return f"[{name}: {uri}]"
        case EmbeddedResource(resource=TextResourceContents(uri=uri, text=text)):
            return f"[{uri}]\n{text}"
        case EmbeddedResource(resource=BlobResourceContents(uri=uri, blob=data)):
            return f"[{uri}, {len(data) * 3 // 4} bytes, not shown]"
        case EmbeddedResource(resource=resource):
            return f"[{resource.uri}, not shown]"
