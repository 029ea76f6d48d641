from pathlib import PurePath

import pytest

from policy import CallFacts


@pytest.mark.parametrize(
    ("cwd", "place"), [(None, "."), ("/w", "."), ("/w/a/b", "a/b"), ("/wider", "/wider"), ("/", "/")]
)
def test_a_command_starts_in_the_workspace_or_where_the_shell_stands(cwd: str | None, place: str) -> None:
    start = None if cwd is None else PurePath(cwd)
    facts = CallFacts("bash", "default", "high", "execute", PurePath("/w"), cwd=start, command="ls")

    assert facts.place == place
