"""Plug-ins: where they are found, how they are imported, and which of their tools can be used."""

import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Any

from pydantic import BaseModel
from pydantic.errors import PydanticUserError

from tools.base import BaseTool, ToolDescription, ToolKind, ToolRiskLevel
from tools.schema import declared_parameters, schema_problem
from tools.third_party import finish

__all__ = [
    "GROUP",
    "LoadedPlugin",
    "PluginSource",
    "PluginTool",
    "declaration_problems",
    "load_plugin",
    "source_from_setting",
    "source_from_text",
    "sources_from_entry_points",
]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names of functions that OpenAI-compatible endpoints accept."""
_MCP_PREFIX = "mcp__"


def declaration_problems(tool: BaseTool) -> str:
    """Everything that is wrong with a tool's declaration, in one line; empty if nothing is."""
    return "; ".join((*_attribute_problems(tool), *_argument_problems(tool)))


def _attribute_problems(tool: BaseTool) -> Iterator[str]:
    # Plug-ins are not type-checked: every attribute may hold anything.
    name: Any = tool.name
    description: Any = tool.description
    seconds: Any = tool.timeout_s
    chars: Any = tool.max_result_chars
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        yield f"name = {name!r}: 1 to 64 letters, digits, _ or - are expected"
    elif name.startswith(_MCP_PREFIX):
        yield f"name = {name!r}: {_MCP_PREFIX} is the prefix of MCP tools"
    if not isinstance(description, str | ToolDescription) or not description:
        yield f"description = {description!r}: a text or a ToolDescription is expected"
    if tool.risk_level not in list(ToolRiskLevel):
        yield f"risk_level = {tool.risk_level!r}: one of {', '.join(ToolRiskLevel)} is expected"
    if tool.kind not in list(ToolKind):
        yield f"kind = {tool.kind!r}: one of {', '.join(ToolKind)} is expected"
    if not isinstance(seconds, int | float) or isinstance(seconds, bool) or not seconds > 0:
        yield f"timeout_s = {seconds!r}: a number above 0 is expected"
    if chars is not None and (not isinstance(chars, int) or isinstance(chars, bool) or chars <= 0):
        yield f"max_result_chars = {chars!r}: a whole number above 0 is expected"


def _argument_problems(tool: BaseTool) -> Iterator[str]:
    schema: Any = tool.args_schema
    if not isinstance(schema, type) or not issubclass(schema, BaseModel):
        yield f"args_schema = {schema!r}: a pydantic model is expected"
        return
    try:
        problem = schema_problem(declared_parameters(schema))
    except (PydanticUserError, TypeError, ValueError) as error:
        why = str(error).partition("\n")[0]
        yield f"args_schema = {schema.__name__}: it has no JSON schema ({why})"
        return
    if problem:
        yield f"args_schema = {schema.__name__}: providers would refuse its schema ({problem})"
    if not inspect.iscoroutinefunction(tool.execute):
        yield "execute is not declared as `async def`"
        return
    takes = inspect.signature(tool.execute).parameters
    missing = [name for name in schema.model_fields if name not in takes]
    if missing and not any(one.kind is inspect.Parameter.VAR_KEYWORD for one in takes.values()):
        yield f"execute takes no {', '.join(missing)}, which {schema.__name__} declares"


GROUP = "graph_agent.tools"
"""The entry-point group under which installed packages register tools."""


@dataclass(frozen=True)
class PluginSource:
    """One place that may have tools."""

    place: str
    """As shown to the user: the package and its entry point, the line of the settings, or the file."""
    load: Callable[[], object]
    """Import it; raises whatever the plug-in raises."""


def sources_from_entry_points() -> Iterator[PluginSource]:
    """The entry points of installed packages, in the same order in every process."""
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        package = f" of {point.dist.name} {point.dist.version}" if point.dist else ""
        yield PluginSource(f"entry point {point.name}{package}", point.load)


def source_from_setting(line: str) -> PluginSource:
    """A setting `module:factory`; without the factory, every tool that the module declares."""
    return PluginSource(f"tools = {line!r}", partial(_import_name, line))


def source_from_text(place: str, text: str) -> PluginSource:
    """A file that was read already: the text that was hashed and trusted runs, even if the file has changed."""
    return PluginSource(place, partial(_execute_text, place, text))


def _import_name(line: str) -> object:
    module, _, attribute = line.strip().partition(":")
    found: object = importlib.import_module(module)
    for name in filter(None, attribute.split(".")):
        found = getattr(found, name)
    return found


def _execute_text(place: str, text: str) -> ModuleType:
    name = f"graph_agent_plugin_{sha256(place.encode()).hexdigest()[:12]}"
    module = ModuleType(name)
    module.__file__ = place
    # Pydantic and dataclasses look their module up by name, to resolve annotations.
    sys.modules[name] = module
    try:
        exec(compile(text, place, "exec"), module.__dict__)  # noqa: S102 - running a file that is trusted is the point
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


@dataclass(frozen=True)
class PluginTool:
    """A usable tool of a plug-in."""

    tool: BaseTool
    """The instance that is described and checked by policy."""
    make: Callable[[], BaseTool]
    """Makes a new instance for a call; returns the same one if the plug-in provides an instance."""


@dataclass(frozen=True)
class LoadedPlugin:
    """The tools of one source."""

    tools: tuple[PluginTool, ...] = ()
    problems: tuple[str, ...] = field(default=())
    """What cannot be used and why, one line each, starting with the place."""


def load_plugin(source: PluginSource, workspace: Path) -> LoadedPlugin:
    """Import the plug-in and create its tools; raises whatever it raises."""
    tools: list[PluginTool] = []
    problems: list[str] = []
    for make in _makers(source.load(), workspace):
        tool = make()
        if wrong := declaration_problems(tool):
            problems.append(f"{source.place}: {type(tool).__name__} cannot be used: {wrong}")
        else:
            tools.append(PluginTool(tool, make))
    if not tools and not problems:
        problems.append(f"{source.place}: it has no tools")
    return LoadedPlugin(tuple(tools), tuple(problems))


def _makers(given: object, workspace: Path) -> Iterator[Callable[[], BaseTool]]:
    """A function for each tool: an instance is returned itself, a class or a factory is called each time."""
    match given:
        case BaseTool():
            yield lambda: given
        case type() if issubclass(given, BaseTool):
            yield lambda: _call_factory(given, workspace)
        case ModuleType():
            for one in _tools_in(given):
                yield from _makers(one, workspace)
        case _ if callable(given):
            yield from _factory_makers(given, workspace)
        case Iterable() if not isinstance(given, str | bytes):
            for one in given:
                yield from _makers(one, workspace)
        case _:
            raise TypeError(f"expected a tool, a tool class, a factory or a list of these, not {given!r}")


def _tools_in(module: ModuleType) -> Iterator[object]:
    """The factory `create_tools` if there is one, else every tool class that the module itself declares."""
    if hasattr(module, "create_tools"):
        yield module.create_tools
        return
    for value in list(vars(module).values()):
        is_class = isinstance(value, type) and issubclass(value, BaseTool) and value.__module__ == module.__name__
        if (is_class and value.name) or isinstance(value, BaseTool):
            yield value


def _factory_makers(factory: Callable[..., object], workspace: Path) -> Iterator[Callable[[], BaseTool]]:
    made = _call_factory(factory, workspace)
    if isinstance(made, BaseTool):
        yield lambda: _call_factory(factory, workspace)
        return
    if callable(made) and not isinstance(made, type):
        raise TypeError(f"the factory returned {made!r}; expected a tool or a list of tools")
    yield from _makers(made, workspace)


def _call_factory(factory: Callable[..., Any], workspace: Path) -> Any:
    takes = inspect.signature(factory).parameters
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in takes.values())
    made = finish(factory(workspace=workspace) if "workspace" in takes or takes_any else factory())
    if isinstance(made, BaseTool) and made.workspace is None:
        made.workspace = workspace
    return made
