"""A server's tool as one of ours. What the server says of it is foreign: bounded, and believed where it warns.

Argument schemas of foreign tools: made fit to be sent to a provider, and to hold arguments against.

Names under which tools of servers are offered: what providers accept, and never two alike.

What a server answers, as text for the model. What is no text is kept as a blob, and named by its reference.
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
    "alike",
    "arguments_model",
    "complaint",
    "full_name",
    "is_of",
    "offered_name",
    "text_of",
    "usable_schema",
]

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


_LONGEST = 64
"""Longest function name that providers of the OpenAI protocol accept; characters: letters, digits, `_` and `-`."""
_HASH_CHARS = 8
_REFUSED = re.compile(r"[^A-Za-z0-9_-]")


def full_name(server: str, tool: str) -> str:
    """The name with the server's and the tool's own spelling, by which rules may speak of it."""
    return f"mcp__{server}__{tool}"


def offered_name(server: str, tool: str, taken: Container[str], *, is_marked: bool = False) -> str:
    """The name a model sees; one that had to be cut, is taken or to be marked ends in a hash of whose it is."""
    full = full_name(server, tool)
    name = _REFUSED.sub("_", full)
    if len(name) <= _LONGEST and name not in taken and not is_marked:
        return name
    whose = f"{server}\0{tool}" if is_marked else full
    mark = hashlib.sha256(whose.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{name[: _LONGEST - _HASH_CHARS - 1]}_{mark}"


def is_of(server: str, written: str) -> bool:
    """Whether a name is one that a tool of the server may have, offered or in the server's own spelling."""
    return written.startswith((full_name(server, ""), _REFUSED.sub("_", full_name(server, ""))))


def alike(servers: Sequence[str]) -> frozenset[str]:
    """Those whose tools could be taken for tools of one before them: their names are always marked."""
    names = [f"{_REFUSED.sub('_', server)}__" for server in servers]
    return frozenset(
        server
        for number, server in enumerate(servers)
        if any(_begins(names[number], before) for before in names[:number])
    )


def _begins(one: str, other: str) -> bool:
    return one.startswith(other) or other.startswith(one)


_BROKEN_IN_OTHER_WAYS = (RecursionError, ArithmeticError, TypeError, ValueError, re.error)
"""How the library fails at references that run in a circle, at addresses and patterns that are none, infinity."""
_SHOWN_PROBLEMS = 5
_SHOWN_CHARS = 200


class _ForeignArguments(BaseModel):
    model_config = ConfigDict(extra="allow")

    foreign: ClassVar[dict[str, Any]] = {}

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:  # noqa: ARG003 - the schema stands already
        return cls.foreign


def usable_schema(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema as an object with properties, which providers insist on; servers also send `{}` and less."""
    properties = schema.get("properties")
    return {
        **schema,
        "type": "object",
        "properties": dict(properties) if isinstance(properties, Mapping) else {},
    }


def arguments_model(schema: Mapping[str, Any]) -> type[BaseModel]:
    """A model that takes any arguments and declares this schema, so that they are coerced to what it asks for."""
    return type("ForeignArguments", (_ForeignArguments,), {"foreign": usable_schema(schema), "__doc__": None})


def complaint(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> str | None:
    """What is wrong with the arguments, field by field; None when nothing is, or when the schema itself is broken.

    References to other documents are not followed: reading them would reach for the network.
    """
    validator = Draft202012Validator(usable_schema(schema), registry=Registry())
    try:
        validator.check_schema(usable_schema(schema))
        problems = [
            f"{'.'.join(map(str, error.absolute_path)) or 'arguments'}: {error.message[:_SHOWN_CHARS]}"
            for error in validator.iter_errors(dict(arguments))
        ]
    except (SchemaError, Unresolvable, *_BROKEN_IN_OTHER_WAYS):
        return None
    if not problems:
        return None
    more = len(problems) - _SHOWN_PROBLEMS
    shown = "; ".join(problems[:_SHOWN_PROBLEMS]) + (f"; and {more} more" if more > 0 else "")
    return f"The arguments do not fit: {shown}. Correct them and try again."


_DESCRIPTION_CHARS = 4_000
_SHOWN_ARGUMENTS_CHARS = 80
_ERROR_CHARS = 1_000
_BEYOND_THE_SERVERS_LIMIT_S = 30
"""The server's own limit speaks first; this is the net below it."""


class McpTool(BaseTool):
    """One tool, for one call where a context is given. Arguments go to the server under its own names."""

    category = "mcp"
    in_plan_mode = False

    def __init__(self, name: str, tool: Tool, running: ManagedServer, context: ToolContext | None = None) -> None:
        super().__init__()
        hints = tool.annotations
        self.name = name
        self.original_name = tool.name
        self.rule_name = full_name(running.name, tool.name)
        self.description = _bounded(tool.description or (hints.title if hints else None) or tool.name)
        self.args_schema = arguments_model(tool.inputSchema)
        only_reads = hints is not None and hints.readOnlyHint and not hints.destructiveHint
        self.kind = ToolKind.READONLY if only_reads else ToolKind.EXECUTE
        self.risk_is_configured = running.server.risk is not None
        self.risk_level = ToolRiskLevel(running.server.risk or _declared_risk(tool))
        self.timeout_s = running.server.timeout + _BEYOND_THE_SERVERS_LIMIT_S
        self._tool = tool
        self._running = running
        self._context = context

    def validate(self, args: Mapping[str, Any]) -> str | None:
        """Holds the arguments against the server's schema, where that is one."""
        return complaint(self._tool.inputSchema, args)

    def display_call(self, args: Mapping[str, Any]) -> str:
        """Server, tool and the beginning of the arguments."""
        shown = json.dumps(args, ensure_ascii=False)
        cut = shown if len(shown) <= _SHOWN_ARGUMENTS_CHARS else f"{shown[:_SHOWN_ARGUMENTS_CHARS]}…"
        return f"{self._running.name}: {self._tool.name} {cut if args else ''}".rstrip()

    async def execute(self, **arguments: Any) -> ToolResult:
        """Call the server; its failures, refusals and time limit are error results."""
        try:
            result = await self._running.call(self._tool.name, arguments, self._progressed)
        except TimeoutError:
            limit = self._running.server.timeout
            return failure(
                ToolErrorType.TIMEOUT,
                f"{self.name} was stopped after {limit:g} seconds (mcp_servers.{self._running.name}.timeout); "
                "what it did until then is not known.",
            )
        except ServerFailed as error:
            return failure(ToolErrorType.EXECUTION, str(error))
        text = await run_in_thread(text_of, result, self._keep)
        if result.isError:
            return _reported(text)
        lines = text.count("\n") + 1 if text else 0
        return ToolResult(text, display=f"{self._running.name}: {lines} lines")

    def _keep(self, data: bytes) -> str | None:
        return store_blob(data, self._context.blobs if self._context else None)

    async def _progressed(self, progress: float, total: float | None, message: str | None) -> None:
        if self._context is not None:
            self._context.progress(McpProgress(progress, total, message or ""))


def _reported(text: str) -> ToolResult:
    """A failure in the server's words; many of them go where long results are cut."""
    if len(text) <= _ERROR_CHARS:
        return failure(ToolErrorType.EXECUTION, text or "The server reports an error and does not say which.")
    return failure(ToolErrorType.EXECUTION, f"{text[:_ERROR_CHARS]}… (whole above)", output=text)


def _declared_risk(tool: Tool) -> str:
    """A server is believed where it warns; where it says of a tool that it does no harm, the tool still asks."""
    hints = tool.annotations
    if hints is None or hints.destructiveHint:
        return "high"
    return "medium" if hints.readOnlyHint or hints.destructiveHint is False else "high"


def _bounded(text: str) -> str:
    return text if len(text) <= _DESCRIPTION_CHARS else f"{text[:_DESCRIPTION_CHARS]}…"
