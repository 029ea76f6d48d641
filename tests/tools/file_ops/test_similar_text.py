import pytest

from tools.file_ops.similar_text import LEVELS, find_similar


@pytest.mark.parametrize(
    ("wanted", "text", "found_by"),
    [
        ('say "hi"', "say “hi”", [True, True, True]),
        ("a - b", "a\u00a0– b", [True, True, True]),
        ("a\nb", "a  \nb", [False, True, True]),
        ("f(a,  b)", "f(a, b)", [False, False, True]),
        ("  a\n  b", "\ta\n\tb", [False, False, True]),
        ("f(a,b)", "f(a, b)", [False, False, False]),
        ("x  = 1", "max = 1", [False, False, False]),
        ("  \n", "x", [False, False, False]),
    ],
)
def test_each_level_overlooks_what_it_names_and_no_more(wanted: str, text: str, found_by: list[bool]) -> None:
    assert [bool(find_similar(wanted, text, level)) for level in LEVELS] == found_by


def test_every_place_is_found() -> None:
    assert find_similar("a  b", "a b\na   b\n", LEVELS[-1]) == [(0, 3), (4, 9)]
