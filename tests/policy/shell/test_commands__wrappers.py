import pytest

from policy.shell.commands import inner_commands


@pytest.mark.parametrize(
    ("command", "inner"),
    [
        ("env -i -u X A=1 git log", (("A=1", "git", "log"),)),
        ("timeout -k 5 10 git log", (("git", "log"),)),
        ("/usr/bin/nice -n5 git log", (("git", "log"),)),
        ("nohup -- git log", (("git", "log"),)),
        ("xargs -0 -n 1 rm -f", (("rm", "-f"),)),
        ("find . -name x -exec rm {} ; -okdir ls +", (("rm", "{}"), ("ls",))),
        ("time", ()),
        ("git log", ()),
        ("bash -c x", ()),
        ("env -S x", None),
        ("env --split-string=x", None),
        ("command -v git", None),
        ("strace git", None),
    ],
)
def test_what_a_wrapper_runs_is_told_exactly_or_not_at_all(
    command: str, inner: tuple[tuple[str, ...], ...] | None
) -> None:
    assert inner_commands(tuple(command.split())) == inner
