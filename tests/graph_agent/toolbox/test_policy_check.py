from pathlib import Path
from typing import Any

import pytest

from graph_agent.toolbox.facts import PolicyContext
from graph_agent.toolbox.policy_check import check_call
from policy import PolicySettings, parse_rules
from tools import create_default_tools
from tools.registry import ToolRegistry
from tools.schema import InvalidArguments


@pytest.fixture
def registry(tmp_path: Path) -> ToolRegistry:
    registry = ToolRegistry()
    registry.register_all(create_default_tools(workspace=tmp_path, memory_file=tmp_path / "memory"))
    return registry


@pytest.mark.parametrize(
    ("tool", "arguments", "verdict", "rule"),
    [
        ("Read", {"path": "a"}, "allow", "risk low"),
        ("edit", {"path": "a", "old": "x", "new": "y"}, "ask", "risk medium"),
        ("grep", {"pattern": "x", "path": ".."}, "ask", "outside the workspace"),
        ("bash", {"command": "git status"}, "allow", "allow bash(git status)"),
        ("web_fetch", {"url": "https://h:444/"}, "deny", "deny web_fetch(h)"),
        ("web_fetch", {"url": "https://h.evil/"}, "ask", "risk medium"),
        ("mcp__a__b", {}, "ask", "undeclared access"),
        ("read", {"path": "a\0b"}, "deny", "unusable path"),
    ],
)
def test_a_call_is_judged_by_its_name_whether_or_not_there_is_such_a_tool(
    tool: str, arguments: dict[str, Any], verdict: str, rule: str, registry: ToolRegistry, tmp_path: Path
) -> None:
    rules = parse_rules(allow=["bash(git status)"], deny=["web_fetch(h)"])
    setting = PolicyContext(tmp_path.resolve(), PolicySettings(rules=rules))

    decision = check_call(tool, arguments, "default", registry=registry, context=setting).decision

    assert (decision.verdict, decision.rule) == (verdict, rule)


@pytest.mark.parametrize(("tool", "arguments"), [("read", {}), ("web_fetch", {"url": "http://h:x/"})])
def test_arguments_a_tool_does_not_take_are_refused(
    tool: str, arguments: dict[str, Any], registry: ToolRegistry, tmp_path: Path
) -> None:
    with pytest.raises(InvalidArguments):
        check_call(tool, arguments, "default", registry=registry, context=PolicyContext(tmp_path, PolicySettings()))
