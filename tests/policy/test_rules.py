import pytest

from policy import InvalidRule, Rule, parse_rule, parse_rules


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("bash", Rule("bash", None, "bash")),
        ("Bash(git commit*)", Rule("bash", "git commit*", "Bash(git commit*)")),
        ("read(src/**)", Rule("read_file", "src/**", "read(src/**)")),
        ("mcp__github__*", Rule("mcp__github__*", None, "mcp__github__*")),
        (" bash(echo (a)) ", Rule("bash", "echo (a)", "bash(echo (a))")),
        ("bash(a\nb)", Rule("bash", "a\nb", "bash(a\nb)")),
        (
            "web_fetch(docs.python.org:443)",
            Rule("web_fetch", "docs.python.org:443", "web_fetch(docs.python.org:443)"),
        ),
    ],
)
def test_rules_are_read(text: str, rule: Rule) -> None:
    assert parse_rule(text) == rule


@pytest.mark.parametrize("text", ["", "bash(", "bash)x", "two words", "(x)"])
def test_what_is_no_rule_is_refused_with_its_text(text: str) -> None:
    with pytest.raises(InvalidRule, match="is no rule; write a tool name"):
        parse_rule(text)


def test_three_lists_are_read() -> None:
    rules = parse_rules(allow=["ls"], ask=["bash"], deny=["write"])

    assert [rule.tool for rule in (*rules.allow, *rules.ask, *rules.deny)] == ["ls", "bash", "write_file"]


def test_a_rule_may_name_a_server_and_its_tool_as_they_call_themselves() -> None:
    assert parse_rule("mcp__customer.data platform__*").tool == "mcp__customer.data platform__*"
    assert parse_rule("mcp__a b__c (x)").pattern == "x"
    assert parse_rule("MCP__A.b c__*").tool == "mcp__a.b c__*"


def test_a_server_named_alone_holds_back_all_its_tools_and_lets_none_through() -> None:
    named = ["mcp__github", "MCP__a b", "mcp__github__get"]

    rules = parse_rules(allow=named, ask=named, deny=named)

    alone = ["mcp__github", "mcp__a b", "mcp__github__get"]
    strict = ["mcp__github", "mcp__github__*", "mcp__a b", "mcp__a b__*", "mcp__github__get"]
    assert [[rule.tool for rule in part] for part in (rules.allow, rules.ask, rules.deny)] == [
        alone,
        strict,
        strict,
    ]
