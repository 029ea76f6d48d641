"""From what a plug-in gives to tools that can be used; its bugs become one line each and break nothing."""

import contextlib
import inspect
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from tools.base import BaseTool
from tools.plugins.declared import complaint
from tools.plugins.sources import Source

__all__ = ["Found", "PluginTool", "load"]

_log = logging.getLogger(__name__)

_PATIENCE_S = 10.0
"""How long a plug-in may take until it has given its tools; one that hangs would keep the agent from starting."""


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
    """Import the plug-in and ask for its tools. What it prints goes to stderr."""
    found: list[Found] = []
    loading = threading.Thread(target=lambda: found.append(_load(source, workspace)), daemon=True)
    loading.start()
    loading.join(_PATIENCE_S)
    if not found:
        return Found(problems=(f"{source.place}: it did not give its tools within {_PATIENCE_S:g} s",))
    return found[0]


def _load(source: Source, workspace: Path) -> Found:
    tools: list[PluginTool] = []
    problems: list[str] = []
    try:
        with contextlib.redirect_stdout(sys.stderr):
            for make in _makers(source.give(), workspace):
                tool = make()
                if wrong := complaint(tool):
                    problems.append(f"{source.place}: {type(tool).__name__} cannot be used: {wrong}")
                else:
                    tools.append(PluginTool(tool, make))
        if not tools and not problems:
            problems.append(f"{source.place}: it has no tools")
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the one boundary between plug-ins' bugs and the start
        # Below the level that reaches a terminal where no log is set up: the line tells the user what matters.
        _log.info("a plug-in cannot be used: %s", source.place, exc_info=True)
        problems.append(f"{source.place}: {type(error).__name__}: {_one_line(error)}")
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


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or "it says no more"
