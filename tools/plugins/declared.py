"""What is wrong with how somebody's tool declares itself. Knows nothing of where it came from."""

import inspect
import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel
from pydantic.errors import PydanticUserError

from tools.base import BaseTool, ToolDescription, ToolKind, ToolRiskLevel
from tools.schema import declared_parameters

__all__ = ["complaint"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What OpenAI-compatible endpoints take as the name of a function."""
_OF_SERVERS = "mcp__"


def complaint(tool: BaseTool) -> str:
    """Everything that keeps the tool from being used, in one line; empty when nothing does."""
    return "; ".join(_complaints(tool))


def _complaints(tool: BaseTool) -> Iterator[str]:
    name: Any = tool.name
    description: Any = tool.description
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f"name = {name!r}: 1 to 64 letters, digits, _ or - are expected"
    elif name.startswith(_OF_SERVERS):
        yield f"name = {name!r}: {_OF_SERVERS} begins the names of MCP tools only"
    if not isinstance(description, str | ToolDescription) or not description:
        yield f"description = {description!r}: a text or a ToolDescription is expected"
    yield from _not_among("risk_level", tool.risk_level, ToolRiskLevel)
    yield from _not_among("kind", tool.kind, ToolKind)
    yield from _sizes(tool)
    yield from _arguments(tool)


def _not_among(attribute: str, value: object, kinds: type[ToolRiskLevel] | type[ToolKind]) -> Iterator[str]:
    if value not in list(kinds):
        yield f"{attribute} = {value!r}: one of {', '.join(kinds)} is expected"


def _sizes(tool: BaseTool) -> Iterator[str]:
    seconds: Any = tool.timeout_s
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds > 0:
        yield f"timeout_s = {seconds!r}: a number above 0 is expected"
    chars: Any = tool.max_result_chars
    if chars is not None and (not isinstance(chars, int) or isinstance(chars, bool) or chars <= 0):
        yield f"max_result_chars = {chars!r}: a whole number above 0 is expected"


def _arguments(tool: BaseTool) -> Iterator[str]:
    schema: Any = tool.args_schema
    if not isinstance(schema, type) or not issubclass(schema, BaseModel):
        yield f"args_schema = {schema!r}: a pydantic model is expected"
        return
    try:
        declared_parameters(schema)
    except (PydanticUserError, TypeError, ValueError) as error:
        yield f"args_schema = {schema.__name__}: it has no JSON schema ({_first_line(error)})"
        return
    if not inspect.iscoroutinefunction(tool.execute):
        yield "execute is not declared as `async def`"
        return
    takes = inspect.signature(tool.execute).parameters
    if any(one.kind is inspect.Parameter.VAR_KEYWORD for one in takes.values()):
        return
    missing = [name for name in schema.model_fields if name not in takes]
    if missing:
        yield f"execute takes no {', '.join(missing)}, which {schema.__name__} declares"


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
