from dataclasses import replace
from pathlib import PurePath

import pytest

from policy import (
    CallFacts,
    PathFact,
    PolicySettings,
    closed_paths,
    parse_rule,
    parse_rules,
    parse_shell,
)
from policy.matching import covers_any_part, find_allow_rule, matches_tool
from policy.reach import names_path
from tools.shell_ops.bash_parser import parse_bash

_WS = PurePath("/w/proj")
_SETTINGS = PolicySettings(home=PurePath("/home/u"))


def _facts(*paths: str) -> CallFacts:
    facts = tuple(PathFact(path, _WS / path, "write", inside=True) for path in paths)
    return CallFacts("write_file", "default", "medium", "write", _WS, paths=facts)


@pytest.mark.parametrize(
    ("rule", "tool", "covers"),
    [
        ("BASH", "bash", True),
        ("mcp__hub__*", "mcp__Hub__get", True),
        ("*", "anything", True),
        ("mcp__files__read", "mcp__files__read_all", False),
    ],
)
def test_tool_names_match_whole_and_in_any_case(rule: str, tool: str, covers: bool) -> None:
    assert matches_tool(parse_rule(rule), tool) is covers


def test_allowing_needs_every_path_and_forbidding_needs_one() -> None:
    rule = parse_rule("write_file(src/**)")
    both = _facts("src/a", "docs/b")

    assert find_allow_rule([rule], both, _SETTINGS, None) is None
    assert find_allow_rule([rule, parse_rule("write_file(docs/*)")], both, _SETTINGS, None) == rule
    assert covers_any_part(rule, both, _SETTINGS, None)


@pytest.mark.parametrize(
    ("signature", "covers"), [("docs.python.org", True), ("docs.python.org.evil", False), ("x", False)]
)
def test_calls_without_paths_match_by_their_signature(signature: str, covers: bool) -> None:
    rule = parse_rule("web_fetch(docs.python.org)")
    facts = CallFacts("web_fetch", "default", "medium", "readonly", _WS, signature=signature)

    assert covers_any_part(rule, facts, _SETTINGS, None) is covers
    assert (find_allow_rule([rule], facts, _SETTINGS, None) is not None) is covers


@pytest.mark.parametrize(
    ("word", "covers"),
    [
        ("secrets/a", True),
        ("./secrets/a", True),
        ("/w/proj/secrets/a", True),
        ("-f=secrets/a", True),
        ("secret", False),
        ("'se'crets/a", True),
        ("s*/a", True),
        ("*.py", False),
    ],
)
def test_words_of_commands_are_compared_as_paths(word: str, covers: bool) -> None:
    text = parse_shell(f"x {word}", parse_bash)

    assert names_path(parse_rule("read(secrets/**)"), _facts(), _SETTINGS, text) is covers


@pytest.mark.parametrize(
    ("rule", "path", "covers"),
    [
        ("x/../secrets/**", "/w/proj/secrets/a", True),
        ("./secrets//a", "/w/proj/secrets/a", True),
        ("../other/**", "/w/other/a", True),
        ("../other/*", "/w/proj/other/a", False),
        ("../../../**", "/etc/x", True),
        ("/w/proj/../other/a", "/w/other/a", True),
        ("~/x/../a", "/home/u/a", True),
        ("**/a", "/w/proj/a", True),
        ("**/a", "/w/a", False),
        ("..a", "/w/proj/..a", True),
    ],
)
def test_the_path_of_a_rule_may_contain_dots(rule: str, path: str, covers: bool) -> None:
    facts = replace(_facts(), paths=(PathFact(path, PurePath(path), "write", inside=True),))

    assert covers_any_part(parse_rule(f"write({rule})"), facts, _SETTINGS, None) is covers


def test_a_glob_is_compared_from_the_folder_it_is_used_in_and_rules_from_the_workspace() -> None:
    away = replace(_facts(), cwd=_WS / "sub", command="cat ../secrets/k*")
    led = replace(_facts(), command="cat link/k*", patterns=(_WS / "secrets/k*",))
    rule = parse_rule("read(secrets/key)")

    named = [
        names_path(rule, facts, _SETTINGS, parse_shell(facts.command or "", parse_bash)) for facts in (away, led)
    ]

    assert named == [True, True]


def test_a_command_names_the_path_that_a_word_leads_to() -> None:
    facts = replace(_facts(), mentions=(_WS / "secrets/a",))

    assert names_path(parse_rule("read(secrets/**)"), facts, _SETTINGS, parse_shell("cat link", parse_bash))


def test_rules_may_use_either_name_of_a_server_tool() -> None:
    facts = CallFacts("mcp__a_b__c", "default", "medium", "execute", _WS, original_tool="mcp__a b__c")

    found = [
        bool(find_allow_rule([parse_rule(name)], facts, _SETTINGS, None))
        for name in ("mcp__a b__*", "mcp__a_b__c", "c")
    ]

    assert found == [True, True, False]
    assert covers_any_part(parse_rule("mcp__a b__c"), facts, _SETTINGS, None)


@pytest.mark.parametrize(
    ("deny", "path", "closed"),
    [
        ("read_file(secret/**)", "/ws/secret/key", "read"),
        ("read(secret/)", "/ws/secret", "read"),
        ("read_file(**/.env)", "/ws/deep/.env", "read"),
        ("read_file(secret/**)", "/ws/open/key", None),
        ("read_file(~/keys/**)", "/home/u/keys/k", "read"),
        ("read_file(../other/*.py)", "/other/a.py", "read"),
        ("read_file", "/ws/open", None),
        ("write_file(**)", "/ws/open", "write"),
        ("edit(/abs/x)", "/abs/x", "write"),
        ("*(a)", "/ws/a", "read"),
        ("bash(cat a)", "/ws/cat a", None),
        ("read_file(caf\u00e9)", "/ws/cafe\u0301", "read"),
    ],
)
def test_deny_rules_close_paths_for_reading_or_writing(deny: str, path: str, closed: str | None) -> None:
    found = closed_paths(parse_rules(deny=[deny]).deny, PurePath("/ws"), PurePath("/home/u"))

    assert {one.access for one in found if one.covers(path)} == ({closed} if closed else set())


@pytest.mark.parametrize(
    ("deny", "folder", "names", "whole"),
    [
        ("secret/**", "/ws/secret", ("**",), True),
        ("secret", "/ws/secret", (), False),
        ("secret/*", "/ws/secret", ("*",), False),
        ("secret/?/**", "/ws/secret", ("?", "**"), False),
        ("a/*.py", "/ws/a", ("*.py",), False),
        ("**/*", "/ws", ("**", "*"), True),
        ("~/x/**", "/home/u/x", ("**",), True),
    ],
)
def test_a_closed_path_begins_with_a_folder_and_may_close_all_of_it(
    deny: str, folder: str, names: tuple[str, ...], *, whole: bool
) -> None:
    (found,) = closed_paths(parse_rules(deny=[f"read({deny})"]).deny, PurePath("/ws"), PurePath("/home/u"))

    assert (str(found.folder), found.names, found.covers_all_in(folder)) == (folder, names, whole)
