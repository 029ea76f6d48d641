from pathlib import Path

from tests.fakes.openai_server import TC, TCS, TXT, FakeOpenAI
from tests.scenarios.command import Command

_RESULT = "Two files were changed.\nNothing failed."


def test_a_declared_completion_ends_the_turn_with_its_result_and_the_thread_goes_on(tmp_path: Path) -> None:
    with FakeOpenAI(
        [TC("c1", "attempt_completion", {"result": _RESULT}), TXT("you are welcome")], strict=True
    ) as server:
        run = Command(tmp_path, server.base_url)

        ended = run("run", "do it", "--thread", "t")
        later = run("run", "thanks", "--resume", "t")

    assert (ended.returncode, ended.stdout, later.returncode, later.stdout) == (
        0,
        f"{_RESULT}\n",
        0,
        "you are welcome\n",
    )
    assert (len(server.bodies), server.faults) == (2, [])


def test_a_completion_declared_beside_a_call_that_failed_does_not_end_the_turn(tmp_path: Path) -> None:
    too_early = TCS(
        ("c1", "read_file", {"file_path": "missing.txt"}), ("c2", "attempt_completion", {"result": "read"})
    )
    with FakeOpenAI([too_early, TXT("there is no such file")], strict=True) as server:
        ended = Command(tmp_path, server.base_url)("run", "read it")

    assert (ended.returncode, ended.stdout, len(server.bodies)) == (0, "there is no such file\n", 2)


def test_a_completion_declared_before_another_call_ends_the_turn_with_its_result(tmp_path: Path) -> None:
    calls = TCS(("c1", "attempt_completion", {"result": _RESULT}), ("c2", "ls", {"path": "."}))
    with FakeOpenAI([calls], strict=True) as server:
        ended = Command(tmp_path, server.base_url)("run", "do it")

    assert (ended.returncode, ended.stdout, len(server.bodies)) == (0, f"{_RESULT}\n", 1)
