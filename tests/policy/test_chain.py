from dataclasses import replace
from os.path import normpath
from pathlib import PurePath
from typing import Any

import pytest

from policy import (
    DEFAULT_TOOL_RISK,
    DEFAULT_UNKNOWN_RISK,
    MODES,
    CallFacts,
    Decision,
    Grant,
    PathFact,
    PolicySettings,
    Sandboxing,
    evaluate,
    hidden_tools,
    host_access,
    is_reserved,
    parse_rule,
    parse_rules,
    parse_shell,
    propose,
    risk_of,
)
from policy.chain import mentioned_reserved_path
from tools.shell_ops.bash_parser import parse_bash

_WS = PurePath("/w/proj")
_HOME = PurePath("/home/u")


def _bash(command: str, mode: str = "default") -> CallFacts:
    text = parse_shell(command, parse_bash)
    redirects = tuple(_path(path, "write", resolved=normpath(_WS / path)) for path in text.written)
    facts = CallFacts("bash", mode, "high", "execute", _WS, command=command, shell=text, redirects=redirects)
    folders = dict.fromkeys(folder for one in text.commands for folder in one.folders if folder)
    return replace(facts, folders=tuple(_path(folder, resolved=normpath(_WS / folder)) for folder in folders))


def _path(given: str, access: Any = "read", **facts: Any) -> PathFact:
    resolved = PurePath(facts.pop("resolved", _WS / given))
    return PathFact(given, resolved, access, inside=resolved.is_relative_to(_WS), **facts)


def _read(given: str, mode: str = "default", **facts: Any) -> CallFacts:
    return CallFacts(
        "read_file", mode, "low", "readonly", _WS, allowed_in_plan_mode=True, paths=(_path(given, **facts),)
    )


def _write(given: str, mode: str = "default", *, tool: str = "write_file", **facts: Any) -> CallFacts:
    access = "edit" if tool == "edit_file" else "write"
    return CallFacts(tool, mode, "medium", "write", _WS, paths=(_path(given, access, **facts),))


def _rules(**lists: list[str]) -> PolicySettings:
    return PolicySettings(rules=parse_rules(**lists), home=_HOME)


@pytest.mark.parametrize(
    ("facts", "settings", "verdict", "rule"),
    [
        # 1 hard refusals, also in bypass
        (_bash("rm -rf /", "bypassPermissions"), _rules(allow=["bash"]), "deny", "destructive command"),
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
def test_the_first_step_with_an_opinion_decides(
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
def test_a_star_matches_any_text_inside_one_command(pattern: str, command: str, matches: bool) -> None:
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
def test_only_two_stars_cross_folders(pattern: str, path: str, matches: bool) -> None:
    decision = evaluate(_write(path), _rules(allow=[f"write_file({pattern})"]))

    assert (decision.verdict == "allow") is matches


def test_a_star_in_a_literal_rule_is_literal() -> None:
    rule = parse_rule("bash(echo 'a*')", is_literal=True)
    literal = parse_rule("bash(echo a*)", is_literal=True)
    settings = PolicySettings(rules=parse_rules().__class__(allow=(rule, literal)))

    assert evaluate(_bash("echo 'a*'"), settings).verdict == "allow"
    assert evaluate(_bash("echo abc"), settings).verdict == "ask"


def test_a_decision_says_why_no_rule_could_allow_a_command() -> None:
    assert evaluate(_bash("ls $HOME"), _rules(allow=["bash"])) == Decision(
        "ask",
        "risk high",
        "bash has high risk: it cannot be judged before it runs: the shell would expand a '$'.",
    )


@pytest.mark.parametrize(
    ("command", "names"),
    [("cat a", "names"), ("cat $x", "may name"), ("cat ?", "may name"), ("grep -r x .", "may name")],
)
def test_only_a_path_in_the_text_is_said_to_be_named(command: str, names: str) -> None:
    decision = evaluate(_bash(command), _rules(deny=["read(a)"]))

    assert decision.reason == f"The command {names} a path that 'read(a)' denies."


@pytest.mark.parametrize(
    ("rule", "sandbox", "what_holds"),
    [
        ("read(a)", "closed", " The sandbox hides it; outside the sandbox the command can reach it."),
        (
            "write(a)",
            "open",
            " The sandbox keeps it read-only; outside the sandbox the command can reach it.",
        ),
        ("read(a)", "none", ""),
    ],
)
def test_a_question_about_a_denied_path_says_what_the_sandbox_holds(
    rule: str, sandbox: Sandboxing, what_holds: str
) -> None:
    decision = evaluate(replace(_bash("tee a"), sandbox=sandbox), _rules(deny=[rule]))

    assert decision == Decision(
        "ask", f"deny {rule}", f"The command names a path that {rule!r} denies.{what_holds}"
    )


def test_only_deny_rules_without_a_pattern_hide_a_tool() -> None:
    rules = parse_rules(deny=["bash", "write_file(x)", "mcp__hub__*"]).deny

    assert hidden_tools(rules, ["bash", "write_file", "mcp__hub__a"]) == {"bash", "mcp__hub__a"}


_PROJECT = PurePath("/home/u/proj")
_RESERVED = (PurePath("/home/u/.config/graph-agent"), PurePath("/home/u/.local/share/graph-agent"))
_MEMORY = (PurePath("/home/u/.config/graph-agent/CONTEXT.md"),)


@pytest.mark.parametrize(
    ("path", "reserved"),
    [
        ("/home/u/.config/graph-agent", True),
        ("/home/u/.config/graph-agent/config.toml", True),
        ("/home/u/.local/share/graph-agent/graph-agent.db", True),
        ("/home/u/.config/graph-agent/CONTEXT.md", False),
        ("/home/u/.config/graph-agent-other/x", False),
        ("/home/u/proj/a", False),
    ],
)
def test_the_agents_own_files_are_reserved_except_its_memory(path: str, reserved: bool) -> None:
    assert is_reserved(PurePath(path), _PROJECT, _RESERVED, _MEMORY) is reserved


def test_a_workspace_inside_a_reserved_folder_can_be_used() -> None:
    reserved = (PurePath("/data"), PurePath("/data/ws/agent.db"))
    workspace = PurePath("/data/ws")

    assert not is_reserved(PurePath("/data/ws/a"), workspace, reserved)
    assert is_reserved(PurePath("/data/agent.db"), workspace, reserved)
    assert is_reserved(PurePath("/data/ws/agent.db"), workspace, reserved)


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("cat /home/u/.config/graph-agent/config.toml", "/home/u/.config/graph-agent"),
        ("cat ~/.config/graph-agent/config.toml", "/home/u/.config/graph-agent"),
        ("rm -r $HOME/.local/share/graph-agent", "/home/u/.local/share/graph-agent"),
        ("ls ~/.config/graph-agent-other", ""),
        ("pip install graph-agent", ""),
    ],
)
def test_a_command_that_names_a_reserved_path_is_found(command: str, named: str) -> None:
    assert mentioned_reserved_path(command, _PROJECT, _RESERVED) == named


@pytest.mark.parametrize(
    ("allow", "deny", "mode", "access"),
    [
        ([], [], "default", (False, False, False, False)),
        ([], [], "bypassPermissions", (False, False, True, False)),
        ([], [], "dontAsk", (True, False, False, False)),
        (["web_fetch(h:8080)"], [], "default", (False, False, True, True)),
        (["web_fetch(h)"], [], "default", (False, False, False, False)),
        (["web_fetch(other:8080)"], [], "default", (False, False, False, False)),
        (["web_fetch"], [], "default", (False, False, True, False)),
        (["web_fetch(*:*)"], [], "default", (False, False, True, False)),
        (["web_fetch(h:8080)"], ["web_fetch(h)"], "bypassPermissions", (True, True, False, True)),
    ],
)
def test_a_host_is_denied_allowed_or_named(
    allow: list[str], deny: list[str], mode: str, access: tuple[bool, bool, bool, bool]
) -> None:
    facts = CallFacts(
        "web_fetch", mode, "medium", "readonly", PurePath("/w"), allowed_in_plan_mode=True, hosts=("h:8080",)
    )

    assert host_access(facts, PolicySettings(rules=parse_rules(allow=allow, deny=deny))) == access


@pytest.mark.parametrize(
    ("cwd", "folder"), [(None, "."), ("/w", "."), ("/w/a/b", "a/b"), ("/wider", "/wider"), ("/", "/")]
)
def test_a_command_starts_in_the_workspace_or_in_the_current_folder(cwd: str | None, folder: str) -> None:
    start = None if cwd is None else PurePath(cwd)
    facts = CallFacts("bash", "default", "high", "execute", PurePath("/w"), cwd=start, command="ls")

    assert facts.folder == folder


def test_the_risk_table_uses_only_known_levels() -> None:
    assert set(DEFAULT_TOOL_RISK.values()) == {"low", "medium", "high"}
    assert DEFAULT_UNKNOWN_RISK == "medium"


@pytest.mark.parametrize(
    ("tool", "declared", "is_own", "settings", "risk"),
    [
        ("bash", "low", True, {}, "high"),
        ("bash", "low", True, {"bash": "medium"}, "medium"),
        ("my_tool", "low", True, {}, "low"),
        ("my_tool", "high", True, {}, "high"),
        ("their_tool", "low", False, {}, "medium"),
        ("their_tool", "high", False, {}, "high"),
        ("their_tool", "high", False, {"their_tool": "low"}, "low"),
        ("read_file", "low", False, {}, "medium"),
        ("unknown", None, True, {}, "medium"),
        ("odd", "harmless", True, {}, "medium"),
    ],
)
def test_risk_comes_from_settings_then_table_then_declaration(
    tool: str, declared: str | None, is_own: bool, settings: dict[str, str], risk: str
) -> None:
    assert risk_of(tool, declared, is_own=is_own, settings=settings) == risk


_RULES_ABOUT_MEMORY = {
    "none": _rules(),
    "allow by name": _rules(allow=["save_memory", "write_file", "edit_file"]),
    "allow by path": _rules(allow=["write_file(/home/u/**)", "save_memory(**)"]),
    "granted": replace(_rules(), grants=(Grant("always", "default", parse_rules(allow=["save_memory"]).allow),)),
    "ask": _rules(ask=["save_memory", "write_file"]),
    "deny": _rules(deny=["save_memory", "write_file"]),
}
_TOOLS_FOR_MEMORY = {"save_memory": "low", "write_file": "medium", "edit_file": "medium"}


@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "plan"])
@pytest.mark.parametrize("name", _RULES_ABOUT_MEMORY)
@pytest.mark.parametrize("tool", _TOOLS_FOR_MEMORY)
def test_a_change_of_the_memory_asks_for_untrusted_content_whatever_allows_it(
    mode: str, name: str, tool: str
) -> None:
    settings = _RULES_ABOUT_MEMORY[name]
    path = _path("CONTEXT.md", "write", resolved=_MEMORY[0], is_memory=True)
    facts = CallFacts(tool, mode, _TOOLS_FOR_MEMORY[tool], "write", _WS, paths=(path,))  # type: ignore[arg-type]  # a table of texts

    clean, tainted = (evaluate(one, settings) for one in (facts, replace(facts, untrusted_content="a page")))

    if name == "deny" or mode == "bypassPermissions":
        assert tainted == clean
    else:
        assert tainted.verdict == ("deny" if mode == "dontAsk" else "ask")
        assert name == "ask" or "untrusted content" in tainted.rule
        assert not propose(replace(facts, untrusted_content="a page"), settings, tool).rules


def test_untrusted_content_matters_only_to_changes_of_the_memory() -> None:
    read = _path("CONTEXT.md", resolved=_MEMORY[0], is_memory=True)
    facts = CallFacts("read_file", "default", "low", "readonly", _WS, paths=(read,), untrusted_content="a page")

    assert [evaluate(one, _rules()).verdict for one in (facts, replace(facts, paths=(_path("a"),)))] == [
        "allow"
    ] * 2
