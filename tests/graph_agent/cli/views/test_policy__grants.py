from pathlib import Path

import pytest

from graph_agent.cli.views.table import format_time
from graph_agent.errors import UnknownId
from tests.fakes.database_rows import START, Rows
from tests.fakes.light_commands import json_of, run, text_of


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    return tmp_path / "home" / "config.toml"


def test_rules_and_grants_are_listed_with_where_they_come_from(rows: Rows, config: Path) -> None:
    config.write_text('[policy]\nallow = ["bash(git status*)"]\ndeny = ["bash(rm *)"]\n')
    rows.grant("bash(ls)", "bash(cat '\x1b[2J')")
    rows.grant("write_file(/w/a)", scope="project", place="sub")
    rows.grant("bash(pwd)", scope="user", mode="acceptEdits")

    assert text_of(rows, "policy", "list").splitlines() == [
        f"deny   bash(rm *)  ({config})",
        f"allow  bash(git status*)  ({config})",
        "",
        "grant 1  in thread t1, mode default and more permissive ones",
        "  │ bash(ls)",
        "  │ bash(cat '\\x1b[2J')",
        f"  given {format_time(START)} by cli pid 7, with call call_a",
        "grant 2  in /w, from folder sub, mode default and more permissive ones",
        "  │ write_file(/w/a)",
        f"  given {format_time(START)} by cli pid 7, with call call_a",
        "grant 3  everywhere, mode acceptEdits and more permissive ones",
        "  │ bash(pwd)",
        f"  given {format_time(START)} by cli pid 7, with call call_a",
        "Take one back with: graph-agent policy revoke ID",
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
        "place": ".",
    }
    assert listed == {
        "rules": [{"list": "ask", "rule": "bash(git push*)", "source": str(config)}],
        "grants": [grant],
    }
    assert json_of(rows, "policy", "revoke", "1") == {"revoked": grant}
    assert json_of(rows, "policy", "list")["grants"] == []


def test_nothing_is_said_to_be_nothing(rows: Rows, config: Path) -> None:
    config.write_text("")

    assert text_of(rows, "policy", "list") == "There are no rules, and nothing was allowed always.\n"
    absent = run("policy", "list", "--json", "--db", str(rows.path.with_name("none.db")))
    assert absent.stdout == '{\n  "rules": [],\n  "grants": []\n}\n'


def test_what_was_taken_back_is_shown_and_an_unknown_id_is_refused(rows: Rows) -> None:
    rows.grant("bash(ls)")

    assert text_of(rows, "policy", "revoke", "1") == "revoked: grant 1\n  │ bash(ls)\n"
    assert isinstance(run("policy", "revoke", "1", "--db", str(rows.path)).exception, UnknownId)
