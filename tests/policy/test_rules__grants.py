import pytest

from policy import Grant, parse_rule
from policy.rules import grant_applies, minimal_grants

_ASKING = ("plan", "default", "acceptEdits", "auto", "bypassPermissions")


def _grant(mode: str, name: str = "grant 1") -> Grant:
    return Grant(name, mode, (parse_rule("bash(ls)", is_literal=True),))


@pytest.mark.parametrize(
    ("given_in", "holds"),
    [
        ("plan", _ASKING),
        ("default", ("default", "acceptEdits", "auto", "bypassPermissions")),
        ("acceptEdits", ("acceptEdits", "bypassPermissions")),
        ("auto", ("auto", "bypassPermissions")),
        ("bypassPermissions", ("bypassPermissions",)),
        ("dontAsk", ()),
        ("a mode of another version", ()),
    ],
)
def test_a_grant_holds_in_its_mode_and_in_more_permissive_ones(given_in: str, holds: tuple[str, ...]) -> None:
    assert tuple(mode for mode in (*_ASKING, "dontAsk", "other") if grant_applies(_grant(given_in), mode)) == holds


def test_what_could_be_left_out_is_not_named() -> None:
    first, second, third = (_grant("default", name) for name in ("1", "2", "3"))

    assert minimal_grants([first, second, third], lambda left: second in left) == [second]
    assert minimal_grants([first, second], bool) == [second]
