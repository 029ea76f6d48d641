"""The tools that are known, by name. It offers and finds; it neither judges nor executes."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from tools.asking import Unanswered, asked_there
from tools.base import BaseTool, ToolContext, ToolDescription, ToolKind, is_tool
from tools.description import short_of
from tools.schema import declared_parameters

__all__ = [
    "SYSTEM_TOOLS",
    "Factory",
    "Listener",
    "Origin",
    "RegistryChange",
    "ToolRegistry",
    "declaration_of",
    "is_foreign",
    "plans",
]

Origin = Literal["builtin", "plugin", "mcp"]
Factory = Callable[[ToolContext | None], BaseTool]

SYSTEM_TOOLS = frozenset(("attempt_completion", "new_task"))
"""Names a user's tool may take over; all other names are taken once."""


@dataclass(frozen=True)
class RegistryChange:
    """A tool came or went."""

    name: str
    what: Literal["registered", "unregistered"]
    origin: Origin


Listener = Callable[[RegistryChange], None]


@dataclass
class _Entry:
    origin: Origin
    tool: BaseTool | None = None
    factory: Factory | None = None

    def prototype(self) -> BaseTool:
        if self.tool is None:
            assert self.factory is not None  # noqa: S101 - an entry has one of the two
            self.tool = self.factory(None)
        return self.tool


class ToolRegistry:
    """Names to tools, in the order of registration."""

    def __init__(self, *, deferred_above: int | None = None) -> None:
        self._deferred_above = deferred_above
        """How many tools of servers are declared; if there are more, all of them are offered by name alone."""
        self._entries: dict[str, _Entry] = {}
        self._listeners: list[Listener] = []

    def register(self, tool: BaseTool, *, origin: Origin = "builtin") -> None:
        """Add a tool.

        Raises:
            TypeError: it is no tool, or has no name.
            ValueError: the name is taken; only a plug-in may replace `attempt_completion` and `new_task`.
        """
        if not is_tool(tool):
            raise TypeError(f"{tool!r} cannot be registered: a tool derives from BaseTool and has a name.")
        self._add(tool.name, _Entry(origin, tool=tool))

    def register_all(self, tools: Iterable[BaseTool], *, origin: Origin = "builtin") -> None:
        """Add several, in order."""
        for tool in tools:
            self.register(tool, origin=origin)

    def register_factory(
        self, name: str, factory: Factory, *, origin: Origin = "builtin", prototype: BaseTool | None = None
    ) -> None:
        """Add a tool that is made when first needed, and anew for each call by `instance`.

        The factory gets None for the instance that is only described and judged, where there is no prototype yet.

        Raises:
            ValueError: the name is taken; see `register`.
        """
        self._add(name, _Entry(origin, prototype, factory))

    def register_mcp_tools(self, tools: Iterable[BaseTool]) -> None:
        """Add the tools of a server."""
        self.register_all(tools, origin="mcp")

    def unregister_mcp_tools(self, prefix: str = "mcp__") -> list[str]:
        """Take off the tools of servers whose names start like this; returns the names."""
        names = [name for name, entry in self._entries.items() if entry.origin == "mcp" and name.startswith(prefix)]
        for name in names:
            self.unregister(name)
        return names

    def unregister(self, name: str) -> bool:
        """Take a tool off; False when there was none."""
        entry = self._entries.pop(name, None)
        if entry is None:
            return False
        self._tell(RegistryChange(name, "unregistered", entry.origin))
        return True

    def get(self, name: str) -> BaseTool | None:
        """The tool of exactly this name."""
        entry = self._entries.get(name)
        return entry.prototype() if entry else None

    def instance(self, name: str, context: ToolContext) -> BaseTool | None:
        """The tool for one call: fresh where a factory makes it."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        return entry.factory(context) if entry.factory else entry.prototype()

    def has(self, name: str) -> bool:
        """Whether the name is taken."""
        return name in self._entries

    def all(self) -> list[BaseTool]:
        """Every tool, in order of registration."""
        return [entry.prototype() for entry in self._entries.values()]

    def names(self) -> list[str]:
        """Every name, in order of registration."""
        return list(self._entries)

    def origin(self, name: str) -> Origin | None:
        """Where the tool came from."""
        entry = self._entries.get(name)
        return entry.origin if entry else None

    @property
    def size(self) -> int:
        """How many there are."""
        return len(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __iter__(self) -> Iterator[BaseTool]:
        return iter(self.all())

    def by_category(self, category: str) -> list[BaseTool]:
        """Tools of a category."""
        return [tool for tool in self.all() if tool.category == category]

    def by_tag(self, tag: str) -> list[BaseTool]:
        """Tools that carry a tag."""
        return [tool for tool in self.all() if tag in tool.tags]

    def search(self, text: str) -> list[BaseTool]:
        """Tools whose name, display name or short description holds the text, in any letter case."""
        wanted = text.casefold()
        return [tool for tool in self.all() if wanted in _searchable(tool)]

    def read_only(self) -> list[BaseTool]:
        """Tools that only look."""
        return [tool for tool in self.all() if tool.kind == ToolKind.READONLY]

    def writing(self) -> list[BaseTool]:
        """Tools that change something, or may."""
        return [tool for tool in self.all() if tool.kind != ToolKind.READONLY]

    def deferred(self) -> list[BaseTool]:
        """Tools that are offered by name alone until they are loaded."""
        of_servers = [name for name, entry in self._entries.items() if entry.origin == "mcp"]
        is_crowded = self._deferred_above is not None and len(of_servers) > self._deferred_above
        return [tool for tool in self.all() if tool.defer or (is_crowded and tool.name in of_servers)]

    def offered(self, mode: str = "default", hidden: frozenset[str] = frozenset()) -> list[BaseTool]:
        """What a model is offered in a mode, without the hidden names."""
        return [tool for tool in self.all() if tool.name not in hidden and (mode != "plan" or plans(tool))]

    def declarations(self, mode: str = "default", hidden: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
        """OpenAI function declarations from what the tools say without being asked."""
        return [
            declaration_of(tool, tool.description, declared_parameters(tool.args_schema))
            for tool in self.offered(mode, hidden)
        ]

    async def function_declarations(
        self, mode: str = "default", hidden: frozenset[str] = frozenset()
    ) -> list[dict[str, Any]]:
        """OpenAI function declarations with descriptions and parameters computed by the tools now."""
        return list(await asyncio.gather(*map(self._computed, self.offered(mode, hidden))))

    async def _computed(self, tool: BaseTool) -> dict[str, Any]:
        async def computed() -> dict[str, Any]:
            return declaration_of(tool, await tool.describe(), await tool.parameters())

        if not is_foreign(self.origin(tool.name)):
            return await computed()
        try:
            return await asked_there(tool.name, computed)
        except Unanswered:
            return declaration_of(tool, tool.description, declared_parameters(tool.args_schema))

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Be told of each change from now on; the returned function ends that."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def _add(self, name: str, entry: _Entry) -> None:
        standing = self._entries.get(name)
        if standing is not None:
            if not _may_share(name, standing.origin, entry.origin):
                raise ValueError(
                    f"A tool {name!r} is registered already ({standing.origin}); "
                    f"give the {entry.origin} tool another name."
                )
            if standing.origin == "plugin":
                return  # the user's tool came first and stays
        self._entries[name] = entry
        self._tell(RegistryChange(name, "registered", entry.origin))

    def _tell(self, change: RegistryChange) -> None:
        for listener in tuple(self._listeners):
            listener(change)


def is_foreign(origin: Origin | None) -> bool:
    """Whether tools from there are somebody else's code in this process."""
    return origin == "plugin"


def plans(tool: BaseTool) -> bool:
    """Whether the tool may be used while planning."""
    return tool.kind == ToolKind.READONLY if tool.in_plan_mode is None else tool.in_plan_mode


def _may_share(name: str, standing: Origin, coming: Origin) -> bool:
    return name in SYSTEM_TOOLS and {standing, coming} == {"builtin", "plugin"}


def _searchable(tool: BaseTool) -> str:
    return f"{tool.name}\n{tool.display_name}\n{short_of(tool.description)}".casefold()


def declaration_of(
    tool: BaseTool, description: str | ToolDescription, parameters: dict[str, Any]
) -> dict[str, Any]:
    """The OpenAI function declaration of a tool."""
    text = description.render() if isinstance(description, ToolDescription) else description
    function: dict[str, Any] = {"name": tool.name, "description": text, "parameters": parameters}
    if tool.strict:
        function["strict"] = True
    return {"type": "function", "function": function}
