import asyncio
from pathlib import Path

import pytest

from tools.base import BaseTool, ToolContext, ToolDescription, ToolKind, ToolResult
from tools.registry import (
    RegistryChange,
    ToolRegistry,
    resolve_tool_name,
    select_tools,
    unknown_tool_message,
)
from tools.schema import apply_aliases


class Looker(BaseTool):
    name = "looker"
    description = ToolDescription("Looks at stars", long="Night only.", usage_notes=("bring a coat",))
    kind = ToolKind.READONLY
    category = "sky"
    tags = ("night",)


class Painter(BaseTool):
    name = "painter"
    display_name = "Van Gogh"
    description = "Paints"
    kind = ToolKind.WRITE
    strict = True


class Planner(BaseTool):
    name = "planner"
    kind = ToolKind.WRITE
    in_plan_mode = True


class Completion(BaseTool):
    name = "attempt_completion"


class UsersCompletion(Completion):
    description = "the user's own"


class PerCall(BaseTool):
    name = "per_call"

    def __init__(self, context: ToolContext | None) -> None:
        self.context = context

    async def describe(self) -> str:
        return "computed"

    async def execute(self) -> ToolResult:
        return ToolResult("")


def _names(tools: list[BaseTool]) -> list[str]:
    return [tool.name for tool in tools]


def _filled() -> ToolRegistry:
    registry = ToolRegistry()
    registry.register_all([Looker(), Painter(), Planner()])
    return registry


def test_look_ups_find_what_was_registered() -> None:
    registry = _filled()
    looker = registry.get("looker")

    assert (registry.has("looker"), registry.has("nobody"), registry.get("nobody")) == (True, False, None)
    assert (_names(registry.all()), registry.size, len(registry)) == (["looker", "painter", "planner"], 3, 3)
    assert registry.by_category("sky") == registry.by_tag("night") == registry.read_only() == [looker]
    assert _names(registry.writing()) == ["painter", "planner"]
    found = {text: _names(registry.search(text)) for text in ("LOOK", "gogh", "stars", "coat")}
    assert found == {"LOOK": ["looker"], "gogh": ["painter"], "stars": ["looker"], "coat": []}


def test_what_is_offered_is_declared_and_nothing_hidden() -> None:
    registry = _filled()

    plan = [item["function"] for item in registry.declarations("plan")]
    shown = [item["function"] for item in registry.declarations("default", frozenset({"looker", "planner"}))]

    assert [function["name"] for function in plan] == ["looker", "planner"]
    assert plan[0]["description"] == "Looks at stars\nNight only.\nNotes:\n- bring a coat"
    assert [(function["name"], function["strict"]) for function in shown] == [("painter", True)]


@pytest.mark.parametrize("user_first", [True, False])
def test_a_users_tool_replaces_a_system_tool_whoever_comes_first(*, user_first: bool) -> None:
    registry = ToolRegistry()
    own, users = Completion(), UsersCompletion()

    if user_first:
        registry.register(users, origin="plugin")
        registry.register(own)
    else:
        registry.register(own)
        registry.register(users, origin="plugin")

    assert registry.get("attempt_completion") is users
    assert [item["function"]["description"] for item in registry.declarations()] == ["the user's own"]


async def _make_late(context: ToolContext | None) -> BaseTool:
    await asyncio.sleep(0)
    made = Looker()
    made.display_name = "described" if context is None else context.call_id
    return made


async def test_a_class_and_an_asynchronous_factory_make_a_tool_for_each_call(tmp_path: Path) -> None:
    registry, context = ToolRegistry(), ToolContext(tmp_path, call_id="c1")
    registry.register(Painter)
    registry.register_factory("looker", _make_late)

    painters = {
        registry.instance("painter", context),
        registry.instance("painter", context),
        registry.get("painter"),
    }
    late = registry.instance("looker", context)

    assert len(painters) == 3
    assert late is not None
    assert (late.display_name, registry.all()[1].display_name) == ("c1", "described")


async def test_a_registry_says_which_tool_there_is_not() -> None:
    result = await _filled().execute("lookr", {})

    assert (result.metadata["error_type"], "Did you mean looker?" in str(result.error)) == ("not_found", True)


def test_a_name_is_given_once_and_to_tools_only() -> None:
    registry = _filled()

    with pytest.raises(ValueError, match="'looker' is already registered"):
        registry.register(Looker(), origin="plugin")
    with pytest.raises(TypeError, match="has a name"):
        registry.register(BaseTool())
    assert registry.origin("looker") == "builtin"


def test_listeners_hear_of_changes_until_they_stop_and_mcp_tools_go_together() -> None:
    registry = ToolRegistry()
    heard: list[RegistryChange] = []
    stop = registry.listen(heard.append)
    of_server = Looker()
    of_server.name = "mcp__sky__look"

    registry.register_mcp_tools([of_server])
    gone = registry.unregister_mcp_tools("mcp__sky__")
    stop()
    registry.register(Painter())

    assert (gone, registry.names()) == (["mcp__sky__look"], ["painter"])
    assert [(change.name, change.what, change.origin) for change in heard] == [
        ("mcp__sky__look", "registered", "mcp"),
        ("mcp__sky__look", "unregistered", "mcp"),
    ]


async def test_a_factory_makes_one_instance_to_describe_and_one_per_call(tmp_path: object) -> None:
    registry = ToolRegistry()
    made: list[ToolContext | None] = []

    def factory(context: ToolContext | None) -> BaseTool:
        made.append(context)
        return PerCall(context)

    registry.register_factory("per_call", factory)
    before = list(made)
    context = BaseTool().context_or_default(None)
    first, second = registry.instance("per_call", context), registry.instance("per_call", context)
    declared = await registry.function_declarations()

    assert before == []
    assert first is not second
    assert made == [context, context, None]
    assert declared[0]["function"]["description"] == "computed"


class _Named(BaseTool):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name


def test_chosen_tools_keep_their_order_origin_and_way_of_being_made() -> None:
    registry, context = ToolRegistry(), ToolContext(Path("/w"))
    registry.register_factory("made", lambda _: _Named("made"))
    registry.register(_Named("b"))
    registry.register(_Named("c"))
    registry.register(_Named("mcp__a"), origin="mcp")
    chosen = select_tools(registry, {"mcp__a", "b", "made", "unknown"})
    kept = registry.get("b")
    registry.unregister("b")

    first, second = chosen.instance("made", context), chosen.instance("made", context)

    origins = [(tool.name, chosen.origin(tool.name)) for tool in chosen.all()]
    assert origins == [("made", "builtin"), ("b", "builtin"), ("mcp__a", "mcp")]
    assert (first is second, chosen.get("b") is kept) == (False, False)
    assert chosen.instance("b", context) is chosen.get("b")


_KNOWN = ["read_file", "write_file", "edit_file", "bash", "grep", "mcp__Files__Read"]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("bash", "bash"),
        (" bash\n", "bash"),
        ("Bash", "bash"),
        ("Read", "read_file"),
        ("write", "write_file"),
        ("EDIT", "edit_file"),
        ("mcp__files__read", "mcp__Files__Read"),
        ("search_files", None),
        ("", None),
    ],
)
def test_names_are_found_whatever_their_case_and_white_space(written: str, meant: str | None) -> None:
    assert resolve_tool_name(written, _KNOWN) == meant
    assert resolve_tool_name("read", ["bash"]) is None


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("bahs", "Did you mean bash?"),
        ("list_file", "Did you mean"),
        ("xyz", "'xyz'. Available tools: bash,"),
        ("search_files", "Did you mean grep?"),
        ("searchFiles", "Did you mean grep?"),
        ("run_in_terminal", "Did you mean bash?"),
        ("str_replace_editor", "Did you mean edit_file?"),
        ("read_files", "Did you mean read_file"),
    ],
)
def test_an_unknown_name_gets_near_ones_and_the_list(written: str, hint: str) -> None:
    told = unknown_tool_message(written, _KNOWN)

    assert hint in told
    assert "bash, edit_file, grep, mcp__Files__Read, read_file, write_file" in told


def test_argument_aliases_count_where_the_schema_lacks_the_name() -> None:
    aliases = {"path": "file_path"}

    assert apply_aliases({"path": "a", "x": 1}, aliases, ["file_path"]) == {"file_path": "a", "x": 1}
    assert apply_aliases({"path": "a"}, aliases, ["path", "file_path"]) == {"path": "a"}
    assert apply_aliases({"path": "a", "file_path": "b"}, aliases, ["file_path"]) == {
        "path": "a",
        "file_path": "b",
    }
