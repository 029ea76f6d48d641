import subprocess
import sys

import pytest

from graph_agent.cli.startup import reserve_stdout

_PROGRAM = """
import os, sys
from graph_agent.cli.startup import reserve_stdout
print("before")
write = reserve_stdout()
print("others")
write("own\\n")
os.write(1, b"descriptor\\n")
"""


def test_stdout_is_the_writers_alone_and_others_reach_stderr() -> None:
    done = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)

    assert (done.stdout, sorted(done.stderr.splitlines())) == ("before\nown\n", ["descriptor", "others"])


def test_a_reader_that_is_gone_is_an_error_of_the_writer_and_nothing_is_said_at_exit() -> None:
    program = f"{_PROGRAM}\ntry:\n    write('x')\nexcept BrokenPipeError:\n    sys.stderr.write('gone')\n"
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
        _, told = process.communicate("")

    assert sorted(told.split()) == ["descriptor", "gone", "others"]


def test_a_stream_that_was_put_in_its_place_is_written_to(capsys: pytest.CaptureFixture[str]) -> None:
    reserve_stdout()("own\n")

    assert capsys.readouterr().out == "own\n"
