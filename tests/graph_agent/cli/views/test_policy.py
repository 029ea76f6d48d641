import json
from pathlib import Path

import pytest

from graph_agent.errors import UnknownId, UsageError
from graph_agent.wording import format_age
from tests.fakes.database_rows import START, Rows
from tests.fakes.light_commands import json_of, run, text_of
from tests.scenarios.command import Command


@pytest.mark.parametrize(
    ("tool", "arguments", "mode", "code"),
    [
        ("read", '{"path": "a"}', (), 0),
        ("bash", '{"command": "touch a"}', (), 3),
        ("bash", '{"command": "touch a"}', ("--mode", "dontAsk"), 4),
        ("bash", "touch a", (), 3),
        ("bash", "true", (), 0),
        ("read", "a", (), 0),
    ],
)
def test_the_exit_code_is_the_decision(
    rows: Rows, tool: str, arguments: str, mode: tuple[str, ...], code: int
) -> None:
    checked = run("policy", "check", tool, arguments, *mode, "--json", "--db", str(rows.path))

    assert (checked.exit_code, set(json.loads(checked.stdout))) == (code, {"decision", "rule", "reason", "parsed"})


def test_a_check_shows_what_would_run_and_why_no_rule_allows_it(rows: Rows) -> None:
    checked = run("policy", "check", "bash", '{"command": "echo $(rm a) > b"}', "--db", str(rows.path))

    for part in ("decision: ask", "runs: rm a", "No rule can allow it: "):
        assert part in checked.stdout


@pytest.mark.parametrize(("mode", "is_said"), [("default", True), ("bypassPermissions", False)])
def test_a_check_of_a_memory_note_says_that_a_conversation_may_decide_otherwise(
    rows: Rows, mode: str, *, is_said: bool
) -> None:
    checked = run("policy", "check", "save_memory", '{"fact": "x"}', "--mode", mode, "--db", str(rows.path))

    assert "decision: allow" in checked.stdout
    assert ("In a conversation with untrusted content it asks first" in checked.stdout) is is_said


@pytest.mark.parametrize("arguments", [("{x",), ("{}", "--workspace", "/nonexistent")])
def test_a_wrong_policy_check_is_a_usage_error(arguments: tuple[str, ...]) -> None:
    assert isinstance(run("policy", "check", "bash", *arguments).exception, UsageError)
    several = run("policy", "check", "write_file", "a.txt").exception
    assert isinstance(several, UsageError)
    assert str(several) == "write_file requires file_path, content. Give its arguments as one JSON object."


def test_saved_permissions_apply_and_are_shown_in_order_except_those_of_one_thread(
    rows: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows.grant("bash(make a)", scope="user")
    rows.grant("bash(make b)", scope="project", workspace=str(tmp_path))
    rows.grant("bash(make c)", scope="project", workspace="/elsewhere")
    rows.grant("bash(make d)", scope="thread", workspace=str(tmp_path))

    shown = [(rule["step"], rule["rule"], rule["source"]) for rule in json_of(rows, "policy", "show")["rules"]]
    checked = [
        run("policy", "check", "bash", f'{{"command": "make {name}"}}', "--db", str(rows.path)).exit_code
        for name in "abcd"
    ]

    place = shown.index(("saved permissions", "bash(make a)", "grant 1"))
    assert shown[place + 1] == ("saved permissions", "bash(make b)", "grant 2")
    assert [step for step, *_ in shown[place - 1 : place + 3 : 3]] == [
        "changes to the memory file ask if the conversation contains untrusted content",
        "tools that do not declare what they access ask while deny rules exist",
    ]
    assert checked == [0, 0, 3, 3]
    thread = run("policy", "check", "bash", '{"command": "make d"}', "--db", str(rows.path)).stdout
    assert "saved permission of thread t1" in thread


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home" / "config.toml"


def test_a_deny_rule_that_does_not_hold_completely_is_named(
    rows: Rows, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(config.parent)
    (config.parent / "src").mkdir()
    config.write_text('[policy]\ndeny = ["read_file(src)", "read_file(a)", "read_file"]\n')

    shown, named = text_of(rows, "policy", "show"), json_of(rows, "policy", "show")["unenforced"]

    reason = f"{config.parent}/src is a folder, and what is in it is named by {config.parent}/src/**"
    assert named == [{"rule": "read_file(src)", "reason": reason}]
    assert shown.splitlines()[-1] == f"! A command may get past deny read_file(src): {reason}"


def test_rules_and_permissions_are_listed_with_their_source(rows: Rows, config: Path) -> None:
    config.write_text('[policy]\nallow = ["bash(git status*)"]\ndeny = ["bash(rm *)"]\n')
    rows.grant("bash(ls)", "bash(cat '\x1b[2J')")
    rows.grant("write_file(/w/a)", scope="project", folder="sub")
    rows.grant("bash(pwd)", scope="user", mode="acceptEdits")

    assert text_of(rows, "policy", "list").splitlines() == [
        f"deny   bash(rm *)  ({config})",
        f"allow  bash(git status*)  ({config})",
        "",
        "permission 1  in thread t1, in mode default and more permissive ones",
        "  │ bash(ls)",
        "  │ bash(cat '\\x1b[2J')",
        f"  given {format_age(START)} by you, in another terminal, with call call_a",
        "permission 2  in /w, from folder sub, in mode default and more permissive ones",
        "  │ write_file(/w/a)",
        f"  given {format_age(START)} by you, in another terminal, with call call_a",
        "permission 3  everywhere, in mode acceptEdits and more permissive ones",
        "  │ bash(pwd)",
        f"  given {format_age(START)} by you, in another terminal, with call call_a",
        "Revoke one with: graph-agent policy revoke ID",
    ]


def test_rules_and_permissions_can_be_printed_as_json(rows: Rows, config: Path) -> None:
    config.write_text('[policy]\nask = ["bash(git push*)"]\n')
    rows.grant("bash(ls)")

    listed = json_of(rows, "policy", "list")

    grant = {
        "id": 1,
        "scope": "thread",
        "rules": ["bash(ls)"],
        "mode": "default",
        "thread_id": "t1",
        "workspace": "/w",
        "call_id": "call_a",
        "by": "cli pid 7",
        "at": START,
        "folder": ".",
        "effect": "allow",
        "folders": [],
        "prefixes": [],
    }
    assert listed == {
        "rules": [{"list": "ask", "rule": "bash(git push*)", "source": str(config)}],
        "grants": [grant],
    }
    assert json_of(rows, "policy", "revoke", "1") == {"revoked": grant}
    assert json_of(rows, "policy", "list")["grants"] == []


def test_without_rules_and_permissions_the_list_says_so(rows: Rows, config: Path) -> None:
    config.write_text("")

    assert text_of(rows, "policy", "list") == "No rules and no saved permissions.\n"
    absent = run("policy", "list", "--json", "--db", str(rows.path.with_name("none.db")))
    assert absent.stdout == '{\n  "rules": [],\n  "grants": []\n}\n'


def test_a_revoked_permission_is_printed_and_an_unknown_id_refused(rows: Rows) -> None:
    rows.grant("bash(ls)")

    assert text_of(rows, "policy", "revoke", "1") == "Revoked permission 1:\n  │ bash(ls)\n"
    assert isinstance(run("policy", "revoke", "1", "--db", str(rows.path)).exception, UnknownId)


@pytest.mark.parametrize(
    ("expected", "code", "line"),
    [
        ("deny", 1, "LOOSER: a-1: allow, expected deny"),
        ("ask", 1, "LOOSER: a-1: allow, expected ask"),
        ("allow", 0, "FAMILY  RIGHT  STRICTER  LOOSER"),
    ],
)
def test_a_decision_that_is_too_permissive_exits_with_1(
    tmp_path: Path, expected: str, code: int, line: str
) -> None:
    file = tmp_path / "cases"
    file.write_text(json.dumps({"id": "a-1", "tool": "read", "args": {"path": "x"}, "expected": expected}))

    text, data = run("policy", "test", str(file)), run("policy", "test", str(file), "--json")

    printed = json.loads(data.stdout)
    assert (text.exit_code, data.exit_code, text.stdout.splitlines()[0][: len(line)]) == (code, code, line)
    assert ([one["decision"] for one in printed["cases"]], printed["score"]["looser"]) == (["allow"], code)


@pytest.mark.slow
def test_a_saved_permission_counts_until_it_is_revoked(tmp_path: Path) -> None:
    command = Command(tmp_path)
    command("run", "run touch a", "--thread", "t1")
    [asked] = command.json("approvals", "list")["approvals"]

    allowed = command.json("approvals", "approve", asked["call_id"], "--always", "--scope", "project")
    resumed = command("run", "--resume", "t1")
    other_thread = command("run", "run touch a", "--thread", "t2")
    other_command = command("run", "run touch b", "--thread", "t3")
    [grant] = command.json("policy", "list")["grants"]
    revoked = command("policy", "revoke", str(grant["id"]))
    again = command("run", "run touch a", "--thread", "t4")

    coverage = "This allows exactly these words in the top folder of the workspace, and nothing else."
    assert allowed["always"] == {"scope": "project", "rules": ["bash(touch a)"], "coverage": coverage}
    codes = [done.returncode for done in (resumed, other_thread, other_command, revoked, again)]
    assert codes == [0, 0, 3, 0, 3]
    [unasked] = command.json("calls", "t2")["calls"]
    assert unasked["reason"] == "Always allowed by grant 1 (this project): 'bash(touch a)'."
    assert (grant["workspace"], grant["mode"], grant["thread_id"]) == (str(command.workspace), "default", "t1")
