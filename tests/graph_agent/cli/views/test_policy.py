import json
from pathlib import Path

import pytest
import typer

from graph_agent.cli.views.policy import check_call, run_cases, show_policy
from graph_agent.cli.views.table import format_time
from graph_agent.errors import UnknownId, UsageError
from tests.fakes.database_rows import START, Rows
from tests.fakes.light_commands import json_of, run, text_of


@pytest.mark.parametrize(
    ("tool", "arguments", "mode", "code"),
    [
        ("read", '{"path": "a"}', None, 0),
        ("bash", '{"command": "ls"}', None, 3),
        ("bash", '{"command": "ls"}', "dontAsk", 4),
    ],
)
def test_the_exit_code_is_the_decision(
    tool: str, arguments: str, mode: str | None, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as left:
        check_call(tmp_path / "none", tool, arguments, mode=mode, workspace=str(tmp_path), as_json=True)

    assert left.value.exit_code == code
    assert set(json.loads(capsys.readouterr().out)) == {"decision", "rule", "reason", "parsed"}


def test_a_person_is_told_what_would_run_and_why_no_rule_allows_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit):
        check_call(
            tmp_path / "none",
            "bash",
            '{"command": "echo $(rm a) > b"}',
            mode=None,
            workspace=str(tmp_path),
            as_json=False,
        )

    told = capsys.readouterr().out
    assert "decision: ask" in told
    assert "runs: rm a" in told
    assert "No rule can allow it: " in told


@pytest.mark.parametrize(("arguments", "folder"), [("x", None), ("[]", None), ("{}", "/nonexistent")])
def test_wrong_usage_is_told(arguments: str, folder: str | None, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        check_call(tmp_path / "none", "bash", arguments, mode=None, workspace=folder, as_json=False)


def test_what_judges_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    show_policy(tmp_path / "none", None, as_json=False)

    assert "hard refusals" in capsys.readouterr().out


def test_what_was_allowed_always_counts_and_is_shown_in_its_place_but_for_that_of_one_thread(
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

    place = shown.index(("what was allowed always", "bash(make a)", "grant 1"))
    assert shown[place + 1] == ("what was allowed always", "bash(make b)", "grant 2")
    assert [step for step, *_ in shown[place - 1 : place + 3 : 3]] == [
        "commands that name a path which deny rules close ask",
        "acceptEdits allows file changes in the workspace",
    ]
    assert checked == [0, 0, 3, 3]
    thread = run("policy", "check", "bash", '{"command": "make d"}', "--db", str(rows.path)).stdout
    assert "saved permission of thread t1" in thread


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home" / "config.toml"


def test_rules_and_grants_are_listed_with_where_they_come_from(rows: Rows, config: Path) -> None:
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
        f"  given {format_time(START)} by cli pid 7, with call call_a",
        "permission 2  in /w, from folder sub, in mode default and more permissive ones",
        "  │ write_file(/w/a)",
        f"  given {format_time(START)} by cli pid 7, with call call_a",
        "permission 3  everywhere, in mode acceptEdits and more permissive ones",
        "  │ bash(pwd)",
        f"  given {format_time(START)} by cli pid 7, with call call_a",
        "Revoke one with: graph-agent policy revoke ID",
    ]


def test_rules_and_grants_as_json(rows: Rows, config: Path) -> None:
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
    }
    assert listed == {
        "rules": [{"list": "ask", "rule": "bash(git push*)", "source": str(config)}],
        "grants": [grant],
    }
    assert json_of(rows, "policy", "revoke", "1") == {"revoked": grant}
    assert json_of(rows, "policy", "list")["grants"] == []


def test_nothing_is_said_to_be_nothing(rows: Rows, config: Path) -> None:
    config.write_text("")

    assert text_of(rows, "policy", "list") == "No rules and no saved permissions.\n"
    absent = run("policy", "list", "--json", "--db", str(rows.path.with_name("none.db")))
    assert absent.stdout == '{\n  "rules": [],\n  "grants": []\n}\n'


def test_what_was_taken_back_is_shown_and_an_unknown_id_is_refused(rows: Rows) -> None:
    rows.grant("bash(ls)")

    assert text_of(rows, "policy", "revoke", "1") == "Revoked permission 1:\n  │ bash(ls)\n"
    assert isinstance(run("policy", "revoke", "1", "--db", str(rows.path)).exception, UnknownId)


_CASE = {"id": "a-1", "tool": "read", "args": {"path": "x"}}


def test_a_looser_decision_is_told_and_ends_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cases"
    file.write_text(json.dumps({**_CASE, "expected": "deny"}))

    with pytest.raises(typer.Exit) as left:
        run_cases(str(file), as_json=False)

    assert left.value.exit_code == 1
    assert "LOOSER: a-1: allow, expected deny" in capsys.readouterr().out


def test_the_decisions_are_printed_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "cases"
    file.write_text(json.dumps({**_CASE, "expected": "allow"}))

    run_cases(str(file), as_json=True)

    printed = json.loads(capsys.readouterr().out)
    assert [one["decision"] for one in printed["cases"]] == ["allow"]
    assert printed["score"]["looser"] == 0
