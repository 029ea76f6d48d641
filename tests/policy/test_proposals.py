import shlex
from dataclasses import replace
from pathlib import PurePath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_agent.toolbox.bash_parser import parse_bash
from policy import (
    CallFacts,
    Decision,
    Grant,
    PathFact,
    PolicySettings,
    Proposal,
    evaluate,
    parse_rule,
    parse_rules,
    parse_shell,
    propose,
)

_WS = PurePath("/w/proj")
_PLAIN = PolicySettings()


def _bash(command: str, mode: str = "default") -> CallFacts:
    text = parse_shell(command, parse_bash)
    return CallFacts("bash", mode, "high", "execute", _WS, command=command, shell=text)


def _file(path: str, tool: str = "write_file", **facts: Any) -> CallFacts:
    resolved = PurePath(facts.pop("resolved", _WS / path))
    fact = PathFact(path, resolved, "write", inside=resolved.is_relative_to(_WS), **facts)
    return CallFacts(tool, "default", "medium", "write", _WS, paths=(fact,))


def _granted(rules: tuple[str, ...], mode: str = "default", **lists: list[str]) -> PolicySettings:
    literal = tuple(parse_rule(text, is_literal=True) for text in rules)
    return PolicySettings(parse_rules(**lists), grants=(Grant("grant 1 (this thread)", mode, literal),))


def _rules(facts: CallFacts, settings: PolicySettings = _PLAIN) -> tuple[str, ...]:
    return propose(facts, settings, "suggested").rules


def test_a_list_of_commands_gets_one_exact_rule_for_each() -> None:
    assert propose(_bash("git status && rm -rf ./tmp; git status"), _PLAIN, "bash(git *)") == Proposal(
        ("bash(git status)", "bash(rm -rf ./tmp)"),
        coverage="This allows exactly these words in this folder, and nothing else.",
    )


def test_a_proposal_says_what_its_rule_allows_beyond_the_call() -> None:
    def coverage(tool: str, suggestion: str, **facts: Any) -> str:
        return propose(CallFacts(tool, "default", "medium", "write", _WS, **facts), _PLAIN, suggestion).coverage

    path = PathFact("a", _WS / "a", "edit", inside=True)
    assert coverage("edit_file", "", paths=(path,)) == (
        "This allows every change that edit_file makes to this file, not only this one."
    )
    assert coverage("grep", "", paths=(replace(path, access="read"),)) == (
        "This allows every grep of this path, whatever else its arguments say."
    )
    assert coverage("web_fetch", "web_fetch(h)", hosts=("h",)) == "This allows every address on this host."
    assert coverage("mcp__a__b", "mcp__a__b") == "This allows every call of the tool, whatever its arguments."
    assert coverage("own", "own(x)", signature="x") == (
        "This allows every call with this subject, whatever its other arguments are."
    )


def test_a_star_in_a_rule_is_no_wildcard() -> None:
    rules = _rules(_bash("git add '*'"))

    assert rules == ("bash(git add '*')",)
    verdicts = [
        evaluate(_bash(text), _granted(rules)).verdict for text in ("git add \\*", "git add x", "git add *")
    ]
    assert verdicts == ["allow", "ask", "ask"]


@pytest.mark.parametrize(
    "command", ["rm a b", "rm 'a b'", "rm a 'b'", "'rm' a b c", "A=1 rm a", "git commit -m 'x y'"]
)
@pytest.mark.parametrize(
    "other", ["rm a b", "rm 'a b'", "'rm a b'", "rm a b c", "A=1 rm a", "rm a", "B=1 A=1 rm a"]
)
def test_a_rule_covers_the_same_words_and_no_others(command: str, other: str) -> None:
    granted = _granted(_rules(_bash(command)))

    verdict = evaluate(_bash(other), granted).verdict

    assert verdict == ("allow" if shlex.split(other) == shlex.split(command) else "ask")


@given(
    st.text(alphabet="abg -*'\"\\&;|()$`<>#~=\n", max_size=24),
    st.text(alphabet="abg -*'\"\\&;|()<>\n", max_size=24),
)
def test_what_is_proposed_covers_the_call_and_no_other_command_line(command: str, other: str) -> None:
    rules = _rules(_bash(command))
    if not rules:
        return
    granted = _granted(rules)

    assert evaluate(_bash(command), granted).verdict == "allow"
    if evaluate(_bash(other), granted).verdict == "allow":
        exact = {tuple(shlex.split(rule[5:-1])) for rule in rules}
        again = {tuple(shlex.split(rule[5:-1])) for rule in _rules(_bash(other))}
        assert again <= exact


@pytest.mark.parametrize(
    "command",
    [
        "python3 -c 'print(1)'", "python build.py", "/usr/bin/python3.11 x", "bash -c 'ls'", "sh x.sh",
        "node -e 1", "perl -e 1", "ruby x", "env ls", "sudo ls", "timeout 5 ls", "nohup ls", "xargs rm",
        "find . -delete", "eval ls", ". ./x", "awk 1", "A=1 sudo ls", "git status && sudo ls", "npx x",
    ],
)  # fmt: skip
def test_no_rule_is_made_of_what_runs_something_else(command: str) -> None:
    proposal = propose(_bash(command), _PLAIN, "bash")

    assert (proposal.rules, "runs other commands" in proposal.objection) == ((), True)


@pytest.mark.parametrize(
    "command",
    ["ls $(rm x)", "ls `rm x`", "ls > f", "echo x >> f", "ls $HOME", "ls *", "for x in a; do ls; done", "", "'"],
)
def test_no_rule_is_made_of_what_could_be_something_else_next_time(command: str) -> None:
    proposal = propose(_bash(command), _PLAIN, "bash")

    assert (proposal.rules, proposal.objection != "") == ((), True)


def test_no_rule_is_made_where_it_would_change_nothing() -> None:
    asked = PolicySettings(parse_rules(ask=["bash(git *)"]))

    assert propose(_bash("git push"), asked, "bash") == Proposal(
        (), "A rule would not stop it from asking. The rule 'bash(git *)' requires approval."
    )
    assert propose(_file(".env"), _PLAIN, "")[0] == ()


def test_a_file_gets_a_rule_for_exactly_itself_under_its_resolved_path() -> None:
    rules = _rules(_file("a*.py"))

    assert rules == ("write_file(/w/proj/a*.py)",)
    granted = _granted(rules)
    asked = [
        _file("a*.py"),
        _file("./x/../a*.py", resolved="/w/proj/a*.py"),
        _file("ab.py"),
        _file("a*.py", "edit_file"),
    ]
    assert [evaluate(facts, granted).verdict for facts in asked] == ["allow", "allow", "ask", "ask"]


def test_a_call_without_command_and_path_gets_the_rule_of_its_tool() -> None:
    facts = CallFacts("web_fetch", "default", "medium", "execute", _WS, signature="docs.python.org")

    rules = propose(facts, _PLAIN, "web_fetch(docs.python.org)").rules

    assert rules == ("web_fetch(docs.python.org)",)
    aliases = [replace(facts, signature=host) for host in ("docs.python.org", "python.org", "docsxpython.org")]
    assert [evaluate(one, _granted(rules)).verdict for one in aliases] == ["allow", "ask", "ask"]


def test_a_grant_is_named_by_what_it_allows() -> None:
    granted = _granted(("bash(git status)",))

    assert evaluate(_bash("git status"), granted) == Decision(
        "allow", "grant 1 (this thread)", "Always allowed by grant 1 (this thread): 'bash(git status)'."
    )


def test_a_grant_and_a_rule_together_cover_a_list() -> None:
    granted = _granted(("bash(rm x)",), allow=["bash(git *)"])

    assert evaluate(_bash("git status && rm x"), granted).rule == "grant 1 (this thread)"
    assert evaluate(_bash("git status"), granted).rule == "allow bash(git *)"


@pytest.mark.parametrize(
    ("mode", "given_in", "lists", "verdict"),
    [
        ("default", "acceptEdits", {}, "ask"),
        ("acceptEdits", "default", {}, "allow"),
        ("plan", "default", {}, "deny"),
        ("dontAsk", "default", {}, "deny"),
        ("default", "default", {"deny": ["bash(rm *)"]}, "deny"),
        ("default", "default", {"ask": ["bash(rm *)"]}, "ask"),
    ],
)
def test_a_grant_never_goes_before_what_is_stricter(
    mode: str, given_in: str, lists: dict[str, list[str]], verdict: str
) -> None:
    assert evaluate(_bash("rm x", mode), _granted(("bash(rm x)",), given_in, **lists)).verdict == verdict


def test_a_grant_for_a_command_lets_it_write_no_file() -> None:
    granted = _granted(("bash(echo x)",))

    verdicts = [
        evaluate(_bash(text), granted).verdict
        for text in ("echo x", "echo x >/dev/null", "echo x > a", "echo x >> a")
    ]
    assert verdicts == ["allow", "allow", "ask", "ask"]
