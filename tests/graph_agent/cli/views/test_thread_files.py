import json
import os
import sys
from pathlib import Path

import pytest
from typer.testing import Result

from graph_agent.app.reader import read_database
from graph_agent.app.threads import Pruned, PrunedThread
from graph_agent.cli.views.thread_files import parse_size, print_pruned
from graph_agent.cli.views.threads import confirm_delete
from graph_agent.errors import UsageError
from graph_agent.storage.sqlite.pruning import GarbageResult
from tests.fakes.played_thread import play
from tests.fakes.thread_files import export
from tests.graph_agent.cli.commands import type_command


@pytest.fixture
def database(tmp_path: Path) -> Path:
    play(tmp_path / "agent.db", "hello")
    return tmp_path / "agent.db"


def run(database: Path, *arguments: str) -> Result:
    return type_command("threads", *arguments, "--db", str(database))


def test_a_thread_is_exported_to_stdout_or_to_a_private_file(database: Path, tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    file.write_text("what was there")

    to_stdout = run(database, "export", "thread-1", "--format", "json")
    to_file = run(database, "export", "--output", str(file))

    assert to_stdout.stdout == file.read_text() == export(database, "thread-1")
    assert to_file.stdout == f"Wrote {file}.\n"
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("name", "form", "start"),
    [
        ("a.MD", None, "# hello\n"),
        ("a.html", None, "<!doctype html>\n"),
        ("a.txt", None, '{"format"'),
        ("a.txt", "md", "# hello\n"),
        ("a.txt", "html", "<!doctype html>\n"),
    ],
)
def test_an_export_has_the_format_of_the_option_or_of_the_file_name(
    database: Path, tmp_path: Path, name: str, form: str | None, start: str
) -> None:
    options = ("--format", form) if form else ()

    done = run(database, "export", "thread-1", "--output", str(tmp_path / name), *options)

    assert (done.exit_code, (tmp_path / name).read_text().startswith(start)) == (0, True)


def test_a_file_that_cannot_be_written_stays_as_it_was(database: Path, tmp_path: Path) -> None:
    nowhere = run(database, "export", "--output", str(tmp_path / "no folder" / "out"))
    folder = run(database, "export", "--output", str(tmp_path))
    nameless = run(database, "export", "--output", str(tmp_path / "a\0b"))

    assert ["--output" in str(done.exception) for done in (nowhere, folder, nameless)] == [True] * 3
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


def test_a_pipe_is_refused_and_a_link_stays_a_link(database: Path, tmp_path: Path) -> None:
    pipe, link, target = tmp_path / "pipe", tmp_path / "link.json", tmp_path / "target.json"
    os.mkfifo(pipe)
    link.symlink_to(target)

    refused = [run(database, "export", "--output", str(pipe)), run(database, "import", str(pipe))]
    through_link = run(database, "export", "--output", str(link))

    assert [("is a pipe, not a file" in str(done.exception), done.exit_code) for done in refused] == [(True, 1)] * 2
    assert (pipe.is_fifo(), link.is_symlink(), through_link.exit_code) == (True, True, 0)
    assert target.read_text() == export(database, "thread-1")


def test_an_import_prints_the_threads_id_and_how_to_resume(database: Path, tmp_path: Path) -> None:
    file = tmp_path / "thread.json"
    file.write_text(export(database, "thread-1"))

    taken = run(database, "import", str(file))
    as_text = run(database, "import", str(file), "--as", "mine")
    as_json = run(database, "import", str(file), "--as", "other", "--json")

    assert (taken.exit_code, "already" in str(taken.exception)) == (1, True)
    assert as_text.stdout.splitlines()[0] == "Imported mine (was thread-1): 1 turn, idle. hello"
    assert as_text.stdout.splitlines()[-1] == "Resume with: graph-agent resume mine"
    shown = json.loads(as_json.stdout)
    assert (shown["thread_id"], shown["exported_as"], shown["missing_contents"]) == ("other", "thread-1", 0)


def test_deleting_needs_a_terminal_or_yes(database: Path) -> None:
    refused = run(database, "delete", "thread-1")
    as_json = run(database, "delete", "thread-1", "--json")
    done = run(database, "delete", "thread-1", "--yes", "--json")

    assert (refused.exit_code, "--yes" in str(refused.exception)) == (1, True)
    assert (as_json.exit_code, "--yes" in as_json.stderr) == (2, True)
    assert (done.exit_code, json.loads(done.stdout)["deleted"]) == (0, ["thread-1"])


@pytest.mark.parametrize(("answer", "goes"), [("y\n", True), ("\n", False), ("", False), ("nope\n", False)])
def test_deleting_on_a_terminal_shows_the_thread_and_asks(
    database: Path, answer: str, goes: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Keyboard:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return answer

    with read_database(database) as reader:
        threads = reader.threads()
    monkeypatch.setattr(sys, "stdin", Keyboard())

    consented = confirm_delete(threads)

    shown = capsys.readouterr().out
    assert (consented, shown.splitlines()[0]) == (goes, "thread-1  1 turn  hello")
    assert shown.endswith("This cannot be undone. [y/N] ")


def test_renaming_prints_the_new_title(database: Path) -> None:
    as_text = run(database, "rename", "thread-1", "a \x1b[31m title")
    as_json = run(database, "rename", "thread-1", "other", "--json")

    assert as_text.stdout == "Renamed thread-1: a \\x1b[31m title\n"
    assert json.loads(as_json.stdout) == {"thread_id": "thread-1", "title": "other"}


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *(("500MB", 500_000_000), ("2g", 2_000_000_000), ("17", 17)),
        *((text, None) for text in ("x", "d", "-3d", "3 years", "1.5G")),
    ],
)
def test_a_size_is_a_number_with_or_without_a_unit(text: str, size: int | None) -> None:
    if size is not None:
        assert parse_size(text) == size
        return
    with pytest.raises(UsageError, match="Examples: 500MB"):
        parse_size(text)


def test_pruning_prints_what_was_deleted_skipped_and_the_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    threads = (PrunedThread("a", 12, 1), PrunedThread("b"), PrunedThread("c", held_by="thread 'c' is held"))

    print_pruned(Pruned(3_000_000, 1_000_000, threads, GarbageResult(2, 500_000)), as_json=False)

    assert capsys.readouterr().out.splitlines() == [
        "a: deleted 12 checkpoints, 1 snapshot",
        "Skipped: thread 'c' is held",
        "Deleted 2 unused files: 0.5 MB",
        "Database size: 3.0 MB before, 1.0 MB now",
    ]
