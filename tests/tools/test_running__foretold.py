from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import BaseModel

from tools.base import BaseTool, HostTarget, Target, ToolKind, ToolRiskLevel
from tools.running import CallProfile
from tools.schema import InvalidArguments


class _Args(BaseModel):
    host: str
    times: int = 1


class _Tool(BaseTool):
    name = "reach"
    kind = ToolKind.READONLY
    risk_level = ToolRiskLevel.HIGH
    args_schema = _Args
    objection: str | None = None
    found: Any = None

    def validate(self, args: Mapping[str, Any]) -> str | None:
        return self.objection

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        return [HostTarget(args["host"])] if self.found is None else self.found


def test_it_says_of_the_call_what_the_tool_said_whatever_it_is_asked() -> None:
    told = CallProfile(_Tool(), {"host": "h", "times": "2"})

    assert told.arguments == {"host": "h", "times": 2}
    assert (told.validate({}), told.is_read_only({}), told.is_concurrency_safe({})) == (None, True, True)
    assert (told.targets({}), told.signature({}), told.suggest_rule({})) == ([HostTarget("h")], "h", "reach(h)")
    assert (told.display_call({}), told.kind, told.risk_level) == ("reach h", ToolKind.READONLY, ToolRiskLevel.HIGH)


def test_of_arguments_it_objects_to_a_tool_is_asked_nothing_more() -> None:
    tool = _Tool()
    tool.objection, tool.found = "not that host", ["nonsense"]

    assert CallProfile(tool, {"host": "h"}).validate({}) == "not that host"


def test_what_it_cannot_have_meant_is_an_error_before_anything_is_judged() -> None:
    tool = _Tool()
    tool.found = ["/etc/passwd"]

    with pytest.raises(TypeError, match="targets cannot hold str"):
        CallProfile(tool, {"host": "h"})
    with pytest.raises(InvalidArguments):
        CallProfile(_Tool(), {})
