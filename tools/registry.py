"""The registered tools by name: what is offered in which mode, their declarations, and which tool a model means."""

import asyncio
import copy
import difflib
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

from tools.base import BaseTool, ToolContext, ToolDescription, ToolKind, is_tool
from tools.description import short_description
from tools.result import ToolErrorType, ToolResult, failure
from tools.running import execute as run_tool
from tools.running import parse_call
from tools.schema import InvalidArguments, declared_parameters
from tools.third_party import ToolQueryFailed, finish, query_tool_async

__all__ = [
    "SYSTEM_TOOLS",
    "TOOL_ALIASES",
    "Factory",
    "Listener",
    "Origin",
    "RegistryChange",
    "ToolRegistry",
    "function_declaration",
    "is_available_in_plan_mode",
    "keep_only",
    "resolve_tool_name",
    "select_tools",
    "unknown_tool_message",
]

Origin = Literal["builtin", "plugin", "mcp"]
Factory = Callable[[ToolContext | None], BaseTool | Awaitable[BaseTool]]

SYSTEM_TOOLS = frozenset(("attempt_completion", "new_task"))
"""Names that a plug-in may replace; all other names can be registered only once."""

TOOL_ALIASES: Mapping[str, str] = {
    "read": "read_file",
    "write": "write_file",
    "edit": "edit_file",
    "multiedit": "edit_file",
    "webfetch": "web_fetch",
    "websearch": "web_search",
    "todowrite": "todo_write",
    "task": "new_task",
}

_BY_VERB: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("search", "rg", "ripgrep", "codebase"), ("grep", "glob")),
    **dict.fromkeys(("find", "locate"), ("glob", "grep")),
    **dict.fromkeys(("list", "dir", "tree"), ("ls", "glob")),
    **dict.fromkeys(("run", "execute", "exec", "shell", "command", "terminal", "python"), ("bash",)),
    **dict.fromkeys(("cat", "view", "open", "show"), ("read_file",)),
    **dict.fromkeys(("create", "save"), ("write_file",)),
    **dict.fromkeys(("replace", "patch", "insert", "modify", "str"), ("edit_file",)),
    **dict.fromkeys(("fetch", "browse", "url", "http", "curl"), ("web_fetch",)),
}
"""Tools that a verb in the tool names of other agents stands for."""


@dataclass(frozen=True)
class RegistryChange:
    """A tool was registered or unregistered."""

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
            self.tool = self.make(None)
        return self.tool

    def make(self, context: ToolContext | None) -> BaseTool:
        assert self.factory is not None  # noqa: S101 - only asked for where there is one
        made = finish(self.factory(context))
        if not isinstance(made, BaseTool):
            raise TypeError(f"the factory made {made!r}, not a tool")
        return made


class ToolRegistry:
    """Tools by name, in the order of registration."""

    def __init__(self, *, deferred_above: int | None = None) -> None:
        self._deferred_above = deferred_above
        """With more MCP tools than this, all of them are deferred."""
        self._entries: dict[str, _Entry] = {}
        self._listeners: list[Listener] = []

    def register(self, tool: BaseTool | type[BaseTool], *, origin: Origin = "builtin") -> None:
        """Add a tool, or a class of which each call gets an instance of its own.

        Raises:
            TypeError: it is not a tool, has no name, or is a class that needs arguments.
            ValueError: the name is taken; only a plug-in may replace `attempt_completion` and `new_task`.
        """
        if isinstance(tool, type) and issubclass(tool, BaseTool):
            one = tool()
            if is_tool(one):
                self.register_factory(one.name, lambda _: tool(), origin=origin, prototype=one)
                return
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
        """Add a tool whose instances a factory, perhaps an asynchronous one, makes: one for each call.

        The factory gets None for the instance that is described and checked by policy, unless `prototype` is given.

        Raises:
            ValueError: the name is taken; see `register`.
        """
        self._add(name, _Entry(origin, prototype, factory))

    def register_mcp_tools(self, tools: Iterable[BaseTool]) -> None:
        """Add the tools of an MCP server."""
        self.register_all(tools, origin="mcp")

    def unregister_mcp_tools(self, prefix: str = "mcp__") -> list[str]:
        """Remove the MCP tools whose names start like this; returns the names."""
        names = [name for name, entry in self._entries.items() if entry.origin == "mcp" and name.startswith(prefix)]
        for name in names:
            self.unregister(name)
        return names

    def unregister(self, name: str) -> bool:
        """Remove a tool; False if there was none."""
        entry = self._entries.pop(name, None)
        if entry is None:
            return False
        self._notify(RegistryChange(name, "unregistered", entry.origin))
        return True

    def get(self, name: str) -> BaseTool | None:
        """The tool with exactly this name."""
        entry = self._entries.get(name)
        return entry.prototype() if entry else None

    def instance(self, name: str, context: ToolContext) -> BaseTool | None:
        """The tool for one call: a new instance if a factory makes it."""
        entry = self._entries.get(name)
        if entry is None:
            return None
        return entry.make(context) if entry.factory else entry.prototype()

    async def execute(
        self, name: str, arguments: Mapping[str, Any], context: ToolContext | None = None
    ) -> ToolResult:
        """Run one call without a session: find the tool, check the arguments, run it within its time limit.

        Every failure is a result. Policy does not decide about it, so the tools keep to their folders, see
        `ToolContext.has_policy`.
        """
        known = resolve_tool_name(name, self.names())
        prototype = self.get(known) if known else None
        if known is None or prototype is None:
            return failure(ToolErrorType.NOT_FOUND, unknown_tool_message(name, self.names()))
        here = prototype.context_or_default(context)
        tool = self.instance(known, here) or prototype
        try:
            given, keywords = parse_call(tool, arguments)
        except InvalidArguments as error:
            return failure(ToolErrorType.VALIDATION, str(error))
        if objection := tool.validate(given):
            return failure(ToolErrorType.VALIDATION, objection)
        return await run_tool(tool, given, here, keywords=keywords)

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

    def is_third_party(self, name: str) -> bool:
        """Whether the tool, which may have been removed, is third-party code in this process.

        Such code may block or fail: it is asked in a thread of its own.
        """
        entry = self._entries.get(name)
        return entry is None or entry.origin == "plugin"

    @property
    def size(self) -> int:
        """The number of tools."""
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
        return [
            tool
            for tool in self.all()
            if wanted in f"{tool.name}\n{tool.display_name}\n{short_description(tool.description)}".casefold()
        ]

    def read_only(self) -> list[BaseTool]:
        """Tools that only read."""
        return [tool for tool in self.all() if tool.kind == ToolKind.READONLY]

    def writing(self) -> list[BaseTool]:
        """Tools that change something, or may."""
        return [tool for tool in self.all() if tool.kind != ToolKind.READONLY]

    def deferred(self) -> list[BaseTool]:
        """Tools that are offered by name only, until a search loads them."""
        of_servers = [name for name, entry in self._entries.items() if entry.origin == "mcp"]
        is_crowded = self._deferred_above is not None and len(of_servers) > self._deferred_above
        return [tool for tool in self.all() if tool.defer or (is_crowded and tool.name in of_servers)]

    def available(self, mode: str = "default", hidden: frozenset[str] = frozenset()) -> list[BaseTool]:
        """The tools offered to a model in a mode, without the hidden ones."""
        return [
            tool
            for tool in self.all()
            if tool.name not in hidden
            and (is_available_in_plan_mode(tool) if mode == "plan" else not tool.only_in_plan_mode)
        ]

    def declarations(self, mode: str = "default", hidden: frozenset[str] = frozenset()) -> list[dict[str, Any]]:
        """OpenAI function declarations from the static descriptions and parameters."""
        return [
            function_declaration(tool, tool.description, declared_parameters(tool.args_schema))
            for tool in self.available(mode, hidden)
        ]

    async def function_declarations(
        self, mode: str = "default", hidden: frozenset[str] = frozenset()
    ) -> list[dict[str, Any]]:
        """OpenAI function declarations with descriptions and parameters computed by the tools now."""

        async def computed(tool: BaseTool) -> dict[str, Any]:
            return function_declaration(tool, await tool.describe(), await tool.parameters())

        async def answered(tool: BaseTool) -> dict[str, Any]:
            if not self.is_third_party(tool.name):
                return await computed(tool)
            try:
                return await query_tool_async(tool.name, partial(computed, tool))
            except ToolQueryFailed:
                return function_declaration(tool, tool.description, declared_parameters(tool.args_schema))

        return list(await asyncio.gather(*map(answered, self.available(mode, hidden))))

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Call the listener on each change; the returned function removes it."""
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def _add(self, name: str, entry: _Entry) -> None:
        present = self._entries.get(name)
        if present is not None:
            if name not in SYSTEM_TOOLS or {present.origin, entry.origin} != {"builtin", "plugin"}:
                raise ValueError(
                    f"A tool {name!r} is already registered ({present.origin}); "
                    f"give the {entry.origin} tool another name."
                )
            if present.origin == "plugin":
                return  # The user's tool was registered first and stays.
        self._entries[name] = entry
        self._notify(RegistryChange(name, "registered", entry.origin))

    def _notify(self, change: RegistryChange) -> None:
        for listener in tuple(self._listeners):
            listener(change)


def is_available_in_plan_mode(tool: BaseTool) -> bool:
    """Whether the tool may be used in plan mode."""
    return tool.kind == ToolKind.READONLY if tool.in_plan_mode is None else tool.in_plan_mode


def function_declaration(
    tool: BaseTool, description: str | ToolDescription, parameters: dict[str, Any]
) -> dict[str, Any]:
    """The OpenAI function declaration of a tool."""
    text = description.render() if isinstance(description, ToolDescription) else description
    function: dict[str, Any] = {"name": tool.name, "description": text, "parameters": parameters}
    if tool.strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def resolve_tool_name(written: str, known: Iterable[str]) -> str | None:
    """The tool with this name: exactly, else ignoring case and white space, else by an alias."""
    names = list(known)
    if written in names:
        return written
    plain = "".join(written.split()).casefold()
    by_plain = {name.casefold(): name for name in names}
    return by_plain.get(plain) or by_plain.get(TOOL_ALIASES.get(plain, ""))


def unknown_tool_message(written: str, known: Iterable[str]) -> str:
    """The error for a name that no tool has."""
    names, plain = sorted(known), written.strip().casefold()
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+", written)
    by_verb = ([name for name in _BY_VERB.get(word.casefold(), ()) if name in names] for word in words)
    candidates = next(filter(None, by_verb), []) or difflib.get_close_matches(plain, names, n=2, cutoff=0.6)
    if not candidates:
        parts = set(written.casefold().split("_"))
        candidates = [name for name in names if parts & set(name.split("_"))][:2]
    hint = f" Did you mean {' or '.join(candidates)}?" if candidates else ""
    return f"There is no tool {written!r}.{hint} Available tools: {', '.join(names)}."


def select_tools(registry: ToolRegistry, names: Collection[str]) -> ToolRegistry:
    """A registry with the tools of these names, in the same order.

    Tools made for each call are still made for each call. A tool that the registry holds as an instance is copied,
    so that it can be configured separately.
    """
    selected = ToolRegistry()
    for tool in registry.all():
        if tool.name in names:
            factory = partial(_instance_or_copy, registry, tool, copy.copy(tool))
            selected.register_factory(tool.name, factory, origin=registry.origin(tool.name) or "builtin")
    return selected


def keep_only(registry: ToolRegistry, allows: Callable[[str], bool]) -> None:
    """Leave in a registry only the tools with an allowed name, of those that are registered later, too."""

    def drop(name: str) -> None:
        if not allows(name):
            registry.unregister(name)

    for name in registry.names():
        drop(name)
    registry.listen(lambda change: drop(change.name) if change.what == "registered" else None)


def _instance_or_copy(
    registry: ToolRegistry, tool: BaseTool, own: BaseTool, context: ToolContext | None
) -> BaseTool:
    made = None if context is None else registry.instance(tool.name, context)
    return own if made is None or made is tool else made
