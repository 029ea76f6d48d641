import json
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from graph_agent.cli.views.doctor import find_update
from tests.fakes.database_rows import Rows
from tests.graph_agent.cli.commands import json_of, text_of, type_command


@pytest.fixture(autouse=True)
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The database of a home that has none yet."""
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GRAPH_AGENT_BASE_URL", "GRAPH_AGENT_DB"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "home" / "data" / "graph-agent.db"


_GIT = {"url": "https://example.org/a.git", "vcs_info": {"vcs": "git", "commit_id": "1"}}
_SOURCE = "/src/a"
_FOLDER = {"url": f"file://{_SOURCE}", "dir_info": {}}


@pytest.mark.parametrize(
    ("receipt", "origin", "method", "command"),
    [
        ("", {}, "pip", [sys.executable, "-m", "pip", "install", "--upgrade", "graph-agent"]),
        ("", _FOLDER, "pip", [sys.executable, "-m", "pip", "install", "--upgrade", _SOURCE]),
        ("", _GIT, "pip", [sys.executable, "-m", "pip", "install", "--upgrade", "git+https://example.org/a.git"]),
        (
            "",
            {**_GIT, "vcs_info": {"vcs": "git", "requested_revision": "v2"}},
            "pip",
            [sys.executable, "-m", "pip", "install", "--upgrade", "git+https://example.org/a.git@v2"],
        ),
        (
            "",
            {**_FOLDER, "dir_info": {"editable": True}},
            "a checkout",
            ["git", "-C", _SOURCE, "pull", "--ff-only"],
        ),
        ("uv-receipt.toml", _GIT, "uv", ["uv", "tool", "upgrade", "graph-agent"]),
        ("uv-receipt.toml", _FOLDER, "uv", ["uv", "tool", "upgrade", "--reinstall", "graph-agent"]),
        ("pipx_metadata.json", _FOLDER, "pipx", ["pipx", "upgrade", "graph-agent"]),
    ],
)
def test_the_program_is_updated_the_way_it_was_installed(
    tmp_path: Path, receipt: str, origin: dict[str, Any], method: str, command: list[str]
) -> None:
    (tmp_path / (receipt or "nothing")).touch()

    assert find_update(tmp_path, origin) == (method, command)


def test_an_update_is_asked_about_before_it_runs() -> None:
    asked = type_command("update")

    assert "was installed with a checkout. To update it: git -C " in asked.stdout
    assert "--yes" in str(asked.exception)


def test_each_check_is_marked_and_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPH_AGENT_MODE", "\x1b[2J")

    checked = type_command("doctor")

    marks = {line[:4] for line in checked.stdout.splitlines() if not line.startswith("     ")}
    assert (checked.exit_code, "\x1b" in checked.stdout, marks <= {"ok  ", "FAIL", "note"}) == (1, False, True)


def test_every_check_has_a_name_a_result_a_detail_and_a_hint(rows: Rows) -> None:
    checks = json_of("doctor", "--db", str(rows.path))["checks"]

    assert {tuple(check) for check in checks} == {("name", "ok", "detail", "hint")}
    assert {check["name"]: check["ok"] for check in checks}["database"] is True


def test_a_repair_prints_each_step_and_then_all_checks(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.parent.parent.chmod(0o700)
    path.parent.chmod(0o755)

    first, second = ([line.split()[:2] for line in text_of("doctor", "--repair").splitlines()] for _ in range(2))

    assert first[:2] == [["will", "privacy"], ["done", "privacy"]]
    assert second[0] == ["Nothing", "to"]
    assert (first.count(["ok", "database"]), second.count(["ok", "database"])) == (1, 1)


def test_repairs_and_checks_are_one_object_and_a_failure_exits_with_1(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True)
    path.parent.parent.chmod(0o700)
    path.write_bytes(b"no database " * 1000)
    path.chmod(0o600)

    repaired = type_command("doctor", "--repair", "--json")

    shown = json.loads(repaired.stdout)
    assert (repaired.exit_code, [one["stage"] for one in shown["repairs"]]) == (1, ["left"])
    assert [check["ok"] for check in shown["checks"] if check["name"] == "database"] == [False]


def test_a_damaged_database_fails_with_a_hint(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(b"SQLite format 3\0" + bytes(5_000))

    checked = type_command("doctor", "--db", str(damaged))

    parts = ("FAIL  database" in checked.stdout, "--backup FILE" in checked.stdout)
    assert (checked.exit_code, parts) == (1, (True, True))


def test_a_backup_is_made_and_its_size_printed(rows: Rows, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"

    printed = json_of("doctor", "--db", str(rows.path), "--backup", str(target))

    assert printed == {"file": str(target), "bytes": target.stat().st_size}
    with closing(sqlite3.connect(target)) as copy:
        assert copy.execute("SELECT count(*) FROM threads").fetchone() == (0,)


def test_the_help_of_the_demo_describes_it() -> None:
    shown = type_command("demo", "--help", COLUMNS="100").stdout

    assert all(words in shown for words in ("kill -9", "--yes", "--keep"))
