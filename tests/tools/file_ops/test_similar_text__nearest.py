import time

from tools.file_ops.similar_text import describe_nearest


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
