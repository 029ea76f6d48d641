from pathlib import Path
from typing import Any

import pytest

from graph_agent.toolbox.facts import PolicyContext
from graph_agent.toolbox.policy_check import Examples, check_call, check_examples
from policy import InvalidRule, PolicySettings, parse_rules
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
def test_a_call_is_evaluated_by_its_name_also_without_such_a_tool(
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


@pytest.mark.parametrize(
    ("kind", "examples"),
    [
        (
            "allow",
            Examples("bash(git commit*)", ("git commit", "'git' commit -m 'a; b'"), ("git push", "git commit; id")),
        ),
        ("deny", Examples("bash(rm -rf *)", ("rm -rf x", "true && rm -rf x", "sh -c 'rm -rf x'"), ("rm x",))),
        ("allow", Examples("write(src/**)", ("src/a.py", "./src/b/c.py"), ("src/../x", "/src/a.py"))),
        ("deny", Examples("read(~/.ssh/**)", ("~/.ssh/id_rsa",), ("x",))),
        (
            "ask",
            Examples(
                "web_fetch(docs.python.org)", ("docs.python.org", "https://docs.python.org/3/"), ("python.org",)
            ),
        ),
        ("deny", Examples("mcp__hub__*", ("mcp__hub__get",), ("mcp__hubs__get",))),
        ("deny", Examples("Read", ("read_file", "READ"), ("write_file",))),
        ("allow", Examples("frobnicate(x)")),
    ],
)
def test_a_rule_that_means_what_its_examples_say_is_taken(kind: str, examples: Examples) -> None:
    check_examples(kind, examples)  # type: ignore[arg-type]  # one of the three lists


@pytest.mark.parametrize(
    ("kind", "examples", "complaint"),
    [
        (
            "allow",
            Examples("bash(git *)", ("git log; id",)),
            "does not cover 'git log; id', which its examples say it must",
        ),
        (
            "deny",
            Examples("bash(git *)", (), ("x && git log",)),
            "covers 'x && git log', which its examples say it must not",
        ),
        (
            "allow",
            Examples("write(src/*)", ("src/a/b",)),
            r"the allow rule 'write\(src/\*\)' does not cover 'src/a/b'",
        ),
        ("allow", Examples("web_fetch(a.org)", ("a b",)), "the example 'a b' of .* cannot be used"),
        ("allow", Examples("read(x)", ("x\0",)), "cannot be used: .*NUL"),
        ("allow", Examples("frobnicate(x)", ("x",)), "cannot carry examples: only rules about bash"),
        ("allow", Examples("(", ("x",)), "is not a rule"),
    ],
)
def test_a_rule_that_means_something_else_is_refused_with_rule_and_example(
    kind: str, examples: Examples, complaint: str
) -> None:
    with pytest.raises(InvalidRule, match=complaint):
        check_examples(kind, examples)  # type: ignore[arg-type]  # one of the three lists
