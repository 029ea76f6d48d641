"""What policy gets to know of a call: its paths by every name, its command, its hosts, its kind and risk."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from graph_agent.ports import Scope
from graph_agent.toolbox.facts import (
    PolicyContext,
    call_facts,
    command_facts,
    format_command,
    host_permission,
    kind_of,
    path_fact,
    with_command,
)
from policy import CallFacts, PathFact, PolicySettings, parse_rules
from tools.base import (
    BaseTool,
    CommandTarget,
    HostPermission,
    HostTarget,
    PathTarget,
    Target,
    ToolKind,
    ToolRiskLevel,
)
from tools.file_ops.write_file import WriteFileTool
from tools.paths import PathRefused
from tools.registry import Origin

_SCOPE = Scope("t", "default")


class Fetcher(BaseTool):
    name = "fetcher"
    kind = ToolKind.READONLY
    risk_level = ToolRiskLevel.LOW

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        return [HostTarget("h:80")]


class Runner(BaseTool):
    name = "runner"

    def targets(self, args: Mapping[str, Any]) -> list[Target]:
        return [CommandTarget("a"), CommandTarget("b"), PathTarget("log", "write")]


class Sometimes(BaseTool):
    name = "sometimes"
    kind = ToolKind.READONLY

    def is_read_only(self, args: Mapping[str, Any]) -> bool:
        return not args.get("write")


@pytest.fixture
def ws(tmp_path: Path) -> Path:
    workspace = tmp_path.resolve() / "ws"
    workspace.mkdir()
    return workspace


def _context(ws: Path, *deny: str, **settings: Any) -> PolicyContext:
    return PolicyContext(ws, PolicySettings(rules=parse_rules(deny=list(deny)), **settings))


def test_facts_of_a_call_hold_its_resolved_paths(ws: Path) -> None:
    context = _context(ws, reserved=(ws.parent,))
    scope = Scope("t", "plan", str(ws / "sub"))

    assert call_facts(WriteFileTool(), {"file_path": "../x"}, scope, context, "builtin") == CallFacts(
        tool="write_file",
        mode="plan",
        risk="medium",
        kind="write",
        workspace=ws,
        allowed_in_plan_mode=False,
        cwd=ws / "sub",
        paths=(PathFact("../x", ws.parent / "x", "write", inside=False, reserved=True),),
        command=None,
        signature="../x",
    )


def test_a_third_party_tool_has_at_least_medium_risk_and_a_host_is_its_signature(ws: Path) -> None:
    facts = call_facts(Fetcher(), {}, _SCOPE, _context(ws), "mcp")

    assert (facts.risk, facts.signature, facts.allowed_in_plan_mode) == ("medium", "h:80", True)


@pytest.mark.parametrize(("origin", "risk"), [("mcp", "low"), ("plugin", "medium"), (None, "medium")])
def test_only_the_risk_the_user_set_for_a_server_lowers_that_of_its_tools(
    ws: Path, origin: Origin | None, risk: str
) -> None:
    tool = Fetcher()
    tool.risk_is_configured = True

    assert call_facts(tool, {}, _SCOPE, _context(ws), origin).risk == risk


def test_several_commands_are_evaluated_as_one_text(ws: Path) -> None:
    facts = call_facts(Runner(), {}, _SCOPE, _context(ws), "builtin")

    assert (facts.command, [path.given for path in facts.paths]) == ("a\nb", ["log"])


def test_a_path_that_cannot_be_resolved_is_refused(ws: Path) -> None:
    with pytest.raises(PathRefused):
        call_facts(WriteFileTool(), {"file_path": "a\0"}, _SCOPE, _context(ws), "builtin")
    with pytest.raises(PathRefused):
        command_facts(CommandTarget("a", "x\0y"), ws, _context(ws))


def test_the_kind_depends_on_the_arguments() -> None:
    assert [kind_of(Sometimes(), {"write": write}) for write in (False, True)] == ["readonly", "execute"]


def test_a_host_that_a_fetch_is_redirected_to_is_evaluated_by_rules_and_mode() -> None:
    rules = parse_rules(allow=["web_fetch(docs.python.org)"], deny=["web_fetch(evil.example)"])
    context = PolicyContext(Path("/w"), PolicySettings(rules=rules))
    hosts = ("docs.python.org", "evil.example", "127.0.0.1:8000")

    assert [host_permission(host, _SCOPE, context) for host in hosts] == [
        HostPermission(may_follow=True, may_be_private=True),
        HostPermission(is_denied=True, is_closed=True),
        HostPermission(),
    ]


def test_a_path_fact_follows_links_and_knows_reserved_paths(ws: Path) -> None:
    (ws / "link").symlink_to("own")
    context = PolicyContext(ws / "w", PolicySettings(reserved=(ws / "own",)))

    fact = path_fact(PathTarget("link/x"), context, base=ws)

    assert fact == PathFact("link/x", ws / "own/x", "read", inside=False, reserved=True)


def test_a_further_folder_counts_as_inside_while_relative_paths_start_at_the_workspace(ws: Path) -> None:
    (ws / "lib").mkdir()
    context = PolicyContext(ws / "w", PolicySettings(), (ws / "lib",))
    given = (str(ws / "lib" / "x"), "../lib/x", "../lib-evil/x", "x")

    assert [path_fact(PathTarget(text), context).inside for text in given] == [True, True, False, True]


@pytest.mark.parametrize(("rule", "aliases"), [("read(secret)", ("secret",)), ("ask", ()), ("read(sec*)", ())])
def test_a_hard_link_of_a_file_in_a_rule_has_its_name_too(rule: str, aliases: tuple[str, ...], ws: Path) -> None:
    (ws / "secret").write_text("x")
    (ws / "twin").hardlink_to(ws / "secret")

    found = [path_fact(PathTarget(name), _context(ws, rule)).aliases for name in ("twin", "secret", "new")]

    assert found == [tuple(ws / name for name in aliases), (), ()]


@pytest.mark.parametrize(
    "rule",
    ["read(link/**)", "ask(x)", "read(link/)", "read(link/*.py)", "read(sub/../link/**)", "read(../ws/link/*)"],
)
def test_a_path_below_the_target_of_a_link_in_a_rule_has_that_name_too(rule: str, ws: Path) -> None:
    (ws / "src").mkdir()
    (ws / "link").symlink_to("src")

    found = [path_fact(PathTarget(name), _context(ws, rule)).aliases for name in ("src/new.py", "other/new.py")]

    assert found == [() if rule == "ask(x)" else (ws / "link/new.py",), ()]


@pytest.mark.parametrize(
    ("rule", "other"),
    [
        ("read(la*/**)", "latest/new.py"),
        ("read(?a*st/new.py)", "latest/new.py"),
        ("read(all/*/src/*)", "all/one/src/new.py"),
        ("read(n*/*.py)", "names/a.py"),
        ("read(**/latest/*)", ""),
        ("read(la[t]est/*)", ""),
    ],
)
def test_links_that_the_glob_of_a_rule_matches_are_followed(rule: str, other: str, ws: Path) -> None:
    for folder in ("src", "all", "names"):
        (ws / folder).mkdir()
    (ws / "src/new.py").touch()
    for link, target in (("latest", "src"), ("all/one", ".."), ("names/a.py", "../src/new.py"), ("loop", "loop")):
        (ws / link).symlink_to(target)

    aliases = path_fact(PathTarget("src/new.py"), _context(ws, rule)).aliases

    assert (ws / other in aliases) if other else (aliases == ())


def test_redirections_are_resolved_through_links_from_every_folder_the_command_may_be_in(ws: Path) -> None:
    (ws / "sub").mkdir()
    (ws / "out").symlink_to(ws.parent)

    facts = command_facts(CommandTarget("cd out && a > x", "."), ws / "sub", _context(ws))

    assert facts.cwd == ws
    assert facts.redirects == (
        PathFact("x", ws / "x", "write", inside=True),
        PathFact("out/x", ws.parent / "x", "write", inside=False),
    )


def test_a_redirection_is_outside_if_it_cannot_be_resolved_or_its_file_has_another_name(ws: Path) -> None:
    (ws / "a").write_text("x")
    (ws / "b").hardlink_to(ws / "a")
    (ws / "c").write_text("x")
    (ws / "loop").symlink_to("loop")

    redirects = command_facts(CommandTarget("x > a; x > c; x > new; x > loop"), ws, _context(ws)).redirects

    found = {path.given: path.inside for path in redirects}
    assert found == {"a": False, "c": True, "new": True, "loop": False}


@pytest.mark.parametrize(
    "command", ["cat twin", "cat link", "cat --file=link", "curl -d @link", "grep -flink x", "cat < link"]
)
def test_a_word_mentions_the_file_it_leads_to_by_a_link_or_another_name(command: str, ws: Path) -> None:
    (ws / ".env").write_text("x")
    (ws / "twin").hardlink_to(ws / ".env")
    (ws / "link").symlink_to(".env")

    assert ws / ".env" in command_facts(CommandTarget(command), ws, _context(ws, "read(.env)")).mentions


@pytest.mark.parametrize(
    ("command", "lines"),
    [
        ("ls -l", ["in      {ws}"]),
        ("git status && 'rm' x", ["runs    git status", "runs    rm x", "in      {ws}"]),
        ("pwd > x; ls > x", ["runs    pwd", "runs    ls", "writes  {ws}/x", "in      {ws}"]),
        (
            "echo $(id) > ../x",
            [
                "runs    echo $(id)",
                "runs    id",
                "writes  {up}/x  (not in the workspace)",
                "unclear it substitutes a command",
                "in      {ws}",
            ],
        ),
    ],
)
def test_a_command_is_shown_as_it_was_understood(command: str, lines: list[str], ws: Path) -> None:
    bare = CallFacts("bash", "default", "high", "execute", ws)
    facts = with_command(bare, command_facts(CommandTarget(command), ws, _context(ws)))

    assert facts.shell is not None
    expected = "\n".join(lines).replace("{ws}", str(ws)).replace("{up}", str(ws.parent))
    assert format_command(facts, facts.shell) == expected
