import json
import logging
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graph_agent.cli.headless.report import failure_report
from graph_agent.cli.log_file import log_to_file, log_traceback
from graph_agent.cli.startup import find_listing, parse_run_options, reserve_stdout, result_on_signal
from tests.fakes.openai_server import TC, FakeOpenAI
from tests.scenarios.command import Command

_CUT = """
import os, signal, sys
from graph_agent.cli.startup import result_on_signal
with result_on_signal(sys.argv[1], "t1"):
    os.kill(os.getpid(), int(sys.argv[2]))
"""

_CUT_AS_IT_LOADS = """
import os, signal, sys

class End:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), int(sys.argv.pop()))

sys.meta_path.insert(0, End())
from graph_agent.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("output", ["json", "stream-json"])
def test_a_run_that_is_killed_while_loading_prints_its_result(output: str, number: signal.Signals) -> None:
    event = {"seq": 1, "type": "result"} if output == "stream-json" else {}
    report = {**event, **failure_report("stopped", "ended by a signal", "t1")}
    as_it_loads = ("run", "--thread", "t1", f"--output={output}", "x")
    for script, arguments in ((_CUT, (output,)), (_CUT_AS_IT_LOADS, as_it_loads)):
        cut = subprocess.run(
            [sys.executable, "-c", script, *arguments, str(int(number))],
            capture_output=True,
            text=True,
            check=False,
            cwd=Path(__file__).parents[3],
        )

        assert (cut.returncode, json.loads(cut.stdout)) == (128 + number, report)


@pytest.mark.parametrize("output", ["text", "json"])
def test_the_previous_signal_handlers_are_restored(output: str) -> None:
    before = signal.getsignal(signal.SIGTERM)

    with result_on_signal(output, None):
        within = signal.getsignal(signal.SIGTERM)

    assert (signal.getsignal(signal.SIGTERM), within == before) == (before, output == "text")


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("run x --output json", ("json", None)),
        ("--debug run --thread t1 --output=stream-json x", ("stream-json", "t1")),
        ("run x --output text", ("text", None)),
        ("run -- --output json", ("text", None)),
        ("run x --output", ("text", None)),
        ("calls --output json", ("text", None)),
        ("", ("text", None)),
    ],
)
def test_the_output_format_of_a_run_is_parsed_early(line: str, asked: tuple[str, str | None]) -> None:
    assert parse_run_options(line.split()) == asked


_PRINTS_LIST = """
import json, sys
from graph_agent.__main__ import main
code = main()
sys.stdout.flush()
print("\\n" + json.dumps([code, *sys.modules]), file=sys.stderr)
"""
_LISTS = (("threads", "list"), ("approvals", "list"), ("calls",), ("calls", "t1"), ("inspect",), ("inspect", "t1"))


@pytest.fixture(scope="module")
def asking(tmp_path_factory: pytest.TempPathFactory) -> Command:
    with FakeOpenAI([TC("c1", "bash", {"command": "touch x"})], strict=True) as server:
        command = Command(tmp_path_factory.mktemp("lists"), server.base_url)
        command("run", "make x", "--thread", "t1")
    return command


@pytest.mark.parametrize("line", _LISTS, ids=" ".join)
def test_the_frequent_lists_are_printed_as_the_parser_does_it_but_with_few_modules(
    asking: Command, line: tuple[str, ...]
) -> None:
    printed = subprocess.run(
        [sys.executable, "-c", _PRINTS_LIST, *line],
        cwd=asking.workspace,
        env={**asking.env, "PYTHONPATH": str(Path(__file__).parents[3])},
        capture_output=True,
        text=True,
        check=True,
    )
    code, *modules = json.loads(printed.stderr.splitlines()[-1])
    own = [name for name in modules if name.startswith(("graph_agent.", "tools."))]
    kinds: list[tuple[str, ...]] = [(), ("--json",), ("--db", str(next((asking.folder / "home").rglob("*.db"))))]

    assert find_listing(line) is not None
    assert find_listing(("--debug", *line)) is None
    for options in kinds:
        short, parsed = asking(*line, *options), asking("--debug", *line, *options)
        # An age grows meanwhile, and its column with it.
        ages = [re.sub(r" +", " ", re.sub(r"\d+ \w+ ago|just now", "…", one.stdout)) for one in (short, parsed)]
        assert (short.returncode, ages[0], short.stderr) == (parsed.returncode, ages[1], parsed.stderr)
    assert (code, "t1" in printed.stdout or "touch x" in printed.stdout) == (0, True)
    assert {"typer", "rich", "pydantic", "tempfile", "logging"} & {*modules} == set()
    assert len(own) < 60, own
    assert len(modules) < 190, modules


@pytest.mark.parametrize(
    "line",
    [
        *("threads", "threads list x", "threads show t1", "calls a b", "calls --status error", "inspect --path x"),
        *("inspect --db", "inspect --db --json", "approvals list --help", "threads list -- x", "", "list"),
    ],
)
def test_every_other_line_is_left_to_the_parser(line: str) -> None:
    assert find_listing(line.split()) is None


_OBSERVES_GC = """
import gc, sys
from pathlib import Path

searches = []
gc.callbacks.append(lambda phase, info: searches.append((phase, info["generation"])))
usual = gc.get_threshold()
from graph_agent.__main__ import main

sys.argv = ["graph-agent", "run", "list files"]
main()
seen = ("start", 2) in searches, gc.get_freeze_count() > 0, gc.get_threshold() == usual
Path("seen").write_text(str(seen))
"""


@pytest.mark.slow
def test_loading_runs_no_full_garbage_collection_and_is_exempt_from_later_ones(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()

    subprocess.run(
        [sys.executable, "-c", _OBSERVES_GC],
        cwd=tmp_path / "work",
        env={**os.environ, "GRAPH_AGENT_HOME": str(tmp_path / "home")},
        capture_output=True,
        check=True,
    )

    assert (tmp_path / "work/seen").read_text() == "(False, True, True)"


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path))
    before = list(logging.getLogger().handlers)
    yield tmp_path / "data" / "logs" / "graph-agent.log"
    logging.captureWarnings(capture=False)
    for handler in [one for one in logging.getLogger().handlers if one not in before]:
        logging.getLogger().removeHandler(handler)
        handler.close()


def test_the_log_appears_with_the_first_record_is_private_and_holds_tracebacks(log: Path) -> None:
    umask = os.umask(0)
    try:
        log_to_file()
        before = log.exists()
        logging.getLogger("some.library").warning("careful")
        dict[str, int]()["gone"]
    except KeyError as error:
        path = log_traceback(error)
    finally:
        os.umask(umask)

    text = log.read_text()
    assert (before, path, stat.S_IMODE(log.stat().st_mode), "careful" in text) == (False, log, 0o600, True)
    assert text.splitlines()[-1] == "KeyError: 'gone'"


@pytest.mark.slow
def test_warnings_of_libraries_go_to_the_log_file_only(tmp_path: Path) -> None:
    with FakeOpenAI([TC("c1", "glob", {"pattern": "*"})], strict=True) as server:
        command = Command(tmp_path, server.base_url)
        (command.workspace / ".gitignore").write_text("[[]id]\n")
        (command.workspace / "a.txt").touch()

        done = command("run", "look")

    log = tmp_path / "home" / "data" / "logs" / "graph-agent.log"
    assert (done.returncode, "Warning" in done.stderr, "FutureWarning" in log.read_text()) == (0, False, True)


def test_a_log_that_cannot_be_written_stays_silent(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log.parent.parent.mkdir()
    log.parent.symlink_to("/dev/null")
    log_to_file()

    logging.getLogger("some.library").warning("careful")

    assert (capsys.readouterr().err, log_traceback(KeyError("gone"))) == ("", None)


_PRINTS = """
import os, sys
from graph_agent.cli.startup import reserve_stdout
print("before")
write = reserve_stdout()
print("others")
write("own\\n")
os.write(1, b"descriptor\\n")
"""


def test_stdout_is_the_writers_alone_and_others_reach_stderr() -> None:
    done = subprocess.run([sys.executable, "-c", _PRINTS], capture_output=True, text=True, check=True)

    assert (done.stdout, sorted(done.stderr.splitlines())) == ("before\nown\n", ["descriptor", "others"])


def test_a_closed_pipe_raises_in_the_writer_and_is_silent_at_exit() -> None:
    program = f"{_PRINTS}\ntry:\n    write('x')\nexcept BrokenPipeError:\n    sys.stderr.write('gone')\n"
    program = program.replace('print("before")\n', "").replace('write("own\\n")\n', "sys.stdin.read()\n")
    with subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
        _, shown = process.communicate("")

    assert sorted(shown.split()) == ["descriptor", "gone", "others"]


def test_a_replaced_stdout_is_written_to(capsys: pytest.CaptureFixture[str]) -> None:
    reserve_stdout()("own\n")

    assert capsys.readouterr().out == "own\n"
