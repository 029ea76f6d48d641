import errno
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from graph_agent.cli.exit_codes import exit_code_of, run_guarded
from graph_agent.errors import ThreadHeld, UsageError
from graph_agent.session.turn_result import TurnStatus
from tests.fakes.scripted_session import approval, recovery, rest
from tests.scenarios.command import Command

_ROOT = Path(__file__).parents[3]


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(scope="module")
def exportable(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a thread that can be exported."""
    command = Command(tmp_path_factory.mktemp("exportable"))
    command("run", "list", "--thread", "shop")
    return command.folder / "home"


def _program(body: str, folder: Path) -> subprocess.Popen[str]:
    source = (
        f"import sys\nfrom graph_agent.cli.exit_codes import run_guarded\n{body}\nsys.exit(run_guarded(command))"
    )
    return subprocess.Popen(
        [sys.executable, "-c", source],
        cwd=_ROOT,
        env={**os.environ, "GRAPH_AGENT_HOME": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _run(command: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "GRAPH_AGENT_HOME": str(home)}
    return subprocess.run(command, cwd=_ROOT, env=env, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (UsageError("no \x1b[2J such mode"), 2, "graph-agent: no \\x1b[2J such mode\n"),
        (UsageError("which one:\n  a\r\n  b"), 2, "graph-agent: which one:\n  a\\r\n  b\n"),
        (ThreadHeld("pid 1 has it"), 7, "graph-agent: pid 1 has it\n"),
        (
            OSError(errno.ENOSPC, "full"),
            1,
            "graph-agent: No space left on the disk. Free some space; `graph-agent calls` shows what was done.\n",
        ),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 1, ""),
        (SystemExit(5), 5, ""),
        (SystemExit(None), 0, ""),
    ],
)
def test_an_exception_becomes_a_message_and_an_exit_code(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, message: str
) -> None:
    def command() -> None:
        raise error

    assert (run_guarded(command), capsys.readouterr().err) == (code, message)


@pytest.mark.slow
@pytest.mark.parametrize("is_writable", [True, False])
def test_a_bug_is_one_line_and_its_traceback_is_in_a_private_file_if_one_can_be_written(
    tmp_path: Path, is_writable: bool
) -> None:
    home = tmp_path if is_writable else tmp_path / "file"
    if not is_writable:
        home.touch()
    program = _program("def command():\n    raise ZeroDivisionError('two\\nlines')", home)

    out, err = program.communicate()

    log = tmp_path / "data" / "logs" / "graph-agent.log"
    details = f"Details: {log}" if is_writable else "The details could not be written to the log file."
    message = "Unexpected ZeroDivisionError: two\\nlines. This is a bug in graph-agent."
    assert (program.returncode, out, err) == (1, "", f"graph-agent: {message} {details}\n")
    if is_writable:
        assert "Traceback" in log.read_text()
        assert [stat.S_IMODE(path.stat().st_mode) for path in (log.parent, log)] == [0o700, 0o600]


def test_a_closed_pipe_is_not_reported(tmp_path: Path) -> None:
    program = _program("def command():\n    [print('x' * 1000) for _ in range(1000)]", tmp_path)
    assert program.stdout is not None
    assert program.stderr is not None

    program.stdout.close()

    assert (program.wait(), program.stderr.read()) == (1, "")
    program.stderr.close()


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_missing_stream_is_dev_null_and_its_number_goes_to_no_file(tmp_path: Path, closed: str) -> None:
    body = (
        "import os, sys\n"
        "from graph_agent.cli.exit_codes import run_guarded\n"
        "def command():\n"
        f"    opened = os.open({str(tmp_path / 'file')!r}, os.O_CREAT | os.O_WRONLY)\n"
        "    print('to nobody', file=sys.stdout); print('to nobody', file=sys.stderr); sys.stdin.read()\n"
        "    raise SystemExit(opened)\n"
        "sys.exit(run_guarded(command))"
    )
    (tmp_path / "program.py").write_text(body)
    line = f"exec {sys.executable} {tmp_path / 'program.py'} {closed}"

    ended = subprocess.run(["sh", "-c", line], env={**os.environ, "PYTHONPATH": str(_ROOT)}, input=b"", check=False)

    assert (ended.returncode >= 3, (tmp_path / "file").read_bytes()) == (True, b"")


@pytest.mark.slow
@pytest.mark.parametrize("command", [["--version"], ["--help"], ["config", "path"], ["threads", "export", "shop"]])
@pytest.mark.parametrize(("place", "shown"), [(">/dev/full", "o space left"), (">&-", ""), ("2>/dev/full", "")])
def test_an_output_that_cannot_be_written_is_one_line_and_exits_with_1(
    exportable: Path, command: list[str], place: str, shown: str
) -> None:
    words = shlex.join([sys.executable, "-m", "graph_agent", *command])

    ended = _run(["sh", "-c", f"exec {words} {place}"], exportable)

    assert (ended.returncode, ended.stderr.count("\n")) == ((1, 1) if shown else (0, 0))
    assert shown in ended.stderr


@pytest.mark.slow
@pytest.mark.parametrize("words", [["--debug", "inspect", "nothing"], ["inspect", "nothing", "--debug"]])
def test_with_debug_the_traceback_of_an_error_is_logged(tmp_path: Path, words: list[str]) -> None:
    ended = _run([sys.executable, "-m", "graph_agent", *words], tmp_path)

    log = tmp_path / "data" / "logs" / "graph-agent.log"
    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False)
    assert ended.stderr.endswith(f"Details: {log}\n")
    assert "NothingYet" in log.read_text()


@pytest.mark.parametrize("then", ["raise", "raise ValueError('a module could not be loaded')"])
def test_sigterm_exits_with_143_whatever_it_interrupts(tmp_path: Path, then: str) -> None:
    waits = "    print('up', flush=True)\n    try:\n        time.sleep(30)\n"
    program = _program(f"import time\ndef command():\n{waits}    except SystemExit:\n        {then}", tmp_path)
    assert program.stdout is not None

    assert program.stdout.readline() == "up\n"
    program.terminate()

    _, err = program.communicate()
    assert (program.returncode, err) == (143, "")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_after_the_command_does_not_change_the_exit_code(tmp_path: Path, number: signal.Signals) -> None:
    late = (
        "import threading, time\ndef stay():\n    time.sleep(0.5)\n    print('over', flush=True)\n    time.sleep(9)"
    )
    done = "def command():\n    threading.Thread(target=stay).start()\n    raise SystemExit(3)"
    program = _program(f"{late}\n{done}", tmp_path)
    assert program.stdout is not None

    assert program.stdout.readline() == "over\n"
    program.send_signal(number)

    _, err = program.communicate()
    assert (program.returncode, err) == (3, "")


def test_characters_the_terminal_cannot_encode_do_not_break_the_output(tmp_path: Path) -> None:
    source = "def command():\n    print('\\ud800 é')"
    program = _program(source, tmp_path)

    out, _ = program.communicate()

    assert (program.returncode, re.sub("é|\\\\xe9", "e", out)) == (0, "\\ud800 e\n")


_CODES: dict[TurnStatus, int] = {
    "done": 0,
    "failed": 1,
    "resumable": 1,
    "awaiting_approval": 3,
    "interrupted": 4,
    "limit": 5,
    "model_error": 6,
    "held": 7,
    "stopped": 130,
}


def test_each_turn_status_has_an_exit_code() -> None:
    assert {status: exit_code_of(rest(status)) for status in get_args(TurnStatus)} == _CODES


def test_open_questions_and_unmet_requests_have_exit_codes_of_their_own() -> None:
    waiting = (approval("call-a", "bash", {"command": "ls"}), recovery("call-b", "bash", {"command": "make"}))

    assert exit_code_of(rest("awaiting_approval", questions=waiting[:1])) == 3
    assert exit_code_of(rest("awaiting_approval", questions=waiting)) == 4
    assert exit_code_of(rest("done", "Not understood", unmet="not understood")) == 1
