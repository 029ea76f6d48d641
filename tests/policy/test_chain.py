from os.path import normpath
from pathlib import PurePath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_agent.toolbox.shell_facts import parse_bash
from policy import (
    MODES,
    CallFacts,
    Decision,
    PathFact,
    PolicySettings,
    evaluate,
    hidden_tools,
    parse_rule,
    parse_rules,
    parse_shell,
)

_WS = PurePath("/w/proj")
_HOME = PurePath("/home/u")


def _bash(command: str, mode: str = "default") -> CallFacts:
    text = parse_shell(command, parse_bash)
    redirects = tuple(_path(path, "write", resolved=normpath(_WS / path)) for path in text.written)
    return CallFacts("bash", mode, "high", "execute", _WS, command=command, shell=text, redirects=redirects)


def _path(given: str, access: Any = "read", **facts: Any) -> PathFact:
    resolved = PurePath(facts.pop("resolved", _WS / given))
    return PathFact(given, resolved, access, inside=resolved.is_relative_to(_WS), **facts)


def _read(given: str, mode: str = "default", **facts: Any) -> CallFacts:
    return CallFacts("read_file", mode, "low", "readonly", _WS, plans=True, paths=(_path(given, **facts),))


def _write(given: str, mode: str = "default", *, tool: str = "write_file", **facts: Any) -> CallFacts:
    return CallFacts(tool, mode, "medium", "write", _WS, paths=(_path(given, "write", **facts),))


def _rules(**lists: list[str]) -> PolicySettings:
    return PolicySettings(rules=parse_rules(**lists), home=_HOME)


@pytest.mark.parametrize(
    ("facts", "settings", "verdict", "rule"),
    [
        # 1 hard refusals, also in bypass
        (_bash("rm -rf /", "bypassPermissions"), _rules(allow=["bash"]), "deny", "destroyer"),
        (_write("x", "bypassPermissions", reserved=True), _rules(), "deny", "agent's own files"),
        # 2 plan mode
        (_write("x", "plan"), _rules(allow=["write_file"]), "deny", "plan mode"),
        (_bash("ls", "plan"), _rules(allow=["bash"]), "deny", "plan mode"),
        (_read("x", "plan"), _rules(), "allow", "risk low"),
        # 3 deny before everything below
        (_bash("rm x", "bypassPermissions"), _rules(deny=["bash(rm *)"]), "deny", "deny bash(rm *)"),
        (_bash("ls && rm x"), _rules(allow=["bash"], deny=["bash(rm *)"]), "deny", "deny bash(rm *)"),
        (_bash("echo $(rm x)"), _rules(deny=["bash(rm *)"]), "deny", "deny bash(rm *)"),
        (_bash("A=1 sudo rm x"), _rules(deny=["bash(rm *)"]), "deny", "deny bash(rm *)"),
        (_read("s/a", resolved="/w/proj/t/a"), _rules(deny=["read(t/**)"]), "deny", "deny read(t/**)"),
        (_read("s/a", resolved="/w/proj/t/a"), _rules(deny=["read(s/**)"]), "deny", "deny read(s/**)"),
        (_write("s/a", tool="edit_file"), _rules(deny=["read_file(s/**)"]), "deny", "deny read_file(s/**)"),
        (_write("s/a"), _rules(deny=["read_file(s/**)"]), "ask", "risk medium"),
        # 4 bypass
        (_bash("curl h", "bypassPermissions"), _rules(ask=["bash"]), "allow", "bypassPermissions"),
        # 5 ask rules and protected names before allow rules
        (_bash("rm x"), _rules(allow=["bash"], ask=["bash(rm *)"]), "ask", "ask bash(rm *)"),
        (_write(".git/config", "acceptEdits"), _rules(allow=["write_file"]), "ask", "protected name"),
        (
            _write("n.txt", "acceptEdits", resolved="/w/proj/.env"),
            _rules(allow=["write(**)"]),
            "ask",
            "protected name",
        ),
        (_bash("cat s/a"), _rules(allow=["bash"], deny=["read_file(s/**)"]), "ask", "deny read_file(s/**)"),
        (_bash("x --f=./s/a"), _rules(allow=["bash"], deny=["read_file(s/**)"]), "ask", "deny read_file(s/**)"),
        # 6 allow rules
        (
            _bash("git log | head -n 5"),
            _rules(allow=["bash(git log*)", "bash(head*)"]),
            "allow",
            "allow bash(git log*)",
        ),
        (_bash("git log; curl h"), _rules(allow=["bash(git log*)"]), "ask", "risk high"),
        (_bash("git log $(id)"), _rules(allow=["bash"]), "ask", "risk high"),
        (_bash("A=1 git log"), _rules(allow=["bash(git log*)"]), "ask", "risk high"),
        (_bash("env git log"), _rules(allow=["bash(git log*)"]), "ask", "risk high"),
        (_bash("git log > x"), _rules(allow=["bash(git log*)"]), "allow", "allow bash(git log*)"),
        (_bash("git log > ../x"), _rules(allow=["bash(git log*)"]), "ask", "risk high"),
        (_bash("cd sub && git log > x"), _rules(allow=["bash"]), "allow", "allow bash"),
        (_bash("cd .. && git log > x"), _rules(allow=["bash"]), "ask", "risk high"),
        (_bash("git log > $x"), _rules(allow=["bash"]), "ask", "risk high"),
        (_bash("git log > .git/hooks/x"), _rules(allow=["bash"]), "ask", "protected name"),
        (
            _bash("git log > src/a"),
            _rules(allow=["bash"], deny=["write(src/**)"]),
            "ask",
            "deny write(src/**)",
        ),
        (_bash("env git log"), _rules(allow=["bash(env*)"]), "ask", "risk high"),
        (_bash("env git log"), _rules(allow=["bash(env*)", "bash(git log*)"]), "allow", "allow bash(env*)"),
        (_bash("find . -exec rm {} ;"), _rules(allow=["bash(find*)"]), "ask", "risk high"),
        (_bash("git diff --outp=x"), _rules(allow=["bash(git diff*)"]), "ask", "risk high"),
        (_bash("git diff --outp=x"), _rules(deny=["bash(git*--output*)"]), "deny", "deny bash(git*--output*)"),
        (_bash("git -C d push"), _rules(deny=["bash(git push*)"]), "deny", "deny bash(git push*)"),
        (_bash("cat .en?"), _rules(allow=["bash"], deny=["read(.env)"]), "ask", "deny read(.env)"),
        (_bash("cat < .env"), _rules(allow=["bash"], deny=["read(.env)"]), "ask", "deny read(.env)"),
        (_bash("rm '", "bypassPermissions"), _rules(deny=["bash(rm*)"]), "deny", "deny bash(rm*)"),
        (_bash("cat '", "bypassPermissions"), _rules(deny=["bash(rm*)"]), "ask", "unreadable"),
        (_bash("cat '", "bypassPermissions"), _rules(), "allow", "bypassPermissions"),
        (_write("src/a"), _rules(allow=["write_file(src/**)"]), "allow", "allow write_file(src/**)"),
        (
            _write("src/a", resolved="/w/out/a"),
            _rules(allow=["write_file(src/**)"]),
            "ask",
            "outside the workspace",
        ),
        (_read("/etc/hosts", resolved="/etc/hosts"), _rules(allow=["read(/etc/*)"]), "allow", "allow read(/etc/*)"),
        (_read("~/x/y", resolved="/home/u/x/y"), _rules(allow=["read(~/x/)"]), "allow", "allow read(~/x/)"),
        # 7 acceptEdits
        (_write("src/a", "acceptEdits"), _rules(), "allow", "acceptEdits"),
        (_write("a", "acceptEdits", resolved="/w/out/a"), _rules(), "ask", "outside the workspace"),
        (_bash("touch a", "acceptEdits"), _rules(), "ask", "risk high"),
        # 8 risk
        (_read("src/a"), _rules(), "allow", "risk low"),
        (_read("l", resolved="/w/out/data"), _rules(), "ask", "outside the workspace"),
        (
            _read("/proc/self/environ", resolved="/w/proj/e", exposes_process=True),
            _rules(),
            "ask",
            "outside the workspace",
        ),
        (_write("src/a"), _rules(), "ask", "risk medium"),
        (CallFacts("nobody", "default", "medium", "execute", _WS), _rules(), "ask", "risk medium"),
        (
            CallFacts("mcp__hub__get", "default", "medium", "execute", _WS),
            _rules(allow=["MCP__hub__*"]),
            "allow",
            "allow MCP__hub__*",
        ),
        # 10 dontAsk
        (_bash("ls", "dontAsk"), _rules(), "deny", "dontAsk: risk high"),
        (_bash("ls", "dontAsk"), _rules(allow=["bash(ls*)"]), "allow", "allow bash(ls*)"),
        (_read("l", "dontAsk", resolved="/w/out/data"), _rules(), "deny", "dontAsk: outside the workspace"),
    ],
)
def test_the_first_rule_that_speaks_decides(
    facts: CallFacts, settings: PolicySettings, verdict: str, rule: str
) -> None:
    decision = evaluate(facts, settings)

    assert (decision.verdict, decision.rule) == (verdict, rule)


@pytest.mark.parametrize(
    ("pattern", "command", "matches"),
    [
        ("git status*", "git statusx", True),
        ("git status *", "git status", True),
        ("git status *", "git status -s", True),
        ("git status *", "git statusx", False),
        ("git status", "git status -s", False),
        ("*", "anything at all", True),
        ("g[i]t", "git", False),
    ],
)
def test_a_star_stands_for_any_text_inside_one_command(pattern: str, command: str, matches: bool) -> None:
    decision = evaluate(_bash(command), _rules(allow=[f"bash({pattern})"]))

    assert (decision.verdict == "allow") is matches


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("src/**", "src/a/b.py", True),
        ("src/**", "src", True),
        ("src/**", "src2/a", False),
        ("**/*.py", "a/b/c.py", True),
        ("**/*.py", "c.py", True),
        ("*.py", "a/c.py", False),
        ("a/**/z", "a/z", True),
        ("secrets/", "secrets/a/b", True),
        ("?.txt", "a.txt", True),
        ("./src/a", "src/a", True),
    ],
)
def test_path_patterns_cross_folders_only_with_two_stars(pattern: str, path: str, matches: bool) -> None:
    decision = evaluate(_write(path), _rules(allow=[f"write_file({pattern})"]))

    assert (decision.verdict == "allow") is matches


def test_a_literal_rule_takes_its_star_as_it_is() -> None:
    rule = parse_rule("bash(echo 'a*')", is_literal=True)
    literal = parse_rule("bash(echo a*)", is_literal=True)
    settings = PolicySettings(rules=parse_rules().__class__(allow=(rule, literal)))

    assert evaluate(_bash("echo 'a*'"), settings).verdict == "allow"
    assert evaluate(_bash("echo abc"), settings).verdict == "ask"


def test_a_decision_says_why_no_rule_could_allow_a_command() -> None:
    assert evaluate(_bash("ls $HOME"), _rules(allow=["bash"])) == Decision(
        "ask", "risk high", "bash has high risk. It cannot be allowed by a rule: the shell would expand a '$'."
    )


def test_only_bare_deny_rules_hide_a_tool() -> None:
    rules = parse_rules(deny=["bash", "write_file(x)", "mcp__hub__*"]).deny

    assert hidden_tools(rules, ["bash", "write_file", "mcp__hub__a"]) == {"bash", "mcp__hub__a"}


_RULE_TEXTS = st.sampled_from(
    [
        "bash",
        "bash(git *)",
        "bash(rm *)",
        "bash(*)",
        "read_file(s/**)",
        "write_file",
        "write(src/**)",
        "*",
        "edit(**)",
    ]
)
_LISTS = st.lists(_RULE_TEXTS, max_size=3)
_FACTS = st.one_of(
    st.builds(
        _bash, st.sampled_from(["git log", "rm x", "git a; rm b", "echo $(rm c)", "ls"]), st.sampled_from(MODES)
    ),
    st.builds(_write, st.sampled_from(["src/a", ".env", "s/x"]), st.sampled_from(MODES)),
    st.builds(_read, st.sampled_from(["src/a", "s/x"]), st.sampled_from(MODES)),
)
_STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


@given(_FACTS, _LISTS, _LISTS, _LISTS, _RULE_TEXTS)
def test_another_deny_rule_never_loosens(
    facts: CallFacts, allow: list[str], ask: list[str], deny: list[str], more: str
) -> None:
    before = evaluate(facts, _rules(allow=allow, ask=ask, deny=deny))
    after = evaluate(facts, _rules(allow=allow, ask=ask, deny=[*deny, more]))

    assert _STRICTNESS[after.verdict] >= _STRICTNESS[before.verdict]


@given(_FACTS, _LISTS, _LISTS, _LISTS, _RULE_TEXTS)
def test_another_allow_rule_never_changes_a_deny(
    facts: CallFacts, allow: list[str], ask: list[str], deny: list[str], more: str
) -> None:
    before = evaluate(facts, _rules(allow=allow, ask=ask, deny=deny))
    after = evaluate(facts, _rules(allow=[*allow, more], ask=ask, deny=deny))

    assert after.verdict == "deny" or before.verdict != "deny" or facts.mode == "dontAsk"


@given(_FACTS, _LISTS, _LISTS, _LISTS)
def test_dont_ask_never_asks_and_plan_never_changes_anything(
    facts: CallFacts, allow: list[str], ask: list[str], deny: list[str]
) -> None:
    decision = evaluate(facts, _rules(allow=allow, ask=ask, deny=deny))

    assert facts.mode != "dontAsk" or decision.verdict != "ask"
    assert facts.mode != "plan" or facts.kind == "readonly" or decision.verdict == "deny"


@given(_FACTS, _LISTS, _LISTS, _LISTS)
def test_the_order_within_a_list_means_nothing(
    facts: CallFacts, allow: list[str], ask: list[str], deny: list[str]
) -> None:
    forward = evaluate(facts, _rules(allow=allow, ask=ask, deny=deny))
    backward = evaluate(facts, _rules(allow=allow[::-1], ask=ask[::-1], deny=deny[::-1]))

    assert forward.verdict == backward.verdict
