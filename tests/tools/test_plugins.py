from pathlib import Path

import pytest
from pydantic import BaseModel

from tools.base import BaseTool, ToolResult
from tools.plugins import LoadedPlugin, PluginSource, load_plugin, source_from_text


class Word(BaseModel):
    text: str


class Shout(BaseTool):
    name = "shout"
    description = "Shouts."
    args_schema = Word

    async def execute(self, *, text: str) -> ToolResult:
        return ToolResult(text.upper())


class Alone(Shout):
    name = "alone"

    def __init__(self) -> None:
        """Takes no workspace, and calls nothing of BaseTool's."""


class Nameless(Shout):
    name = ""


def _make(*, workspace: Path) -> BaseTool:
    return Shout(workspace=workspace)


def _make_two() -> list[object]:
    return [Shout, Alone()]


def _names(found: LoadedPlugin) -> list[str]:
    return [plugin.tool.name for plugin in found.tools]


def _from(given: object) -> PluginSource:
    return PluginSource("here", lambda: given)


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (Shout, ["shout"]),
        (Shout(), ["shout"]),
        (Alone, ["alone"]),
        (_make, ["shout"]),
        (_make_two, ["shout", "alone"]),
        ([Shout, Alone], ["shout", "alone"]),
    ],
)
def test_tools_classes_factories_and_lists_of_them_are_taken(
    given: object, names: list[str], tmp_path: Path
) -> None:
    found = load_plugin(_from(given), tmp_path)

    assert (_names(found), found.problems) == (names, ())
    assert {plugin.tool.workspace for plugin in found.tools} <= {tmp_path, None}


def test_a_class_gives_a_fresh_tool_for_each_call_and_a_tool_itself(tmp_path: Path) -> None:
    [fresh] = load_plugin(_from(Shout), tmp_path).tools
    one = Shout()
    [same] = load_plugin(_from(one), tmp_path).tools

    made = [fresh.make(), fresh.make()]

    assert len({id(fresh.tool), *map(id, made)}) == 3
    assert {tool.workspace for tool in made} == {tmp_path}
    assert same.make() is one


def test_a_module_gives_the_tools_it_declares_and_none_it_imports(tmp_path: Path) -> None:
    text = (
        "from tests.tools.test_plugins import Shout\n"
        "class Base(Shout):\n    name = ''\n"
        "class Whisper(Base):\n    name = 'whisper'\n"
    )

    assert _names(load_plugin(source_from_text("mine.py", text), tmp_path)) == ["whisper"]


def test_create_tools_says_what_a_module_gives(tmp_path: Path) -> None:
    text = (
        "from tests.tools.test_plugins import Shout\n"
        "class Whisper(Shout):\n    name = 'whisper'\n"
        "def create_tools(workspace):\n    return [Shout(workspace=workspace)]\n"
    )

    assert _names(load_plugin(source_from_text("mine.py", text), tmp_path)) == ["shout"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "def create_tools():\n    return 7",
            "a list of these is expected, not 7",
        ),
        ("def create_tools():\n    return create_tools", "the factory gives <function create_tools"),
    ],
)
def test_what_is_no_tool_is_told(text: str, told: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=told):
        load_plugin(source_from_text("mine.py", text), tmp_path)


def test_a_module_without_tools_is_told(tmp_path: Path) -> None:
    assert load_plugin(source_from_text("mine.py", ""), tmp_path) == LoadedPlugin(
        problems=("mine.py: it has no tools",)
    )


def test_one_bad_tool_leaves_its_neighbours(tmp_path: Path) -> None:
    found = load_plugin(_from([Nameless, Shout]), tmp_path)

    assert _names(found) == ["shout"]
    assert found.problems == (
        "here: Nameless cannot be used: name = '': 1 to 64 letters, digits, _ or - are expected",
    )
