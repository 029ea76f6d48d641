"""A model that does not get on is paused: the turn ends at a limit, says why, and goes on when a person says so."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fakes.openai_replies import Reply
from tests.fakes.openai_server import TC, TXT, FakeOpenAI
from tests.scenarios.command import Command


def _failing(number: int) -> Reply:
    return TC(f"f{number}", "bash", {"command": "echo x >> tries; exit 1"})


def _late(number: int) -> Reply:
    return TC(f"l{number}", "bash", {"command": f"sleep 3{number}", "timeout": 0.2})


def _unknown(number: int) -> Reply:
    return TC(f"u{number}", "no_such_tool", {"number": number})


@pytest.mark.parametrize(
    ("asking", "times", "why"),
    [
        (_failing, 4, "this very call of bash failed 3 times in a row"),
        (_late, 4, "bash ran into its time limit 3 times in a row"),
        (
            _unknown,
            5,
            "5 calls of no_such_tool in a row could not run: it is unknown, or its arguments were unusable",
        ),
    ],
)
def test_a_run_that_goes_wrong_again_and_again_ends_at_a_limit_and_can_be_gone_on_with(
    asking: Callable[[int], Reply], times: int, why: str, tmp_path: Path
) -> None:
    script = [asking(number) for number in range(times)]
    with FakeOpenAI([*script, TXT("another way")], strict=True) as server:
        command = Command(tmp_path, server.base_url)
        code, paused = command.run_json("go", "--thread", "t1", "--mode", "bypassPermissions")
        asked = len(server.bodies)
        later, done = command.run_json("--resume", "t1", "--mode", "bypassPermissions")

    assert (code, paused["status"], paused["error"]) == (5, "limit", f"the turn was paused at a limit: {why}")
    assert (asked, later, done["answer"], server.faults) == (times, 0, "another way", [])
    tries = command.workspace / "tries"
    assert not tries.exists() or tries.read_text() == "x\n" * 3
