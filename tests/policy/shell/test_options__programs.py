import pytest

from policy.shell.options import LANGUAGES, RUN_LATER


@pytest.mark.parametrize("name", ["python3.12", "perl", "gawk", "node", "R"])
def test_interpreters_are_known_in_every_version(name: str) -> None:
    assert LANGUAGES.fullmatch(name)


@pytest.mark.parametrize(
    ("variable", "runs"),
    [("GIT_SSH_COMMAND", True), ("MANPAGER", True), ("PS4", True), ("HOME", False), ("A", False)],
)
def test_variables_that_name_a_program_are_told_from_others(variable: str, runs: bool) -> None:
    assert (RUN_LATER.fullmatch(variable) is not None) is runs
