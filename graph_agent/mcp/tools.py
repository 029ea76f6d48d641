"""A server's tool as one of ours. What a server says about its tool is bounded, and only trusted where it warns.

Also the argument schema as providers accept it, the name under which the tool is offered, and results as text.
"""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any, ClassVar

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
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
    Tool,
)
from pydantic import BaseModel, ConfigDict
from referencing import Registry
from referencing.exceptions import Unresolvable

from graph_agent.mcp.server import ManagedServer, ServerFailed
from tools.base import (
    BaseTool,
    McpProgress,
    ToolContext,
    ToolErrorType,
    ToolKind,
    ToolResult,
    ToolRiskLevel,
    failure,
)
from tools.running import run_in_thread, store_blob

__all__ = [
    "McpTool",
    "ambiguous_servers",
    "arguments_model",
    "is_tool_of",
    "mcp_tool_name",
    "offered_name",
    "result_text",
    "usable_schema",
    "validate_arguments",
]

Store = Callable[[bytes], str | None]
"""Stores bytes and returns their reference; None where they cannot be stored."""


def _no_store(_: bytes) -> str | None:
    return None


def result_text(result: CallToolResult, store: Store = _no_store) -> str:
    """The blocks in order, and the structured content unless they say the same."""
    blocks = [_block_text(block, store) for block in result.content]
    structured = result.structuredContent
    if structured is not None and not _is_in_text(structured, blocks):
        blocks.append(json.dumps(structured, ensure_ascii=False, indent=2))
    return "\n".join(blocks)


def _is_in_text(structured: dict[str, Any], blocks: list[str]) -> bool:
    """Whether the text already has it, as servers do for clients that only read text."""
    values: list[Any] = []
    for block in blocks:
        try:
            values.append(json.loads(block))
        except (ValueError, RecursionError):
            values.append(None)
    whole = ("\n".join(blocks), values, *values)
    return structured in values or structured in [{"result": one} for one in whole]


def _block_text(block: ContentBlock, store: Store) -> str:
    match block:
        case TextContent(text=text):
            return text
        case ImageContent(mimeType=kind, data=data) | AudioContent(mimeType=kind, data=data):
            return _blob_text(kind, data, store)
        case ResourceLink(uri=uri, name=name, description=about):
            return f"[{name}: {uri}{f' ({about})' if about else ''}]"
        case EmbeddedResource(resource=TextResourceContents(uri=uri, text=text)):
            return f"[{uri}]\n{text}"
        case EmbeddedResource(resource=BlobResourceContents(uri=uri, blob=data)):
            return _blob_text(str(uri), data, store)
        case EmbeddedResource(resource=resource):
            return f"[{resource.uri}, not shown]"


def _blob_text(what: str, data: str, store: Store) -> str:
    try:
        raw = base64.b64decode(data)
    except (binascii.Error, ValueError):
        return f"[{what}, not shown: its data is not base64]"
    reference = store(raw)
    return f"[{what}, {len(raw)} bytes, {f'kept as {reference}' if reference else 'not shown'}]"


_MAX_NAME = 64
"""Longest function name that providers of the OpenAI protocol accept, of letters, digits, `_` and `-`."""
_HASH_LENGTH = 8
_INVALID_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")


def mcp_tool_name(server: str, tool: str) -> str:
    """The name in the server's and the tool's own spelling, which rules may use."""
    return f"mcp__{server}__{tool}"


def offered_name(server: str, tool: str, taken: Container[str], *, is_ambiguous: bool = False) -> str:
    """The name the model sees; one that is too long, taken or ambiguous ends in a hash of server and tool."""
    full = mcp_tool_name(server, tool)
    name = _INVALID_IN_NAME.sub("_", full)
    if len(name) <= _MAX_NAME and name not in taken and not is_ambiguous:
        return name
    whose = f"{server}\0{tool}" if is_ambiguous else full
    mark = hashlib.sha256(whose.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_LENGTH]
    return f"{name[: _MAX_NAME - _HASH_LENGTH - 1]}_{mark}"


def is_tool_of(server: str, written: str) -> bool:
    """Whether a tool of the server may have this name, as offered or in its own spelling."""
    return written.startswith((mcp_tool_name(server, ""), _INVALID_IN_NAME.sub("_", mcp_tool_name(server, ""))))


def ambiguous_servers(servers: Sequence[str]) -> frozenset[str]:
    """Servers whose tools could be mistaken for tools of a server before them; their names always get a hash."""
    names = [f"{_INVALID_IN_NAME.sub('_', server)}__" for server in servers]
    return frozenset(
        server
        for number, server in enumerate(servers)
        if any(names[number].startswith(one) or one.startswith(names[number]) for one in names[:number])
    )


_LIBRARY_ERRORS = (RecursionError, ArithmeticError, TypeError, ValueError, re.error)
"""How the library fails at circular references, invalid addresses and patterns, and infinity."""
_MAX_PROBLEMS = 5
_MAX_PROBLEM_CHARS = 200


class _AnyArguments(BaseModel):
    model_config = ConfigDict(extra="allow")

    declared_schema: ClassVar[dict[str, Any]] = {}

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:  # noqa: ARG003 - the schema is given
        return cls.declared_schema


_CHOICES = ("anyOf", "oneOf", "allOf")


def usable_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as an object with properties, which providers require; servers also send `{}` and less.

    Providers take no choice between objects at the root: then all properties of the choices are offered, and the
    server says what goes together.
    """
    given = schema.get("properties")
    properties = dict(given) if isinstance(given, Mapping) else {}
    for choice in (one for name in _CHOICES for one in schema.get(name) or () if isinstance(one, Mapping)):
        more = choice.get("properties")
        properties = {**(more if isinstance(more, Mapping) else {}), **properties}
    kept = {key: value for key, value in schema.items() if key not in (*_CHOICES, "not", "enum", "const")}
    return {**kept, "type": "object", "properties": properties}


def arguments_model(schema: Mapping[str, Any]) -> type[BaseModel]:
    """A model that accepts any arguments and declares this schema, so that they are coerced to it."""
    return type("McpArguments", (_AnyArguments,), {"declared_schema": usable_schema(schema), "__doc__": None})


def validate_arguments(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str | None:
    """What is wrong with the arguments, field by field; None when nothing is, or when the schema itself is broken.

    References to other documents are not followed, because reading them would use the network.
    """
    whole = {**schema, **usable_schema(schema)}
    validator = Draft202012Validator(whole, registry=Registry())
    try:
        validator.check_schema(whole)
        problems = [
            f"{'.'.join(map(str, error.absolute_path)) or 'arguments'}: {error.message[:_MAX_PROBLEM_CHARS]}"
            for error in validator.iter_errors(dict(arguments))
        ]
    except (SchemaError, Unresolvable, *_LIBRARY_ERRORS):
        return None
    if not problems:
        return None
    more = len(problems) - _MAX_PROBLEMS
    shown = "; ".join(problems[:_MAX_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")
    return f"Invalid arguments: {shown}. Correct them and try again."


_MAX_DESCRIPTION = 4_000
_MAX_ARGUMENTS = 80
_MAX_ERROR = 1_000
_EXTRA_TIMEOUT_S = 30
"""Added to the server's own time limit, which should act first."""


class McpTool(BaseTool):
    """One tool; with a context, for one call. Arguments go to the server under its own names."""

    category = "mcp"
    in_plan_mode = False

    def __init__(self, name: str, tool: Tool, server: ManagedServer, context: ToolContext | None = None) -> None:
        super().__init__()
        hints = tool.annotations
        self.name = name
        self.original_name = tool.name
        self.rule_name = mcp_tool_name(server.name, tool.name)
        description = tool.description or (hints.title if hints else None) or tool.name
        is_long = len(description) > _MAX_DESCRIPTION
        self.description = f"{description[:_MAX_DESCRIPTION]}…" if is_long else description
        self.args_schema = arguments_model(tool.inputSchema)
        only_reads = hints is not None and hints.readOnlyHint and not hints.destructiveHint
        self.kind = ToolKind.READONLY if only_reads else ToolKind.EXECUTE
        self.risk_is_configured = server.server.risk is not None
        self.risk_level = ToolRiskLevel(server.server.risk or _declared_risk(tool))
        self.timeout_s = server.server.timeout + _EXTRA_TIMEOUT_S
        self._tool = tool
        self._server = server
        self._context = context

    def validate(self, args: Mapping[str, Any]) -> str | None:
        """Validate the arguments against the server's schema."""
        return validate_arguments(self._tool.inputSchema, args)

    def display_call(self, args: Mapping[str, Any]) -> str:
        """Server, tool and the beginning of the arguments."""
        shown = json.dumps(args, ensure_ascii=False)
        cut = shown if len(shown) <= _MAX_ARGUMENTS else f"{shown[:_MAX_ARGUMENTS]}…"
        return f"{self._server.name}: {self._tool.name} {cut if args else ''}".rstrip()

    async def execute(self, **arguments: Any) -> ToolResult:
        """Call the server; its errors and its time limit become error results."""
        try:
            result = await self._server.call(self._tool.name, arguments, self._on_progress)
        except TimeoutError:
            limit = self._server.server.timeout
            return failure(
                ToolErrorType.TIMEOUT,
                f"{self.name} was stopped after {limit:g} seconds (mcp_servers.{self._server.name}.timeout). "
                "It may have taken effect: check before you repeat it.",
            )
        except ServerFailed as error:
            return failure(ToolErrorType.EXECUTION, str(error))
        text = await run_in_thread(result_text, result, self._store)
        if result.isError and len(text) > _MAX_ERROR:
            # In the output, unlike in the error, a long text is shortened and stored.
            return failure(ToolErrorType.EXECUTION, f"{text[:_MAX_ERROR]}… (full text above)", output=text)
        if result.isError:
            return failure(ToolErrorType.EXECUTION, text or "The server reported an error without a message.")
        lines = text.count("\n") + 1 if text else 0
        return ToolResult(text, display=f"{self._server.name}: {lines} lines")

    def _store(self, data: bytes) -> str | None:
        return store_blob(data, self._context.blobs if self._context else None)

    async def _on_progress(self, progress: float, total: float | None, message: str | None) -> None:
        if self._context is not None:
            self._context.progress(McpProgress(progress, total, message or ""))


def _declared_risk(tool: Tool) -> str:
    """A server is trusted where it warns; a tool that it calls harmless still asks."""
    hints = tool.annotations
    if hints is None or hints.destructiveHint:
        return "high"
    return "medium" if hints.readOnlyHint or hints.destructiveHint is False else "high"
