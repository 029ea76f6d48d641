"""Reads lists of tools and results of calls piece by piece: one odd entry must not cost all the others."""

import json
import logging
from collections.abc import Mapping
from typing import Any

from mcp.types import CallToolResult, ContentBlock, TextContent, Tool, ToolAnnotations
from pydantic import RootModel, TypeAdapter, ValidationError

__all__ = ["NoResult", "Raw", "call_result", "listed_tools"]

_log = logging.getLogger(__name__)

Raw = RootModel[dict[str, Any]]
"""An answer as it came."""
_BLOCK: TypeAdapter[ContentBlock] = TypeAdapter(ContentBlock)


class NoResult(ValueError):
    """An answer to a call holds nothing that a call comes to."""


def listed_tools(page: Mapping[str, Any], most: int) -> list[Tool]:
    """The tools of one page, so many of its entries at most; what has no name is no tool."""
    entries = page.get("tools")
    listed = entries[:most] if isinstance(entries, list) else []
    found = [_tool(entry) for entry in listed if isinstance(entry, dict)]
    return [tool for tool in found if tool is not None]


def call_result(answer: Mapping[str, Any]) -> CallToolResult:
    """What a call came to; content of a kind that nobody knows stands as its JSON.

    Raises:
        NoResult: it is none.
    """
    content, structured = answer.get("content"), answer.get("structuredContent")
    if isinstance(content, dict | str):
        content = [content]
    if not isinstance(content, list) and not isinstance(structured, dict):
        raise NoResult("there is neither content nor structured content in it")
    blocks = [_block(block) for block in content] if isinstance(content, list) else []
    return CallToolResult(
        content=blocks,
        structuredContent=structured if isinstance(structured, dict) else None,
        isError=answer.get("isError") is True,
    )


def _tool(entry: Mapping[str, Any]) -> Tool | None:
    name, about, schema = entry.get("name"), entry.get("description"), entry.get("inputSchema")
    if not isinstance(name, str) or not name:
        _log.warning("a tool without a name was left out")
        return None
    return Tool(
        name=name,
        title=entry["title"] if isinstance(entry.get("title"), str) else None,
        description=about if isinstance(about, str) else None,
        inputSchema=schema if isinstance(schema, dict) else {},
        annotations=_annotations(entry.get("annotations")),
    )


def _annotations(given: Any) -> ToolAnnotations | None:
    """What it says of itself; where that cannot be read it says nothing, which is the careful reading."""
    try:
        return ToolAnnotations.model_validate(given) if isinstance(given, dict) else None
    except ValidationError:
        return None


def _block(given: Any) -> ContentBlock:
    try:
        return _BLOCK.validate_python(given)
    except ValidationError:
        text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
        return TextContent(type="text", text=text)
