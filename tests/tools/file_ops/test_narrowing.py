import pytest

from tools.file_ops.narrowing import certain_text


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("hello", "hello"),
        (r"def \w+_name\(", "_name"),
        ("colou?r", "colo"),
        ("ab*c", "a"),
        ("ab+", "ab"),
        ("a{0,2}bc", "bc"),
        ("(maybe)?sure", "sure"),
        ("[abc]def", "def"),
        ("one|two", ""),
        ("(?i)hit", ""),
        (r"\x41bc", ""),
        (r"\u0041bc", ""),
        (r"(a)\1b", ""),
        (r"\p{L}abc", ""),
        ("é", ""),
    ],
)
def test_only_what_every_match_must_hold_is_taken_for_certain(pattern: str, text: str) -> None:
    assert certain_text(pattern, is_literal=False) == text


def test_the_longest_line_of_ascii_in_a_literal_is_certain() -> None:
    assert certain_text("é(x|y)\nlonger than that", is_literal=True) == "longer than that"
