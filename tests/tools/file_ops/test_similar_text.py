import time

import pytest

from tools.file_ops.similar_text import LEVELS, describe_nearest, find_similar


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


def test_the_place_that_shares_most_lines_is_shown_with_the_first_difference() -> None:
    text = "def f():\n    return 1\n\ndef g():\n    return 2\n"

    assert describe_nearest("def g():\n    return 3\n", text) == (
        "The most similar text is:\n     4\tdef g():\n     5\t    return 2\n"
        "The first difference is in line 5: the file has '    return 2', old_string has '    return 3'."
    )


def test_without_an_equal_line_the_words_decide() -> None:
    assert "     2\ttotal = price + tax" in describe_nearest(
        "total = price * tax", "a = 1\ntotal = price + tax\nb = 2\n"
    )


def test_a_difference_that_cannot_be_seen_is_written_out() -> None:
    assert r"the file has 'e\u0301 x', old_string has '\xe9 x'" in describe_nearest("\xe9 x", "e\u0301 x\n")


def test_nothing_is_shown_where_nothing_is_near() -> None:
    assert describe_nearest("quite different", "a\nb\n") == ""


def test_a_large_file_is_searched_quickly_and_little_is_shown() -> None:
    text = "\n".join(f"line number {number} of many {'x' * 300}" for number in range(20_000))
    began = time.monotonic()

    shown = describe_nearest("\n".join(["line number 777 of few"] * 100), text)

    assert (len(shown) < 4_000, time.monotonic() - began < 10) == (True, True)
