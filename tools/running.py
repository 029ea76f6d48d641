"""Running one validated call of a tool: arguments, context, time limit, bugs as error results, long output."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ParamSpec, TypeVar

from tools.base import BaseTool, BlobStore, Target, ToolContext
from tools.result import FileEffect, Preview, ToolErrorType, ToolResult, failure, report_bug
from tools.schema import InvalidArguments, apply_aliases, context_keyword, parse_arguments, to_keywords
from tools.third_party import ToolQueryFailed, ToolThread, query_tool

__all__ = [
    "CallProfile",
    "execute",
    "head_and_tail",
    "limit_result",
    "normalize_arguments",
    "parse_call",
    "predict_effect",
    "preview",
    "run_in_thread",
    "store_blob",
]

P = ParamSpec("P")
R = TypeVar("R")

_log = logging.getLogger(__name__)


def normalize_arguments(tool: BaseTool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The given arguments as they will run, as JSON values: aliases resolved, coerced, validated.

    Raises:
        InvalidArguments: they are unusable.
    """
    return parse_call(tool, arguments)[0]


def parse_call(tool: BaseTool, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arguments as `normalize_arguments` returns them, and as `execute` of the tool takes them.

    Raises:
        InvalidArguments: they are unusable.
    """
    renamed = apply_aliases(arguments, tool.argument_aliases, tool.args_schema.model_fields)
    parsed = parse_arguments(tool.args_schema, renamed)
    return parsed.model_dump(mode="json", exclude_unset=True), to_keywords(parsed)


async def execute(
    tool: BaseTool,
    arguments: Mapping[str, Any],
    context: ToolContext,
    *,
    reraise: tuple[type[Exception], ...] = (),
    tool_thread: ToolThread | None = None,
    keywords: Mapping[str, Any] | None = None,
) -> ToolResult:
    """Run the tool. Whatever it raises, except `reraise`, becomes an error result.

    A third-party tool, which may block the event loop, is run in a `tool_thread`.

    Raises:
        InvalidArguments: the arguments are unusable.
    """
    try:
        given = await _keywords(tool, arguments, context, tool_thread, keywords)
    except ToolQueryFailed as error:
        return failure(ToolErrorType.EXECUTION, str(error))
    # Ctrl-C, and the end of a coroutine that nobody awaits any more, cannot be told from the tool's own.
    stops: tuple[type[BaseException], ...] = (KeyboardInterrupt, GeneratorExit, *reraise)
    seconds = tool.timeout_s if tool.ends_in_time else min(tool.timeout_s, context.limits.call_s or tool.timeout_s)
    try:
        async with asyncio.timeout(seconds) as limit:
            # The arguments are checked: a method of a class is called without the check that it has for others.
            method = getattr(tool.execute, "__wrapped__", None)
            run = partial(tool.execute, **given) if method is None else partial(method, tool, **given)
            return _require_result(await (tool_thread.run(run) if tool_thread else run()))
    except stops:
        context.cancellation.set()
        raise
    except asyncio.CancelledError as error:
        context.cancellation.set()
        task = asyncio.current_task()
        if task is not None and task.cancelling() > 0:
            raise
        return report_bug(tool.name, error)  # The tool raised it without being cancelled.
    except BaseException as error:  # noqa: BLE001 - the one boundary between a tool's bugs and the run
        context.cancellation.set()
        if not (isinstance(error, TimeoutError) and limit.expired()):
            return report_bug(tool.name, error)
        setting = "" if seconds == tool.timeout_s else " (setting tool_timeout)"
        message = f"{tool.name} was stopped after {seconds:g} seconds{setting}; ask for less at once."
        if tool_thread is not None and tool_thread.is_still_running:
            message = (
                f"{tool.name} was told to stop after {seconds:g} seconds{setting} but is still running; "
                "what it still does is not known."
            )
        return failure(ToolErrorType.TIMEOUT, message)


async def _keywords(
    tool: BaseTool,
    arguments: Mapping[str, Any],
    context: ToolContext,
    tool_thread: ToolThread | None,
    parsed: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """The keywords for `execute`; a schema may have validators, which are the tool's own code."""
    parse = partial(parse_arguments, tool.args_schema, arguments)
    if parsed is not None:
        keywords = dict(parsed)
    elif tool_thread:
        keywords = to_keywords(await query_tool(tool.name, parse, reraise=(InvalidArguments,)))
    else:
        keywords = to_keywords(parse())
    keyword = context_keyword(tool.args_schema)
    if _takes(keyword, tool.execute):
        keywords[keyword] = tool_thread.context(context) if tool_thread else context
    return keywords


def _require_result(result: object) -> ToolResult:
    if not isinstance(result, ToolResult):
        raise TypeError(f"execute must return a ToolResult, not {type(result).__name__}")
    given = {"output": (result.output, str), "display": (result.display, str), "metadata": (result.metadata, dict)}
    for field, (value, kind) in {**given, "error": (result.error, str | None)}.items():
        if not isinstance(value, kind):
            raise TypeError(f"the {field} of a ToolResult cannot be {type(value).__name__}")
    return result


async def preview(tool: BaseTool, arguments: Mapping[str, Any], context: ToolContext) -> Preview | None:
    """The tool's preview; it gets the context if it takes one."""
    extra = (context,) if _takes("context", tool.preview) else ()
    return await tool.preview(dict(arguments), *extra)


async def predict_effect(tool: BaseTool, arguments: Mapping[str, Any], context: ToolContext) -> FileEffect | None:
    """The effect the tool predicts; it gets the context if it takes one."""
    extra = (context,) if _takes("context", tool.predict_effect) else ()
    return await tool.predict_effect(dict(arguments), *extra)


def _takes(keyword: str, function: Any) -> bool:
    return keyword in inspect.signature(function).parameters


async def run_in_thread(work: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """Run short blocking work in a thread.

    A thread cannot be stopped. So a cancellation is deferred until the work has ended: once CancelledError is
    raised, no write of this call can still happen.
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
            task.exception()  # Retrieved, so that asyncio does not report it as never retrieved.
        raise cancelled
    return task.result()


def store_blob(data: bytes, blobs: BlobStore | None) -> str | None:
    """The reference under which the data can be read later; None if it cannot be stored, which fails no call."""
    if blobs is None:
        return None
    try:
        return blobs.put(data)
    except OSError:
        _log.warning("an output of %d bytes could not be stored", len(data), exc_info=True)
        return None


def head_and_tail(text: str, limit: int, note: str) -> str:
    """The beginning and the end of a text with a note between; whole lines if the text has lines."""
    head = text[: limit * 2 // 3]
    tail = text[len(text) - limit // 3 :]
    head = head[: head.rfind("\n") + 1] or head
    first_break = tail.find("\n") + 1
    tail = tail[first_break:] if 0 < first_break < len(tail) else tail
    return f"{head.rstrip(chr(10))}\n[… {note} …]\n{tail}"


def limit_result(result: ToolResult, limit: int, blobs: BlobStore | None) -> ToolResult:
    """The result with at most about `limit` characters of output; the rest can be read through its reference."""
    size = len(result.output)
    if size <= limit:
        return result
    reference = store_blob(result.output.encode("utf-8", "replace"), blobs)
    metadata = {**result.metadata, "truncated": True, "full_chars": size}
    how = "narrow the call"
    if reference:
        metadata["blob"] = reference
        how = f'read the rest with read_file(file_path="{reference}", offset=..., limit=...)'
    lines = result.output.count("\n") + 1
    note = f"left out here: the whole output has {size} characters in {lines} lines; {how}"
    return replace(result, output=head_and_tail(result.output, limit, note), metadata=metadata)


_DECLARED = (
    "name", "display_name", "original_name", "rule_name", "kind", "in_plan_mode", "risk_level",
    "risk_is_configured", "requires_input", "resumable", "workspace",
)  # fmt: skip


def _recorded(method: str) -> Any:
    """A method that returns what the tool answered, whatever arguments it is given."""
    return lambda profile, _: profile.answers[method]


class CallProfile(BaseTool):
    """What a third-party tool answered about one call: it is asked once, and judged by these answers."""

    validate = _recorded("validate")
    is_read_only = _recorded("is_read_only")
    is_concurrency_safe = _recorded("is_concurrency_safe")
    targets = _recorded("targets")
    signature = _recorded("signature")
    suggest_rule = _recorded("suggest_rule")
    display_call = _recorded("display_call")

    def __init__(self, tool: BaseTool, arguments: Mapping[str, Any]) -> None:
        """Ask for all of it, which runs the tool's own code; nothing but `validate` if that objects.

        Raises:
            InvalidArguments: they are unusable.
        """
        for attribute in _DECLARED:
            setattr(self, attribute, getattr(tool, attribute))
        args = self.arguments = normalize_arguments(tool, arguments)
        problem = tool.validate(args)
        self.answers: dict[str, Any] = {"validate": None if problem is None else str(problem)}
        if problem:
            return
        targets = list(tool.targets(args))
        for target in targets:
            # Anything else would be passed over without a policy check.
            if not isinstance(target, Target):
                raise TypeError(f"targets cannot hold {type(target).__name__}")
        self.answers |= {
            "is_read_only": bool(tool.is_read_only(args)),
            "is_concurrency_safe": bool(tool.is_concurrency_safe(args)),
            "targets": targets,
            "signature": str(tool.signature(args)),
            "suggest_rule": str(tool.suggest_rule(args)),
            "display_call": str(tool.display_call(args)),
        }
