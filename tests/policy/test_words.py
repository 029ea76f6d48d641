import pytest

from policy.words import RESERVED, is_invisible


@pytest.mark.parametrize(
    ("char", "invisible"),
    [
        ("a", False),
        (" ", False),
        ("\n", False),
        ("\t", False),
        ("\r", True),
        ("\x1b", True),
        ("\u202e", True),
        ("é", False),
    ],
)
def test_controls_and_invisible_characters_are_told_from_the_rest(char: str, invisible: bool) -> None:
    assert is_invisible(char) is invisible


def test_words_that_begin_structures_are_reserved() -> None:
    assert {"if", "{", "!", "coproc"} <= RESERVED
    assert "git" not in RESERVED
