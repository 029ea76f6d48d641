import pytest

from tools.base import BaseTool, ToolContext, ToolDescription, ToolKind, ToolResult
from tools.registry import RegistryChange, ToolRegistry


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


@pytest.mark.parametrize(
    ("text", "found"), [("LOOK", ["looker"]), ("gogh", ["painter"]), ("stars", ["looker"]), ("coat", [])]
)
def test_search_looks_at_name_display_name_and_short_description(text: str, found: list[str]) -> None:
    assert _names(_filled().search(text)) == found


def test_plan_mode_offers_read_only_tools_and_those_marked_for_it() -> None:
    registry = _filled()

    offered = [item["function"]["name"] for item in registry.declarations("plan")]

    assert offered == ["looker", "planner"]


def test_hidden_tools_are_not_declared() -> None:
    declared = _filled().declarations("default", frozenset({"looker", "planner"}))

    assert [item["function"]["name"] for item in declared] == ["painter"]
    assert declared[0]["function"]["strict"] is True


def test_a_description_in_parts_is_rendered_into_one_text() -> None:
    looker = _filled().declarations()[0]["function"]

    assert looker["description"] == "Looks at stars\nNight only.\nNotes:\n- bring a coat"


def test_a_name_is_given_once() -> None:
    registry = _filled()

    with pytest.raises(ValueError, match="'looker' is registered already"):
        registry.register(Looker(), origin="plugin")

    assert registry.origin("looker") == "builtin"


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


def test_only_named_tools_can_be_registered() -> None:
    with pytest.raises(TypeError, match="has a name"):
        ToolRegistry().register(BaseTool())


def test_listeners_hear_of_changes_until_they_stop() -> None:
    registry = ToolRegistry()
    heard: list[RegistryChange] = []
    stop = registry.listen(heard.append)

    registry.register(Looker(), origin="plugin")
    registry.unregister("looker")
    stop()
    registry.register(Painter())

    assert heard == [
        RegistryChange("looker", "registered", "plugin"),
        RegistryChange("looker", "unregistered", "plugin"),
    ]


def test_mcp_tools_come_and_go_together() -> None:
    registry = _filled()
    ours = Looker()
    ours.name = "mcp__sky__look"
    registry.register_mcp_tools([ours])

    gone = registry.unregister_mcp_tools("mcp__sky__")

    assert gone == ["mcp__sky__look"]
    assert registry.size == 3


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
