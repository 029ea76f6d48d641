from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict

from tools.base import BaseTool, ToolResult
from tools.plugins import declaration_problems


class Arguments(BaseModel):
    text: str
    times: int = 1


class Sound(BaseTool):
    name = "sound"
    description = "Makes a sound."
    args_schema: type[BaseModel] = Arguments

    async def execute(self, *, text: str, times: int = 1) -> ToolResult:
        return ToolResult(text * times)


class Blocking(Sound):
    def execute(self, *, text: str, times: int = 1) -> ToolResult:  # type: ignore[override]  # what is to be told
        return ToolResult(text * times)


class Deaf(Sound):
    async def execute(self, *, text: str) -> ToolResult:  # type: ignore[override]  # what is to be told
        return ToolResult(text)


class Anything(Sound):
    async def execute(self, **arguments: Any) -> ToolResult:
        return ToolResult(str(arguments))


class Opaque:
    pass


class Odd(BaseModel):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    it: Opaque


@pytest.mark.parametrize("kind", [Sound, Anything])
def test_a_sound_declaration_has_nothing_against_it(kind: type[Sound]) -> None:
    assert declaration_problems(kind()) == ""


@pytest.mark.parametrize(
    ("attribute", "value", "told"),
    [
        ("name", "two words", "name = 'two words': 1 to 64 letters, digits, _ or - are expected"),
        ("name", 7, "name = 7: 1 to 64 letters, digits, _ or - are expected"),
        ("name", "x" * 65, f"name = {'x' * 65!r}: 1 to 64 letters, digits, _ or - are expected"),
        ("name", "mcp__a__b", "name = 'mcp__a__b': mcp__ begins the names of MCP tools only"),
        ("description", "", "description = '': a text or a ToolDescription is expected"),
        ("risk_level", "extreme", "risk_level = 'extreme': one of low, medium, high is expected"),
        ("kind", None, "kind = None: one of readonly, write, execute is expected"),
        ("timeout_s", "1", "timeout_s = '1': a number above 0 is expected"),
        ("max_result_chars", 0, "max_result_chars = 0: a whole number above 0 is expected"),
        ("max_result_chars", 9.5, "max_result_chars = 9.5: a whole number above 0 is expected"),
        ("args_schema", {"text": "str"}, "args_schema = {'text': 'str'}: a pydantic model is expected"),
    ],
)
def test_each_wrong_attribute_is_told_with_what_is_expected(attribute: str, value: object, told: str) -> None:
    tool = Sound()
    setattr(tool, attribute, value)

    assert declaration_problems(tool) == told


def test_an_argument_that_execute_does_not_take_is_told() -> None:
    assert declaration_problems(Deaf()) == "execute takes no times, which Arguments declares"


def test_a_blocking_execute_is_told() -> None:
    assert declaration_problems(Blocking()) == "execute is not declared as `async def`"


def test_arguments_without_a_json_schema_are_told() -> None:
    class Strange(Anything):
        args_schema = Odd

    assert declaration_problems(Strange()).startswith("args_schema = Odd: it has no JSON schema (")
