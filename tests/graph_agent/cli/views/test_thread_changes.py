import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from graph_agent.cli.main import app
from tests.fakes.played_thread import play
from tests.fakes.thread_files import export


@pytest.fixture
def database(tmp_path: Path) -> Path:
    play(tmp_path / "agent.db", "hello")
    return tmp_path / "agent.db"


def run(database: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, ["threads", *arguments, "--db", str(database)])


def test_a_thread_goes_to_stdout_or_into_a_file_of_its_owner_alone(database: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    file.write_text("what was there")

    to_stdout = run(database, "export", "thread-1", "--format", "json")
    to_file = run(database, "export", "--output", str(file))

    assert to_stdout.stdout == file.read_text() == export(database, "thread-1")
    assert to_file.stdout == f"wrote {file}\n"
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(("form", "start"), [("md", "# hello\n"), ("html", "<!doctype html>\n")])
def test_a_thread_can_be_read_as_a_page(database: Path, form: str, start: str) -> None:
    done = run(database, "export", "thread-1", "--format", form)

    assert (done.exit_code, done.stdout[: len(start)]) == (0, start)


@pytest.mark.parametrize(("name", "start"), [("a.MD", "# hello"), ("a.html", "<!doctype"), ("a.txt", '{"format"')])
def test_without_a_format_the_name_of_the_file_says_which(
    database: Path, tmp_path: Path, name: str, start: str
) -> None:
    run(database, "export", "thread-1", "--output", str(tmp_path / name))

    assert (tmp_path / name).read_text().startswith(start)


def test_a_file_that_cannot_be_written_stays_as_it_was(database: Path, tmp_path: Path) -> None:
    nowhere = run(database, "export", "--output", str(tmp_path / "no folder" / "out"))
    folder = run(database, "export", "--output", str(tmp_path))
    nameless = run(database, "export", "--output", str(tmp_path / "a\0b"))

    assert [str(done.exception)[:8] for done in (nowhere, folder, nameless)] == ["--output"] * 3
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_a_pipe_is_neither_written_over_nor_waited_for_and_a_link_stays_one(database: Path, tmp_path: Path) -> None:
    pipe, link, target = tmp_path / "pipe", tmp_path / "link.json", tmp_path / "target.json"
    os.mkfifo(pipe)
    link.symlink_to(target)

    refused = [run(database, "export", "--output", str(pipe)), run(database, "import", str(pipe))]
    through_link = run(database, "export", "--output", str(link))

    assert [("is a pipe, not a file" in str(done.exception), done.exit_code) for done in refused] == [(True, 1)] * 2
    assert (pipe.is_fifo(), link.is_symlink(), through_link.exit_code) == (True, True, 0)
    assert target.read_text() == export(database, "thread-1")


def test_an_import_tells_what_the_thread_is_called_and_how_to_go_on(database: Path, tmp_path: Path) -> None:
    file = tmp_path / "thread.json"
    file.write_text(export(database, "thread-1"))

    taken = run(database, "import", str(file))
    as_text = run(database, "import", str(file), "--as", "mine")
    as_json = run(database, "import", str(file), "--as", "other", "--json")

    assert (taken.exit_code, "already" in str(taken.exception)) == (1, True)
    assert as_text.stdout.splitlines()[0] == "imported: mine (it was thread-1)  1 turn, idle  hello"
    assert as_text.stdout.splitlines()[-1] == "go on with: graph-agent resume mine"
    told = json.loads(as_json.stdout)
    assert (told["thread_id"], told["exported_as"], told["missing_contents"]) == ("other", "thread-1", 0)
