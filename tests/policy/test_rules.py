import pytest

from policy import Grant, InvalidRule, Rule, parse_rule, parse_rules
from policy.rules import globs_overlap, grant_applies, matches_host, minimal_grants


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("bash", ("bash", None)),
        ("Bash(git commit*)", ("bash", "git commit*")),
        ("read(src/**)", ("read_file", "src/**")),
        ("mcp__github__*", ("mcp__github__*", None)),
        (" bash(echo (a)) ", ("bash", "echo (a)")),
        ("bash(a\nb)", ("bash", "a\nb")),
        ("web_fetch(docs.python.org:443)", ("web_fetch", "docs.python.org:443")),
    ],
)
def test_a_rule_is_parsed(text: str, rule: tuple[str, str | None]) -> None:
    assert parse_rule(text) == Rule(*rule, text.strip())


@pytest.mark.parametrize("text", ["", "bash(", "bash)x", "two words", "(x)"])
def test_an_invalid_rule_is_rejected_with_its_text(text: str) -> None:
    with pytest.raises(InvalidRule, match=r"is not a rule\. Write a tool name"):
        parse_rule(text)


def test_the_three_lists_are_parsed() -> None:
    rules = parse_rules(allow=["ls"], ask=["bash"], deny=["write"])

    assert [rule.tool for rule in (*rules.allow, *rules.ask, *rules.deny)] == ["ls", "bash", "write_file"]


def test_a_rule_may_use_the_names_that_a_server_gives_itself_and_its_tools() -> None:
    assert parse_rule("mcp__customer.data platform__*").tool == "mcp__customer.data platform__*"
    assert parse_rule("mcp__a b__c (x)").pattern == "x"
    assert parse_rule("MCP__A.b c__*").tool == "mcp__a.b c__*"


def test_a_server_name_alone_denies_all_its_tools_and_allows_none() -> None:
    named = ["mcp__github", "MCP__a b", "mcp__github__get"]

    rules = parse_rules(allow=named, ask=named, deny=named)

    alone = ["mcp__github", "mcp__a b", "mcp__github__get"]
    strict = ["mcp__github", "mcp__github__*", "mcp__a b", "mcp__a b__*", "mcp__github__get"]
    found = [[rule.tool for rule in part] for part in (rules.allow, rules.ask, rules.deny)]
    assert found == [alone, strict, strict]


_ASKING = ("plan", "default", "acceptEdits", "auto", "bypassPermissions")


def _given(mode: str, name: str = "grant 1") -> Grant:
    return Grant(name, mode, (parse_rule("bash(ls)", is_literal=True),))


@pytest.mark.parametrize(
    ("given_in", "holds"),
    [
        ("plan", _ASKING),
        ("default", ("default", "acceptEdits", "auto", "bypassPermissions")),
        ("acceptEdits", ("acceptEdits", "bypassPermissions")),
        ("auto", ("auto", "bypassPermissions")),
        ("bypassPermissions", ("bypassPermissions",)),
        ("dontAsk", ()),
        ("a mode of another version", ()),
    ],
)
def test_a_grant_holds_in_its_mode_and_in_more_permissive_ones(given_in: str, holds: tuple[str, ...]) -> None:
    assert tuple(mode for mode in (*_ASKING, "dontAsk", "other") if grant_applies(_given(given_in), mode)) == holds


def test_a_grant_that_is_not_needed_is_not_named() -> None:
    first, second, third = (_given("default", name) for name in ("1", "2", "3"))

    assert minimal_grants([first, second, third], lambda left: second in left) == [second]
    assert minimal_grants([first, second], bool) == [second]


@pytest.mark.parametrize(
    ("pattern", "target", "covers"),
    [
        ("docs.python.org", "docs.python.org", True),
        ("Docs.Python.org", "docs.python.ORG.", True),
        ("docs.python.org", "docs.python.org.evil", False),
        ("docs.python.org", "evil-docs.python.org", False),
        ("docs.python.org", "docs.python.org:8443", False),
        ("docs.python.org:8443", "docs.python.org:8443", True),
        ("docs.python.org:8443", "docs.python.org", False),
        ("docs.python.org:*", "docs.python.org:8443", True),
        ("*.python.org", "a.docs.python.org", True),
        ("*.python.org", "python.org", False),
        ("*.python.org", "evilpython.org", False),
        ("*", "h", True),
        ("[::1]:80", "[::1]:80", True),
        ("::1", "[::1]", True),
    ],
)
def test_hosts_are_compared_label_by_label(pattern: str, target: str, covers: bool) -> None:
    assert matches_host(pattern, target, is_strict=False) is covers


def test_a_rule_that_forbids_a_host_forbids_all_its_ports() -> None:
    assert matches_host("h", "h:8443", is_strict=True)


@pytest.mark.parametrize(
    "spelling",
    [
        "127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0x7f000001", "017700000001", "127.0.0.1:8080",
        "[::ffff:127.0.0.1]", "[::ffff:7f00:1]:81", "127.0.1",
    ],
)  # fmt: skip
def test_a_rule_that_forbids_an_address_forbids_every_spelling_of_it(spelling: str) -> None:
    assert matches_host("127.0.0.1", spelling, is_strict=True)
    assert matches_host(spelling, "127.0.0.1:8080" if ":80" in spelling else "127.0.0.1", is_strict=True) is (
        ":81" not in spelling
    )


@pytest.mark.parametrize(
    "other", ["127.0.0.2", "1.2.3.4.5", "256.0.0.1", "0x", "08.0.0.1", "h127.0.0.1", "4294967296"]
)
def test_what_is_another_address_or_none_is_not_forbidden_by_it(other: str) -> None:
    assert not matches_host("127.0.0.1", other, is_strict=True)


@pytest.mark.parametrize(
    ("one", "other", "overlaps"),
    [
        ("/w/.en?", "/w/.env", True),
        ("/w/*", "/w/.env", True),
        ("/w/*.py", "/w/.env", False),
        ("/w/*", "/w/secrets/**", False),
        ("/w/*/a", "/w/secrets/**", True),
        ("/w/**", "/w/a/b", True),
        ("/w/[a-c]b", "/w/xb", True),
        ("/w/?", "/w/", False),
        ("*" + "x" * 400, "*" + "y" * 400, True),
    ],
)
def test_globs_overlap_if_one_path_could_match_both(one: str, other: str, overlaps: bool) -> None:
    assert (globs_overlap(one, other), globs_overlap(other, one)) == (overlaps, overlaps)


@pytest.mark.parametrize(
    ("one", "other", "overlaps"),
    [
        ("/w/*", "/w/.env", False),
        ("/w/?env", "/w/.env", False),
        ("/w/[.]env", "/w/.env", False),
        ("/w/*", "/w/**/.env", False),
        ("/w/.*", "/w/.env", True),
        ("/w/*.env", "/w/a.env", True),
        ("/w/*/.env", "/w/**/.env", True),
        ("/w/*", "/w/*", True),
    ],
)
def test_shell_wildcards_do_not_match_a_leading_dot(one: str, other: str, overlaps: bool) -> None:
    assert globs_overlap(one, other, hides_dots=True) is overlaps
