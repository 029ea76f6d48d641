"""Where a plug-in stands, as something that gives it when asked. Nothing is imported before that."""

import importlib
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from importlib.metadata import EntryPoint, entry_points
from types import ModuleType

__all__ = ["GROUP", "Source", "from_entry_points", "from_line", "from_text"]

GROUP = "graph_agent.tools"
"""The entry-point group under which installed packages offer tools."""


@dataclass(frozen=True)
class Source:
    """One place that may hold tools."""

    place: str
    """As the user knows it: the package and its entry point, the line of the settings, the file."""
    give: Callable[[], object]
    """Imports it; raises whatever the plug-in raises."""


def from_entry_points() -> Iterator[Source]:
    """What installed packages offer, by name; the same order in every process."""
    for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
        yield Source(_place(point), point.load)


def from_line(line: str) -> Source:
    """A line `module:factory`; without the factory, every tool that the module declares."""
    return Source(f"tools = {line!r}", partial(_named, line))


def from_text(place: str, text: str) -> Source:
    """A file that was read already: what was hashed and trusted is what runs, whatever stands there by now."""
    return Source(place, partial(_executed, place, text))


def _place(point: EntryPoint) -> str:
    package = f" of {point.dist.name} {point.dist.version}" if point.dist else ""
    return f"entry point {point.name}{package}"


def _named(line: str) -> object:
    module, _, attribute = line.strip().partition(":")
    found: object = importlib.import_module(module)
    for name in filter(None, attribute.split(".")):
        found = getattr(found, name)
    return found


def _executed(place: str, text: str) -> ModuleType:
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
