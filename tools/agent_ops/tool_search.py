"""Searching deferred tools, which are offered by name only, and loading their declarations."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from tools.base import (
    BaseTool,
    ToolDescription,
    ToolErrorType,
    ToolExample,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
    failure,
)
from tools.description import format_declarations, short_description
from tools.registry import function_declaration

__all__ = ["ToolSearchArgs", "ToolSearchTool", "with_deferred_names"]

_MOST = 8
"""How many tools a search by words loads; tools given by name are all loaded."""
_LINE_CHARS = 100
_EMPTY = "query: it is empty; give names of tools, or words for what you need."


class ToolSearchArgs(BaseModel):
    query: str = Field(description="names of tools, separated by commas, or words for what you need")


class ToolSearchTool(BaseTool):
    name = "tool_search"
    description = ToolDescription(
        short="Load tools that are listed here by name only.",
        long="The result shows how to call them, and they are declared from then on.",
        usage_notes=("Words of a name or description are enough.",),
        examples=(ToolExample({"query": "create issue"}),),
        important=("Search before you call one of them for the first time.",),
    )
    tags = ("tools", "read")
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "agent"
    args_schema = ToolSearchArgs

    def __init__(self, deferred: Callable[[], Sequence[BaseTool]]) -> None:
        self._deferred = deferred
        """Returns the tools that are deferred now."""

    def validate(self, args: Mapping[str, Any]) -> str | None:
        return None if str(args["query"]).strip() else _EMPTY

    def display_call(self, args: Mapping[str, Any]) -> str:
        return f"tool_search {args['query']}"

    async def execute(self, *, query: str) -> ToolResult:
        """Return the declarations of matching tools; `metadata["loaded_tools"]` has their names."""
        if not query.strip():
            return failure(ToolErrorType.VALIDATION, _EMPTY)
        known = self._deferred()
        names = {name.casefold() for name in re.split(r"[\s,]+", query.removeprefix("select:"))}
        found = [tool for tool in known if tool.name.casefold() in names] or _by_words(query, known)
        if not found:
            available = ", ".join(tool.name for tool in known) or "none"
            output = f"No tool matches {query!r}. Deferred tools: {available}."
            return ToolResult(output, display="found none", metadata={"found": 0})
        declarations = format_declarations(
            [function_declaration(tool, await tool.describe(), await tool.parameters()) for tool in found]
        )
        loaded = [tool.name for tool in found]
        output = f"You can call these tools from now on:\n\n{declarations}"
        return ToolResult(output, f"found {', '.join(loaded)}", metadata={"loaded_tools": loaded})


def with_deferred_names(declaration: Mapping[str, Any], deferred: Sequence[BaseTool]) -> dict[str, Any]:
    """The declaration of the search, extended by one line for each deferred tool."""
    function = declaration["function"]
    lines = []
    for tool in deferred:
        line = " ".join(short_description(tool.description).split())
        line = line if len(line) <= _LINE_CHARS else f"{line[: _LINE_CHARS - 1]}…"
        lines.append(f"- {tool.name}: {line}".rstrip(": "))
    described = "\n".join([function["description"], "Deferred tools:", *lines])
    return {**declaration, "function": {**function, "description": described}}


def _by_words(query: str, known: Sequence[BaseTool]) -> list[BaseTool]:
    """Tools that contain any of the words, those with the most words first."""
    words = set(re.findall(r"\w+", query.casefold().replace("_", " ")))
    scored = []
    for tool in known:
        parts = (tool.name, tool.display_name, short_description(tool.description), *tool.tags)
        text = " ".join(parts).casefold()
        scored.append((sum(word in text for word in words), tool))
    return [tool for score, tool in sorted(scored, key=lambda one: -one[0]) if score][:_MOST]
