import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from tests.fakes.tool_ports import ToolEnvironment
from tools.base import BaseTool, ToolResult
from tools.plugins import (
    LoadedPlugin,
    PluginSource,
    declaration_problems,
    load_plugin,
    source_from_setting,
    source_from_text,
    sources_from_entry_points,
)
from tools.running import execute


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
    class Nameless(Shout):
        name = ""

    fresh, nothing = load_plugin(_from([Shout, Nameless]), tmp_path), "def create_tools():\n    return "
    [one], tool = fresh.tools, Shout()
    [same] = load_plugin(_from(tool), tmp_path).tools
    made = [one.make(), one.make()]

    assert len({id(one.tool), *map(id, made)}) == 3
    assert ({new.workspace for new in made}, same.make() is tool) == ({tmp_path}, True)
    problem = "here: Nameless cannot be used: name = '': 1 to 64 letters, digits, _ or - are expected"
    assert fresh.problems == (problem,)
    with pytest.raises(TypeError, match="expected a tool, a tool class, a factory or a list of these, not 7"):
        load_plugin(source_from_text("mine.py", f"{nothing}7"), tmp_path)
    with pytest.raises(TypeError, match="the factory returned <function create_tools"):
        load_plugin(source_from_text("mine.py", f"{nothing}create_tools"), tmp_path)


@pytest.mark.parametrize(
    ("more", "names"),
    [
        ("", ["whisper"]),
        ("def create_tools(workspace):\n    return [Shout(workspace=workspace)]\n", ["shout"]),
    ],
    ids=["declared", "create_tools"],
)
def test_a_module_gives_the_tools_it_declares_and_none_it_imports(
    tmp_path: Path, more: str, names: list[str]
) -> None:
    text = (
        "from tests.tools.test_plugins import Shout\n"
        "class Base(Shout):\n    name = ''\n"
        "class Whisper(Base):\n    name = 'whisper'\n"
    )

    assert _names(load_plugin(source_from_text("mine.py", text + more), tmp_path)) == names
    assert load_plugin(source_from_text("mine.py", ""), tmp_path).problems == ("mine.py: it has no tools",)


class Opaque:
    pass


class Odd(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    it: Opaque


@pytest.mark.parametrize(
    ("attribute", "value", "problem"),
    [
        ("name", "two words", "name = 'two words': 1 to 64 letters, digits, _ or - are expected"),
        ("name", 7, "name = 7: 1 to 64 letters, digits, _ or - are expected"),
        ("name", "x" * 65, f"name = {'x' * 65!r}: 1 to 64 letters, digits, _ or - are expected"),
        ("name", "mcp__a__b", "name = 'mcp__a__b': mcp__ is the prefix of MCP tools"),
        ("description", "", "description = '': a text or a ToolDescription is expected"),
        ("risk_level", "extreme", "risk_level = 'extreme': one of low, medium, high is expected"),
        ("kind", None, "kind = None: one of readonly, write, execute is expected"),
        ("timeout_s", "1", "timeout_s = '1': a number above 0 is expected"),
        ("max_result_chars", 0, "max_result_chars = 0: a whole number above 0 is expected"),
        ("max_result_chars", 9.5, "max_result_chars = 9.5: a whole number above 0 is expected"),
        ("args_schema", {"text": "str"}, "args_schema = {'text': 'str'}: a pydantic model is expected"),
    ],
)
def test_each_wrong_attribute_is_named_with_what_is_expected(attribute: str, value: object, problem: str) -> None:
    tool = Shout()
    setattr(tool, attribute, value)

    assert declaration_problems(tool) == problem


class Blocking(Shout):
    def execute(self, *, text: str) -> ToolResult:  # type: ignore[override]  # what is reported
        return ToolResult(text)


class Deaf(Shout):
    async def execute(self) -> ToolResult:  # type: ignore[override]  # what is reported
        return ToolResult("")


class Anything(Shout):
    async def execute(self, **arguments: Any) -> ToolResult:
        return ToolResult(str(arguments))


class Strange(Anything):
    args_schema = Odd  # type: ignore[assignment]  # what is reported


@pytest.mark.parametrize(
    ("tool", "problem"),
    [
        (Shout, ""),
        (Anything, ""),
        (Deaf, "execute takes no text, which Word declares"),
        (Blocking, "execute is not declared as `async def`"),
        (Strange, "args_schema = Odd: it has no JSON schema ("),
    ],
)
def test_execute_has_to_take_what_the_schema_declares(tool: type[BaseTool], problem: str) -> None:
    assert declaration_problems(tool()).startswith(problem)
    assert bool(problem) == bool(declaration_problems(tool()))


@pytest.mark.parametrize(
    ("line", "given"), [("pathlib:Path", Path), (" pathlib:Path.home ", Path.home), ("pathlib", ModuleType)]
)
def test_a_setting_gives_what_it_names_and_a_text_runs_as_it_was_read(
    tmp_path: Path, line: str, given: object
) -> None:
    source, place = source_from_setting(line), tmp_path / "mine.py"
    place.write_text("raise SystemError")

    found = source.load()
    module = source_from_text(str(place), "here = __file__\n").load()

    assert source.place == f"tools = {line!r}"
    assert found == given or type(found) is given
    assert getattr(module, "here", None) == str(place)


def test_installed_packages_are_found_by_their_entry_points(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = tmp_path / "shouting-2.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shouting\nVersion: 2.0\n")
    (info / "entry_points.txt").write_text("[graph_agent.tools]\nshout = shouting.tools:make\n")
    monkeypatch.syspath_prepend(tmp_path)

    places = [source.place for source in sources_from_entry_points()]

    assert places == ["entry point shout of shouting 2.0"]


_PAGE = Path(__file__).parents[2] / "docs" / "tools.md"


async def test_the_tool_of_the_page_works_as_it_stands(tmp_path: Path) -> None:
    text, *_ = re.findall(r"```python\n(.*?)```", _PAGE.read_text(encoding="utf-8"), re.DOTALL)
    around = ToolEnvironment(tmp_path)
    (around.workspace / "a.txt").write_text("one\n\ntwo\n")

    found = load_plugin(source_from_text("count_lines.py", text), around.workspace)
    [tool] = [plugin.make() for plugin in found.tools]
    results = [
        await execute(tool, arguments, around.context())
        for arguments in (
            {"file_path": "a.txt"},
            {"file_path": "a.txt", "only_filled": "true"},
            {"file_path": "none"},
        )
    ]

    assert found.problems == ()
    assert [result.output for result in results] == ["3 lines", "2 lines", ""]
    assert results[2].error == "'none' is not a file; list the folder first."
