"""Executing one validated call: the context where it is declared, the time limit, and bugs as error results."""

import asyncio
import inspect
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

from tools.aside import Aside
from tools.asking import Unanswered, asked, said
from tools.base import BaseTool
from tools.coercion import BadArguments, as_keywords, parse_arguments
from tools.context import ToolContext
from tools.finding import renamed_arguments
from tools.kinds import ToolErrorType
from tools.result import FileEffect, Preview, ToolResult, failure

__all__ = ["execute", "foresee", "parsed", "preview"]

_log = logging.getLogger(__name__)


def parsed(tool: BaseTool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments as they will run, as JSON values: renamed, coerced, validated; only those that were given.

    Raises:
        BadArguments: they are unusable.
    """
    renamed = renamed_arguments(arguments, tool.argument_aliases, tool.args_schema.model_fields)
    return parse_arguments(tool.args_schema, renamed).model_dump(mode="json", exclude_unset=True)


async def execute(
    tool: BaseTool,
    arguments: Mapping[str, Any],
    context: ToolContext,
    *,
    passing: tuple[type[Exception], ...] = (),
    aside: Aside | None = None,
) -> ToolResult:
    """Run the tool. Whatever it raises of its own, except what is `passing`, becomes an error result.

    A tool that is not trusted to leave the loop alone is run `aside`.

    Raises:
        BadArguments: the arguments are unusable.
    """
    try:
        keywords = await _keywords(tool, arguments, context, aside)
    except Unanswered as error:
        return failure(ToolErrorType.EXECUTION, str(error))
    # Ctrl-C, and the end of a coroutine that nobody awaits any more, cannot be told from the tool's own.
    stops: tuple[type[BaseException], ...] = (KeyboardInterrupt, GeneratorExit, *passing)
    try:
        async with asyncio.timeout(tool.timeout_s) as limit:
            run = partial(tool.execute, **keywords)
            return _required(await (aside.run(run) if aside else run()))
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
            return _late(tool, goes_on=aside is not None and aside.goes_on)
        return _broken(tool, error)


async def _keywords(
    tool: BaseTool, arguments: Mapping[str, Any], context: ToolContext, aside: Aside | None
) -> dict[str, Any]:
    """What `execute` is called with; a schema may have validators, which are the tool's own code."""
    parse = partial(parse_arguments, tool.args_schema, arguments)
    keywords = as_keywords(await asked(tool.name, parse, passing=(BadArguments,)) if aside else parse())
    # A tool whose schema has an argument `context` gets its surroundings under the other name.
    keyword = "tool_context" if "context" in tool.args_schema.model_fields else "context"
    if _declares(keyword, tool.execute):
        keywords[keyword] = aside.context(context) if aside else context
    return keywords


def _late(tool: BaseTool, *, goes_on: bool) -> ToolResult:
    limit = f"after {tool.timeout_s:g} seconds"
    if goes_on:
        told = f"{tool.name} was told to stop {limit} and did not; it goes on, and what it still does is not known."
    else:
        told = f"{tool.name} was stopped {limit}; ask for less at once."
    return failure(ToolErrorType.TIMEOUT, told)


def _broken(tool: BaseTool, error: BaseException) -> ToolResult:
    _log.error("tool %s failed", tool.name, exc_info=error)
    told = f"{type(error).__name__}: {said(error)}"
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


async def foresee(tool: BaseTool, arguments: Mapping[str, Any], context: ToolContext) -> FileEffect | None:
    """What the tool foresees, its context passed where declared."""
    if _declares("context", tool.foresee):
        return await tool.foresee(dict(arguments), context)
    return await tool.foresee(dict(arguments))


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
