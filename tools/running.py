"""Executing one validated call: the context where it is declared, the time limit, and bugs as error results.

The one way from asynchronous code to blocking work. Cancelling waits for the work: nothing goes on unseen.

Results cut to what a model can take in: head, tail, the size, and how to read the rest.

A tool of others as it answered about one call: it is asked once, and judged by what it said.
"""

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ParamSpec, TypeVar

from tools.base import BaseTool, Target
from tools.context import BlobStore, ToolContext
from tools.registry import apply_aliases
from tools.result import FileEffect, Preview, ToolErrorType, ToolResult, failure
from tools.schema import InvalidArguments, parse_arguments, to_keywords
from tools.third_party import ToolQueryFailed, ToolThread, error_text, query_tool

__all__ = [
    "CallProfile",
    "execute",
    "head_and_tail",
    "limit_result",
    "normalize_arguments",
    "predict_effect",
    "preview",
    "run_in_thread",
    "store_blob",
]

_log = logging.getLogger(__name__)


def normalize_arguments(tool: BaseTool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as they will run, as JSON values: renamed, coerced, validated; only those that were given.

    Raises:
        BadArguments: they are unusable.
    """
    renamed = apply_aliases(arguments, tool.argument_aliases, tool.args_schema.model_fields)
    return parse_arguments(tool.args_schema, renamed).model_dump(mode="json", exclude_unset=True)


async def execute(
    tool: BaseTool,
    arguments: Mapping[str, Any],
    context: ToolContext,
    *,
    reraise: tuple[type[Exception], ...] = (),
    tool_thread: ToolThread | None = None,
) -> ToolResult:
    """Run the tool. Whatever it raises of its own, except what is `passing`, becomes an error result.

    A tool that is not trusted to leave the loop alone is run `aside`.

    Raises:
        BadArguments: the arguments are unusable.
    """
    try:
        keywords = await _keywords(tool, arguments, context, tool_thread)
    except ToolQueryFailed as error:
        return failure(ToolErrorType.EXECUTION, str(error))
    # Ctrl-C, and the end of a coroutine that nobody awaits any more, cannot be told from the tool's own.
    stops: tuple[type[BaseException], ...] = (KeyboardInterrupt, GeneratorExit, *reraise)
    try:
        async with asyncio.timeout(tool.timeout_s) as limit:
            run = partial(tool.execute, **keywords)
            return _required(await (tool_thread.run(run) if tool_thread else run()))
    except stops:
        context.cancellation.set()
        raise
    except asyncio.CancelledError as error:
        context.cancellation.set()
        if _is_cancelled():
            raise
        return _broken(tool, error)
    except BaseException as error:  # noqa: BLE001 - the one boundary between a tool's bugs and the run
        context.cancellation.set()
        if isinstance(error, TimeoutError) and limit.expired():
            return _late(tool, is_still_running=tool_thread is not None and tool_thread.is_still_running)
        return _broken(tool, error)


async def _keywords(
    tool: BaseTool, arguments: Mapping[str, Any], context: ToolContext, tool_thread: ToolThread | None
) -> dict[str, Any]:
    """What `execute` is called with; a schema may have validators, which are the tool's own code."""
    parse = partial(parse_arguments, tool.args_schema, arguments)
    keywords = to_keywords(
        await query_tool(tool.name, parse, reraise=(InvalidArguments,)) if tool_thread else parse()
    )
    # A tool whose schema has an argument `context` gets its surroundings under the other name.
    keyword = "tool_context" if "context" in tool.args_schema.model_fields else "context"
    if _declares(keyword, tool.execute):
        keywords[keyword] = tool_thread.context(context) if tool_thread else context
    return keywords


def _late(tool: BaseTool, *, is_still_running: bool) -> ToolResult:
    limit = f"after {tool.timeout_s:g} seconds"
    if is_still_running:
        told = f"{tool.name} was told to stop {limit} and did not; it goes on, and what it still does is not known."
    else:
        told = f"{tool.name} was stopped {limit}; ask for less at once."
    return failure(ToolErrorType.TIMEOUT, told)


def _broken(tool: BaseTool, error: BaseException) -> ToolResult:
    _log.error("tool %s failed", tool.name, exc_info=error)
    told = f"{type(error).__name__}: {error_text(error)}"
    return failure(ToolErrorType.UNKNOWN, f"{tool.name} failed inside: {told}. What it did until then stays done.")


def _is_cancelled() -> bool:
    """Whether somebody asked for it: a tool may raise the same without."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def preview(tool: BaseTool, arguments: Mapping[str, Any], context: ToolContext) -> Preview | None:
    """The tool's preview, its context passed where declared."""
    if _declares("context", tool.preview):
        return await tool.preview(dict(arguments), context)
    return await tool.preview(dict(arguments))


async def predict_effect(tool: BaseTool, arguments: Mapping[str, Any], context: ToolContext) -> FileEffect | None:
    """What the tool foresees, its context passed where declared."""
    if _declares("context", tool.predict_effect):
        return await tool.predict_effect(dict(arguments), context)
    return await tool.predict_effect(dict(arguments))


def _required(result: object) -> ToolResult:
    if not isinstance(result, ToolResult):
        raise TypeError(f"execute must return a ToolResult, not {type(result).__name__}")
    given = {"output": (result.output, str), "display": (result.display, str), "metadata": (result.metadata, dict)}
    for field, (value, kind) in {**given, "error": (result.error, str | None)}.items():
        if not isinstance(value, kind):
            raise TypeError(f"the {field} of a ToolResult cannot be {type(value).__name__}")
    return result


def _declares(keyword: str, function: Any) -> bool:
    return keyword in inspect.signature(function).parameters


P = ParamSpec("P")
R = TypeVar("R")


async def run_in_thread(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run short blocking work in a thread.

    A thread cannot be stopped. So a cancellation is held back until the work has ended: once CancelledError is out,
    no write of this call can still happen.
    """
    task = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as stop:
            cancelled = stop
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # looked at, so that it is not reported as forgotten
        raise cancelled
    return task.result()


def store_blob(data: bytes, blobs: BlobStore | None) -> str | None:
    """The reference under which the data can be read later; None when it cannot be stored, which fails no call."""
    if blobs is None:
        return None
    try:
        return blobs.put(data)
    except OSError:
        _log.warning("an output of %d bytes could not be stored", len(data), exc_info=True)
        return None


def head_and_tail(text: str, limit: int, note: str) -> str:
    """The beginning and the end of a text with a note between; whole lines where the text has lines."""
    head = text[: limit * 2 // 3]
    tail = text[len(text) - limit // 3 :]
    head = head[: head.rfind("\n") + 1] or head
    first_break = tail.find("\n") + 1
    tail = tail[first_break:] if 0 < first_break < len(tail) else tail
    return f"{head.rstrip(chr(10))}\n[… {note} …]\n{tail}"


def limit_result(result: ToolResult, limit: int, blobs: BlobStore | None) -> ToolResult:
    """The result with an output of bounded length; what is left out can be read through its reference."""
    size = len(result.output)
    if size <= limit:
        return result
    reference = store_blob(result.output.encode("utf-8", "replace"), blobs)
    how = (
        f'read the rest with read_file(file_path="{reference}", offset=..., limit=...)'
        if reference
        else "narrow the call"
    )
    lines = result.output.count("\n") + 1
    note = f"left out here: the whole output has {size} characters in {lines} lines; {how}"
    metadata = {**result.metadata, "truncated": True, "full_chars": size}
    if reference:
        metadata["blob"] = reference
    return replace(result, output=head_and_tail(result.output, limit, note), metadata=metadata)


class CallProfile(BaseTool):
    """What a tool says of these arguments, whatever arguments its methods are given then."""

    def __init__(self, tool: BaseTool, arguments: Mapping[str, Any]) -> None:
        """Ask all of it, which runs the tool's own code.

        Raises:
            BadArguments: they are unusable.
        """
        super().__init__(workspace=tool.workspace)
        self.name, self.display_name = tool.name, tool.display_name
        self.kind, self.in_plan_mode = tool.kind, tool.in_plan_mode
        self.risk_level, self.risk_is_configured = tool.risk_level, tool.risk_is_configured
        self.original_name, self.rule_name = tool.original_name, tool.rule_name
        self.requires_input, self.goes_on = tool.requires_input, tool.goes_on
        self.arguments = normalize_arguments(tool, arguments)
        self._objection = tool.validate(self.arguments)
        if self._objection is None or self._objection == "":
            self._only_reads = bool(tool.is_read_only(self.arguments))
            self._may_run_beside = bool(tool.is_concurrency_safe(self.arguments))
            self._targets = _required_foretold(tool.targets(self.arguments))
            self._signature = str(tool.signature(self.arguments))
            self._rule = str(tool.suggest_rule(self.arguments))
            self._display = str(tool.display_call(self.arguments))

    def validate(self, args: Mapping[str, Any]) -> str | None:  # noqa: ARG002 - it was asked about these
        """Its objection; where it has one, it was asked nothing else."""
        return None if self._objection is None else str(self._objection)

    def is_read_only(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - it was asked about these
        """See `BaseTool`."""
        return self._only_reads

    def is_concurrency_safe(self, args: Mapping[str, Any]) -> bool:  # noqa: ARG002 - it was asked about these
        """See `BaseTool`."""
        return self._may_run_beside

    def targets(self, args: Mapping[str, Any]) -> list[Target]:  # noqa: ARG002 - it was asked about these
        """See `BaseTool`."""
        return self._targets

    def signature(self, args: Mapping[str, Any]) -> str:  # noqa: ARG002 - it was asked about these
        """See `BaseTool`."""
        return self._signature

    def suggest_rule(self, args: Mapping[str, Any]) -> str:  # noqa: ARG002 - it was asked about these
        """See `BaseTool`."""
        return self._rule

    def display_call(self, args: Mapping[str, Any]) -> str:  # noqa: ARG002 - it was asked about these
        """See `BaseTool`."""
        return self._display


def _required_foretold(targets: list[Target]) -> list[Target]:
    """The targets, if they are some: what is none would be passed over, and not judged."""
    for target in targets:
        if not isinstance(target, Target):
            raise TypeError(f"targets cannot hold {type(target).__name__}")
    return list(targets)
