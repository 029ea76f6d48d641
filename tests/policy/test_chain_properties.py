"""Properties of the decision that hold for every rule, command and mode."""

from dataclasses import replace
from pathlib import Path, PurePath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graph_agent.toolbox.facts import PolicyContext, command_facts
from policy import MODES, CallFacts, PathFact, PolicySettings, evaluate, parse_rules, parse_shell
from tools.base import CommandTarget
from tools.shell_ops.bash_parser import parse_bash

pytestmark = pytest.mark.slow
_WS = Path("/nowhere/ws")
_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}

_SIMPLE = st.sampled_from(
    ["ls", "ls -l src", "git status", "git push", "rm x", "rm -rf x", "cat .env", "echo 'rm x; ls'",
     "make test", "curl h", "find . -delete", "sed -i s/a/b/ x", "FOO=1 make", "bash -c 'rm x'", "ls > out",
     "ls > ../out", "echo $(rm x)"]
)  # fmt: skip
_RULES = st.sampled_from(
    ["bash", "bash(*)", "bash(ls*)", "bash(git *)", "bash(git status*)", "bash(rm*)", "bash(rm -rf *)",
     "bash(make*)", "bash(echo*)", "bash(curl*)", "bash(find*)", "bash(sed*)", "bash(env*)", "bash(timeout*)",
     "read(.env)", "read", "write(src/**)", "write", "edit(*)", "*", "mcp__hub__*", "BASH(LS)", "bash(FOO=1 *)"]
)  # fmt: skip
_SOME_RULES = st.lists(_RULES, max_size=3)
_JOINTS = st.sampled_from(["; ", " && ", " || ", " | ", "\n", " & "])
_FORMS = st.sampled_from(["{}", "({})", "{{ {}; }}", "! {}", "if true; then {}; fi", "while {}; do break; done"])
_WRAPPERS = st.sampled_from(
    ["env ", "timeout 5 ", "nohup ", "nice -n 5 ", "command ", "exec ", "env -i A=1 ", "setsid "]
)
_PATHS = st.sampled_from(["src/a.py", ".env", "../x", "README.md", ".git/config", "src/../.env"])


@st.composite
def _commands(draw: st.DrawFn) -> str:
    parts = [draw(_FORMS).format(draw(_SIMPLE)) for _ in range(draw(st.integers(1, 3)))]
    text = parts[0]
    for part in parts[1:]:
        text += draw(_JOINTS) + part
    return text


def _shell(command: str, mode: str) -> CallFacts:
    read = command_facts(CommandTarget(command), _WS, PolicyContext(_WS, PolicySettings()))
    return CallFacts(
        "bash", mode, "high", "execute", _WS,
        command=command, shell=read.shell, redirects=read.redirects, mentions=read.mentions,
    )  # fmt: skip


@st.composite
def _calls(draw: st.DrawFn) -> CallFacts:
    mode = draw(st.sampled_from(MODES))
    kind = draw(st.sampled_from(["bash", "read_file", "write_file", "edit_file", "mcp__hub__get", "web_fetch"]))
    if kind == "bash":
        return _shell(draw(_commands()), mode)
    given_path = draw(_PATHS)
    resolved = PurePath("/nowhere/x") if given_path == "../x" else _WS / given_path.replace("src/../", "")
    path = PathFact(
        given_path, resolved, "read" if kind == "read_file" else "write", inside=resolved.is_relative_to(_WS)
    )
    is_reader = kind == "read_file"
    facts = CallFacts(
        kind,
        mode,
        "low" if is_reader else "medium",
        "readonly" if is_reader else "write",
        _WS,
        allowed_in_plan_mode=is_reader,
    )
    return (
        replace(facts, paths=(path,))
        if kind.endswith("_file")
        else replace(facts, hosts=("h",) * (kind == "web_fetch"))
    )


def _strictness(facts: CallFacts, **rules: list[str]) -> int:
    return _STRICTNESS[evaluate(facts, PolicySettings(rules=parse_rules(**rules))).verdict]


@given(_calls(), _SOME_RULES, _SOME_RULES, _SOME_RULES, _RULES, st.sampled_from(["ask", "deny"]))
@settings(deadline=None, max_examples=150)
def test_one_more_ask_or_deny_rule_never_loosens(
    facts: CallFacts, allow: list[str], ask: list[str], deny: list[str], more: str, kind: str
) -> None:
    lists = {"allow": allow, "ask": ask, "deny": deny}

    assert _strictness(facts, **{**lists, kind: [*lists[kind], more]}) >= _strictness(facts, **lists)


@given(_calls(), _SOME_RULES, _SOME_RULES, _SOME_RULES, _RULES)
@settings(deadline=None, max_examples=150)
def test_one_more_allow_rule_changes_no_denial_and_makes_nothing_stricter(
    facts: CallFacts, allow: list[str], ask: list[str], deny: list[str], more: str
) -> None:
    before = _strictness(facts, allow=allow, ask=ask, deny=deny)
    after = _strictness(facts, allow=[*allow, more], ask=ask, deny=deny)

    assert after <= before
    if before == _STRICTNESS["deny"] and facts.mode != "dontAsk":
        assert after == before


@given(_calls(), _SOME_RULES)
@settings(deadline=None, max_examples=100)
def test_plan_mode_runs_nothing_whatever_is_allowed(facts: CallFacts, allow: list[str]) -> None:
    planning = replace(facts, mode="plan")

    assert facts.allowed_in_plan_mode or _strictness(planning, allow=allow) == _STRICTNESS["deny"]


@given(_calls(), _SOME_RULES, _SOME_RULES, _SOME_RULES)
@settings(deadline=None, max_examples=100)
def test_dont_ask_never_asks_and_the_order_within_a_list_does_not_matter(
    facts: CallFacts, allow: list[str], ask: list[str], deny: list[str]
) -> None:
    strictness = _strictness(facts, allow=allow, ask=ask, deny=deny)

    assert facts.mode != "dontAsk" or strictness != _STRICTNESS["ask"]
    assert _strictness(facts, allow=allow[::-1], ask=ask[::-1], deny=deny[::-1]) == strictness


@given(st.lists(_SIMPLE, min_size=2, max_size=4), _JOINTS, _SOME_RULES, _SOME_RULES, _SOME_RULES)
@settings(deadline=None, max_examples=150)
def test_a_list_is_at_least_as_strict_as_its_strictest_part(
    parts: list[str], joint: str, allow: list[str], ask: list[str], deny: list[str]
) -> None:
    rules = {"allow": allow, "ask": ask, "deny": deny}
    strictest = max(_strictness(_shell(part, "default"), **rules) for part in parts)

    assert _strictness(_shell(joint.join(parts), "default"), **rules) >= strictest


@given(_SIMPLE, st.lists(_WRAPPERS, min_size=1, max_size=3), _SOME_RULES, _SOME_RULES, _SOME_RULES)
@settings(deadline=None, max_examples=150)
def test_wrapping_a_command_never_loosens(
    command: str, wrappers: list[str], allow: list[str], ask: list[str], deny: list[str]
) -> None:
    rules = {"allow": allow, "ask": ask, "deny": deny}

    assert _strictness(_shell("".join(wrappers) + command, "default"), **rules) >= _strictness(
        _shell(command, "default"), **rules
    )


@given(
    _SIMPLE,
    st.sampled_from(["bash -c {}", "sh -ec {}", "eval {}", "xargs sh -c {}", "sudo bash -c {}"]),
    _SOME_RULES,
)
@settings(deadline=None, max_examples=100)
def test_inline_code_does_not_escape_a_denial(command: str, form: str, deny: list[str]) -> None:
    quoted = "'" + command.replace("'", "'\\''") + "'"
    denied = [rule for rule in deny if rule.startswith("bash(")]

    if _strictness(_shell(command, "default"), deny=denied) == _STRICTNESS["deny"]:
        assert _strictness(_shell(form.format(quoted), "default"), deny=denied) == _STRICTNESS["deny"]


@given(st.text(max_size=60) | st.text("ab'\"\\$(){}[]`;&|<>\n\t#~*!=", max_size=40))
@settings(deadline=None, max_examples=300)
def test_every_text_gets_a_decision(text: str) -> None:
    facts = CallFacts("bash", "default", "high", "execute", _WS, command=text, shell=parse_shell(text, parse_bash))
    rules = parse_rules(allow=["bash(a*)"], ask=["bash(b*)"], deny=["bash(ab*)", "read(a)"])

    assert evaluate(facts, PolicySettings(rules=rules)).reason


@pytest.mark.parametrize(
    ("alias", "name"),
    [("read", "read_file"), ("Write", "write_file"), ("EDIT", "edit_file"), ("read_file", "READ")],
)
@given(_calls(), st.sampled_from(["", "(.env)", "(src/**)", "(*)"]), st.sampled_from(["allow", "ask", "deny"]))
@settings(deadline=None, max_examples=40)
def test_a_rule_may_use_any_alias_of_a_tool(
    alias: str, name: str, facts: CallFacts, pattern: str, kind: str
) -> None:
    one, other = (_strictness(facts, **{kind: [f"{tool}{pattern}"]}) for tool in (alias, name))

    assert one == other
