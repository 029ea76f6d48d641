"""From what a plug-in gives to tools that can be used, and a line for each that cannot."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from tools.base import BaseTool
from tools.plugins.declared import complaint
from tools.plugins.sources import Source

__all__ = ["Found", "PluginTool", "load"]


@dataclass(frozen=True)
class PluginTool:
    """A tool of somebody else's that can be used."""

    tool: BaseTool
    """The one that is described and judged."""
    make: Callable[[], BaseTool]
    """A fresh one for a call; where the plug-in handed over a finished tool, that one."""


@dataclass(frozen=True)
class Found:
    """What one source has."""

    tools: tuple[PluginTool, ...] = ()
    problems: tuple[str, ...] = field(default=())
    """What cannot be used and why, a line each that begins with the place."""


def load(source: Source, workspace: Path) -> Found:
    """Import the plug-in and ask for its tools; what it raises comes out as it is."""
    tools: list[PluginTool] = []
    problems: list[str] = []
    for make in _makers(source.give(), workspace):
        tool = make()
        if wrong := complaint(tool):
            problems.append(f"{source.place}: {type(tool).__name__} cannot be used: {wrong}")
        else:
            tools.append(PluginTool(tool, make))
    if not tools and not problems:
        problems.append(f"{source.place}: it has no tools")
    return Found(tuple(tools), tuple(problems))


def _makers(given: object, workspace: Path) -> Iterator[Callable[[], BaseTool]]:
    """What makes each tool: a finished tool gives itself, a class or a factory is called anew."""
    match given:
        case BaseTool():
            yield lambda: given
        case type() if issubclass(given, BaseTool):
            yield lambda: _called(given, workspace)
        case ModuleType():
            for one in _declared_in(given):
                yield from _makers(one, workspace)
        case _ if callable(given):
            yield from _made_by(given, workspace)
        case Iterable() if not isinstance(given, str | bytes):
            for one in given:
                yield from _makers(one, workspace)
        case _:
            raise TypeError(f"a tool, a class of tools, a factory or a list of these is expected, not {given!r}")


def _made_by(factory: Callable[..., object], workspace: Path) -> Iterator[Callable[[], BaseTool]]:
    made = _called(factory, workspace)
    if isinstance(made, BaseTool):
        yield lambda: _called(factory, workspace)
        return
    if callable(made) and not isinstance(made, type):
        raise TypeError(f"the factory gives {made!r}; a tool or a list of tools is expected")
    yield from _makers(made, workspace)


def _declared_in(module: ModuleType) -> Iterator[object]:
    """The factory `create_tools` where there is one, else every class of tools that the module itself declares."""
    if hasattr(module, "create_tools"):
        yield module.create_tools
        return
    for value in list(vars(module).values()):
        is_class = isinstance(value, type) and issubclass(value, BaseTool) and value.__module__ == module.__name__
        if (is_class and value.name) or isinstance(value, BaseTool):
            yield value


def _called(factory: Callable[..., Any], workspace: Path) -> Any:
    takes = inspect.signature(factory).parameters
    takes_any = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in takes.values())
    made = factory(workspace=workspace) if "workspace" in takes or takes_any else factory()
    if isinstance(made, BaseTool) and made.workspace is None:
        made.workspace = workspace
    return made
