import os
import time
from pathlib import Path

import pytest

from graph_agent.mcp.transport import Launch, ServerLog, open_program
from tests.cases.processes import running_with

_MESSAGE = '{"jsonrpc": "2.0", "method": "m"}'


async def _heard(script: str, folder: Path) -> tuple[int, ServerLog]:
    log, count = ServerLog(folder / "log"), 0
    log.begin()
    async with open_program(Launch(("sh", "-c", script), dict(os.environ), folder), log) as (read, _):
        async for _message in read:
            count += 1
    return count, log


async def test_a_line_that_never_ends_is_passed_over_and_the_next_is_heard(tmp_path: Path) -> None:
    script = (
        f"head -c 40000000 /dev/zero | tr '\\0' x; echo; echo '{_MESSAGE}'; echo; echo banner; echo '{_MESSAGE}'"
    )

    count, log = await _heard(script, tmp_path)

    assert (count, log.invalid_output) == (2, "a line of more than 32 MB")


async def test_the_last_words_of_a_program_are_kept(tmp_path: Path) -> None:
    count, log = await _heard(f"echo '{_MESSAGE}'; echo why >&2; exit 3", tmp_path)

    assert (count, log.last_lines(2)) == (1, ("why",))


async def test_a_program_that_ends_is_heard_no_more_and_takes_along_what_it_left(tmp_path: Path) -> None:
    count, _ = await _heard(f"echo '{_MESSAGE}'; sleep 863.53 & exit 0", tmp_path)

    assert (count, running_with("863.53")) == (1, [])


async def test_a_program_that_ignores_the_end_of_its_input_and_every_request_is_killed(tmp_path: Path) -> None:
    log = ServerLog(tmp_path / "log")
    script = "trap '' TERM; while :; do sleep 864.53; done"

    async with open_program(Launch(("sh", "-c", script), dict(os.environ), tmp_path), log):
        pass

    assert running_with("864.53") == []


async def test_a_program_that_never_spoke_is_told_to_end_at_once(tmp_path: Path) -> None:
    log, began = ServerLog(tmp_path / "log"), time.monotonic()

    async with open_program(Launch(("sleep", "865.53"), dict(os.environ), tmp_path), log):
        pass

    assert (running_with("865.53"), time.monotonic() - began < 1.5) == ([], True)


async def test_a_program_that_cannot_be_started_is_told(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no-such-program"):
        async with open_program(Launch(("/no-such-program",), {}, tmp_path), ServerLog(tmp_path / "log")):
            pass
