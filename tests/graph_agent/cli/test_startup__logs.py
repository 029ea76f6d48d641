import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph_agent.cli.startup import log_to_file, log_traceback
from tests.fakes.openai_server import TC, FakeOpenAI
from tests.scenarios.command import Command


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path))
    before = list(logging.getLogger().handlers)
    yield tmp_path / "data" / "logs" / "graph-agent.log"
    logging.captureWarnings(capture=False)
    for handler in [one for one in logging.getLogger().handlers if one not in before]:
        logging.getLogger().removeHandler(handler)
        handler.close()


def test_the_file_appears_with_the_first_record_and_is_private_under_any_umask(log: Path) -> None:
    umask = os.umask(0)
    try:
        log_to_file()
        before = log.exists()
        logging.getLogger("some.library").warning("careful")
    finally:
        os.umask(umask)

    assert (before, stat.S_IMODE(log.stat().st_mode), "careful" in log.read_text()) == (False, 0o600, True)


def test_a_traceback_names_the_error_and_the_line(log: Path) -> None:
    try:
        dict[str, int]()["gone"]
    except KeyError as error:
        path = log_traceback(error)

    assert path == log
    assert log.read_text().splitlines()[-1] == "KeyError: 'gone'"


def test_what_a_library_warns_of_goes_to_the_file_and_not_to_the_terminal(tmp_path: Path) -> None:
    with FakeOpenAI([TC("c1", "glob", {"pattern": "*"})], strict=True) as server:
        command = Command(tmp_path, server.base_url)
        (command.workspace / ".gitignore").write_text("[[]id]\n")
        (command.workspace / "a.txt").touch()

        done = command("run", "look")

    log = tmp_path / "home" / "data" / "logs" / "graph-agent.log"
    assert (done.returncode, "Warning" in done.stderr, "FutureWarning" in log.read_text()) == (0, False, True)


def test_what_cannot_be_written_to_the_file_is_not_shown_on_the_terminal(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log.parent.parent.mkdir()
    log.parent.symlink_to("/dev/null")
    log_to_file()

    logging.getLogger("some.library").warning("careful")

    assert (capsys.readouterr().err, log_traceback(KeyError("gone"))) == ("", None)
