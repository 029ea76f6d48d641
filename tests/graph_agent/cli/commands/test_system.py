import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from graph_agent.cli.main import app
from tests.fakes.database_rows import Rows


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "GRAPH_AGENT_BASE_URL", "GRAPH_AGENT_DB"):
        monkeypatch.delenv(name, raising=False)


def _doctor(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["doctor", *arguments])


def test_every_check_has_a_name_a_result_a_detail_and_a_hint(rows: Rows) -> None:
    told = _doctor("--db", str(rows.path), "--json")

    checks = json.loads(told.stdout)["checks"]
    assert {tuple(check) for check in checks} == {("name", "ok", "detail", "hint")}
    assert (told.exit_code, {check["name"]: check["ok"] for check in checks}["database"]) == (0, True)


def test_a_damaged_database_fails_with_what_to_do(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.db"
    damaged.write_bytes(b"SQLite format 3\0" + bytes(5_000))

    told = _doctor("--db", str(damaged))

    assert (told.exit_code, "FAIL  database" in told.stdout, "--backup FILE" in told.stdout) == (1, True, True)


def test_a_copy_is_made_and_its_size_told(rows: Rows, tmp_path: Path) -> None:
    target = tmp_path / "copy.db"

    told = _doctor("--db", str(rows.path), "--backup", str(target), "--json")

    assert json.loads(told.stdout) == {"file": str(target), "bytes": target.stat().st_size}
    with closing(sqlite3.connect(target)) as copy:
        assert copy.execute("SELECT count(*) FROM threads").fetchone() == (0,)


def test_help_says_what_it_shows_and_how_to_keep_its_files() -> None:
    shown = CliRunner().invoke(app, ["demo", "--help"], env={"COLUMNS": "100"})

    assert shown.exit_code == 0
    assert all(words in shown.stdout for words in ("kill -9", "--yes", "--keep"))
