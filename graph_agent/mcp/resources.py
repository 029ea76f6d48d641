"""The resources of a server, as two tools beside its own: one lists them, one reads one.

A server that has any gets the tools; they are called, approved and recorded like its own. Entries that cannot be
read are left out, so that one of them does not lose all the others.
"""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import anyio
from mcp import McpError
from mcp.types import (
    CallToolResult,
    ClientRequest,
    ListResourcesRequest,
    ListResourceTemplatesRequest,
    PaginatedRequestParams,
    ReadResourceRequest,
    ReadResourceRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic import AnyUrl, ValidationError

__all__ = ["RESOURCE_TOOLS", "Ask", "call_resource_tool", "has_resources"]

_log = logging.getLogger(__name__)

Ask = Callable[[ClientRequest], Awaitable[Mapping[str, Any]]]
"""Sends a request and returns the result as it was sent."""

_LIST, _READ = "list_resources", "read_resource"
_READS = ToolAnnotations(readOnlyHint=True)
RESOURCE_TOOLS = (
    Tool(
        name=_LIST,
        description="List the resources of this server, with their URIs.",
        inputSchema={"type": "object", "properties": {}},
        annotations=_READS,
    ),
    Tool(
        name=_READ,
        description="Read a resource of this server by its URI.",
        inputSchema={
            "type": "object",
            "properties": {"uri": {"type": "string", "description": "the URI, as listed"}},
            "required": ["uri"],
        },
        annotations=_READS,
    ),
)

_MAX_RESOURCES = 1000
_MAX_PAGES = 50
_LOOK_S = 3.0
"""How long the start of a server waits for its list; one that does not answer is taken to have none."""


async def has_resources(ask: Ask) -> bool:
    """Whether the server lists a resource, or a template of addresses."""
    with anyio.move_on_after(_LOOK_S):
        try:
            return bool(await _lines(ask, first_page_only=True))
        except McpError as error:
            _log.warning("the resources could not be listed: %s", error)
    return False


async def call_resource_tool(tool: str, arguments: Mapping[str, Any], ask: Ask) -> Mapping[str, Any]:
    """The result of a call of one of the two tools, in the form of a server's call result.

    Raises:
        McpError: the server returned an error.
    """
    if tool == _LIST:
        return _result("\n".join(await _lines(ask)) or "This server lists no resources.")
    uri = str(arguments.get("uri") or "")
    try:
        request = ReadResourceRequest(params=ReadResourceRequestParams(uri=AnyUrl(uri)))
    except ValidationError:
        return _result(f"{uri!r} is not the URI of a resource. {_LIST} lists them.", is_error=True)
    contents = (await ask(ClientRequest(request))).get("contents")
    entries = [entry for entry in contents if isinstance(entry, dict)] if isinstance(contents, list) else []
    return {"content": [{"type": "resource", "resource": entry} for entry in entries]}


def _result(text: str, *, is_error: bool = False) -> dict[str, Any]:
    return CallToolResult(content=[TextContent(type="text", text=text)], isError=is_error).model_dump()


async def _lines(ask: Ask, *, first_page_only: bool = False) -> list[str]:
    """A line for each resource, then for each template: the address, and what the server says about it."""
    pages = 1 if first_page_only else _MAX_PAGES
    found: list[str] = []
    for kind, entries, address in (
        (ListResourcesRequest, "resources", "uri"),
        (ListResourceTemplatesRequest, "resourceTemplates", "uriTemplate"),
    ):
        cursor: str | None = None
        for _ in range(pages):
            params = PaginatedRequestParams(cursor=cursor) if cursor else None
            try:
                page = await ask(ClientRequest(kind(params=params)))
            except McpError:
                if kind is ListResourceTemplatesRequest:
                    break  # Few servers have templates.
                raise
            found += _described(page.get(entries), address)
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or not cursor or len(found) > _MAX_RESOURCES:
                break
    return found[:_MAX_RESOURCES]


def _described(entries: Any, address: str) -> Iterator[str]:
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict) and isinstance(uri := entry.get(address), str) and uri:
            about = [entry.get(name) for name in ("name", "description", "mimeType")]
            yield "  ".join([uri, *(one for one in about if isinstance(one, str) and one)])
