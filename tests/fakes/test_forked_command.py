import os
from pathlib import Path

import pytest

from tests.fakes.forked_command import run_forked
from tests.scenarios.command import Command

_SAID = (("run", "run echo hi"), ("config", "path"), ("threads", "show", "nothing"), ("no-such-thing",))


@pytest.mark.parametrize("arguments", _SAID)
def test_a_command_that_was_forked_says_and_returns_what_one_that_was_started_does(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    command = Command(tmp_path)

    warm, fresh = command(*arguments), command.run_cold(*arguments)

    assert (warm.returncode, warm.stdout) == (fresh.returncode, fresh.stdout)


def test_commands_know_nothing_of_each_other_and_read_what_they_are_given(tmp_path: Path) -> None:
    homes = [str(tmp_path / name) for name in ("a", "b")]

    paths = [
        run_forked(("config", "path"), tmp_path, {**os.environ, "GRAPH_AGENT_HOME": home}, "") for home in homes
    ]
    said = Command(tmp_path)(stdin="list files")

    assert [[home in path.stdout for home in homes] for path in paths] == [[True, False], [False, True]]
    assert (said.returncode, "offline" in said.stdout) == (0, True)
