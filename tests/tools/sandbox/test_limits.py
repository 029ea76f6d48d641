import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.fakes.sandboxed_process import OTHER_USER, SandboxedProcess, sandboxed_process
from tools.shell_ops.output import format_bytes

_FORMS = [(kind, user) for kind in ("bubblewrap", "landlock") for user in ("this user", "another user")]
_MEGABYTES = 1 << 20


@pytest.fixture(params=_FORMS, ids=" as ".join)
def process(request: pytest.FixtureRequest) -> Iterator[SandboxedProcess]:
    kind, user = request.param
    with sandboxed_process(kind, os.getuid() if user == "this user" else OTHER_USER) as made:
        yield made


def test_a_process_that_takes_too_much_memory_is_refused_more_and_the_result_says_so(
    process: SandboxedProcess,
) -> None:
    take = f"{process.python} -c 'b = bytearray(400 * 1024 * 1024)' 2>&1 | tail -n 1; exit ${{PIPESTATUS[0]}}"

    output, metadata = process.run(take, memory=200 * _MEGABYTES)
    enough, _ = process.run(f"{take} && echo well", memory=900 * _MEGABYTES)

    assert (metadata["exit_code"], "MemoryError" in output) == (1, True)
    assert "[it ran with limits, which may be why it failed: 200 MB of memory (setting sandbox_memory)]" in output
    assert enough.startswith(("well\n", "(no output)\n[exit code 0"))


def test_a_command_whose_processes_take_too_much_memory_together_is_stopped(process: SandboxedProcess) -> None:
    (process.workspace / "take.py").write_text("b = b'x' * (80 * 1024 * 1024)\nimport time\ntime.sleep(60)\n")
    command = f"for i in 1 2 3 4; do {process.python} take.py & done; wait; echo over"

    output, metadata = process.run(command, memory=200 * _MEGABYTES)

    stopped = "stopped because it used too much memory: 200 MB of memory (setting sandbox_memory)"
    assert (stopped in output, "over" in output.splitlines()) == (True, False)
    assert metadata["seconds"] < 50


def test_a_command_with_too_many_processes_is_stopped_with_all_of_them(process: SandboxedProcess) -> None:
    mark = f"61.{os.getpid()}"
    command = f"for i in $(seq 60); do sleep {mark} & done; wait; echo over"

    output, metadata = process.run(command, processes=20)
    few, _ = process.run("sleep 0.2 & sleep 0.2 & wait; echo over", processes=20)

    stopped = "stopped because it had too many processes: 20 processes (setting sandbox_processes)"
    assert (stopped in output, "over" in output.splitlines()) == (True, False)
    assert (metadata["seconds"] < 50, few) == (
        True,
        "over\n[exit code 0; how its background processes ended is not known]",
    )
    assert _running(mark) == []


def _running(word: str) -> list[str]:
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            found += [str(file)] if word in file.read_text(encoding="utf-8").split("\0") else []
    return found


@pytest.mark.parametrize(
    ("size", "shown"), [(2 << 30, "2 GB"), (500 << 20, "500 MB"), (1536 << 20, "1536 MB"), (7, "7 bytes")]
)
def test_a_size_is_shown_in_its_largest_whole_unit(size: int, shown: str) -> None:
    assert format_bytes(size) == shown
