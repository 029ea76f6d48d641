"""Finding tools that are offered by name alone. That what was found is declared from then on is not its doing."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, Field

from tools.base import BaseTool, ToolErrorType, ToolKind, ToolResult, ToolRiskLevel, failure
from tools.description import format_declarations, short_description
from tools.registry import function_declaration

__all__ = ["ToolSearchArgs", "ToolSearchTool", "with_deferred_names"]

_MOST = 8
"""How many tools one search loads; exact names are all loaded."""
_LINE_CHARS = 100
_EMPTY = "query: it is empty; give names of tools, or words that say what you need."


class ToolSearchArgs(BaseModel):
    """What is looked for."""

    query: str = Field(description="names of tools, separated by commas, or words that say what you need")


class ToolSearchTool(BaseTool):
    """See the module."""

    name = "tool_search"
    description = (
        "Load tools that are listed here by name alone: the result says how to call them, and they are declared "
        "from then on. Search before you call one of them for the first time."
    )
    risk_level = ToolRiskLevel.LOW
    kind = ToolKind.READONLY
    category = "agent"
    args_schema = ToolSearchArgs

    def __init__(self, deferred: Callable[[], Sequence[BaseTool]]) -> None:
        self._deferred = deferred
        """The tools there are to be found at this moment."""

    def validate(self, args: Mapping[str, Any]) -> str | None:
        """Something has to be looked for."""
        return None if str(args["query"]).strip() else _EMPTY

    def display_call(self, args: Mapping[str, Any]) -> str:
        """One line."""
        return f"tool_search {args['query']}"

    async def execute(self, *, query: str) -> ToolResult:
        """The declarations of what fits; `metadata["loaded_tools"]` has their names."""
        if not query.strip():
            return failure(ToolErrorType.VALIDATION, _EMPTY)
        known = self._deferred()
        found = _named(query, known) or _fitting(query, known)
        if not found:
            there_are = ", ".join(tool.name for tool in known) or "none"
            return ToolResult(
                f"No tool fits {query!r}. To be found are: {there_are}.",
                display="found none",
                metadata={"found": 0},
            )
        told = format_declarations(
            [function_declaration(tool, await tool.describe(), await tool.parameters()) for tool in found]
        )
        names = [tool.name for tool in found]
        return ToolResult(
            f"These can be called from now on:\n\n{told}",
            display=f"found {', '.join(names)}",
            metadata={"loaded_tools": names},
        )


def with_deferred_names(declaration: Mapping[str, Any], deferred: Sequence[BaseTool]) -> dict[str, Any]:
    """The declaration of the search with the tools there are to be found, each in one line."""
    function = declaration["function"]
    lines = [f"- {tool.name}: {_one_line(tool)}".rstrip(": ") for tool in deferred]
    described = "\n".join([function["description"], "To be found:", *lines])
    return {**declaration, "function": {**function, "description": described}}


def _one_line(tool: BaseTool) -> str:
    line = " ".join(short_description(tool.description).split())
    return line if len(line) <= _LINE_CHARS else f"{line[: _LINE_CHARS - 1]}…"


def _named(query: str, known: Sequence[BaseTool]) -> list[BaseTool]:
    names = {name.casefold() for name in re.split(r"[\s,]+", query.removeprefix("select:"))}
    return [tool for tool in known if tool.name.casefold() in names]


def _fitting(query: str, known: Sequence[BaseTool]) -> list[BaseTool]:
    """Those with the most of the words first; in their own order where that is equal."""
    words = set(re.findall(r"\w+", query.casefold().replace("_", " ")))
    scored = [(sum(word in _text(tool) for word in words), tool) for tool in known]
    return [tool for score, tool in sorted(scored, key=lambda one: -one[0]) if score][:_MOST]


def _text(tool: BaseTool) -> str:
    return " ".join((tool.name, tool.display_name, short_description(tool.description), *tool.tags)).casefold()
