import sys
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.file_ops.replace import (
    LEVELS,
    Mode,
    PlainText,
    ReplaceError,
    Replacement,
    ReplaceResult,
    describe_nearest,
    find_similar,
    merge_lines,
    reindent,
    replace_text,
    split_lines,
)

_ALPHABET = 'ab \t\r\n"“é'


def _why(text: str, wish: Replacement) -> str:
    with pytest.raises(ReplaceError) as caught:
        replace_text(text, wish, "\n")
    return str(caught.value)


@given(st.text(_ALPHABET), st.text(_ALPHABET, min_size=1), st.text(_ALPHABET), st.text(_ALPHABET))
def test_an_exact_match_changes_nothing_around_it(before: str, old: str, new: str, after: str) -> None:
    old, new, mark = f"<{old}>", f"[{new}]", "\n"

    result = replace_text(before + old + after, Replacement(old, new, mode="exact"), mark)

    assert result.text.startswith(before)
    assert result.text.endswith(after)


@given(st.text(_ALPHABET), st.text(_ALPHABET, min_size=1), st.text(_ALPHABET), st.text(_ALPHABET))
def test_a_flexible_match_changes_nothing_around_it(before: str, core: str, new: str, after: str) -> None:
    old = f"<{core}>"
    wanted = old.replace("\r\n", "\n").replace("\r", "\n").replace("“", '"')

    try:
        result = replace_text(f"{before}\n{old}\n{after}", Replacement(wanted, f"[{new}]"), "\n")
    except ReplaceError:
        return

    assert result.text.startswith(before)
    assert result.text.endswith(after)


@given(st.text(_ALPHABET), st.text("ab", min_size=1, max_size=2), st.text(_ALPHABET))
def test_replacing_all_is_what_python_calls_replacing(text: str, old: str, new: str) -> None:
    wish = Replacement(old, new.replace("\r", ""), replace_all=True)
    expected = text.replace(old, wish.new)

    if expected == text:
        assert _why(text, wish)
    else:
        assert replace_text(text, wish, "\n") == ReplaceResult(expected, text.count(old))


_LEVEL = "The match was not exact: {} was ignored."


@pytest.mark.parametrize(
    ("text", "old", "new", "expected", "overlooked"),
    [
        ("a\r\nb\nc\r\n", "a\nb\nc", "a\nB\nc", "a\r\nB\nc\r\n", "the kind of line endings"),
        ("a\rb\rc\r", "b\nc", "b\nx\nc", "a\rb\rx\rc\r", "the kind of line endings"),
        ("say “hi” now\n", 'say "hi"', 'say "ho"', 'say "ho" now\n', "the form of quotes, dashes or blanks"),
        ("a  \nb\n", "a\nb", "a\nc", "a  \nc\n", "white space at line ends"),
        ("\tif x:\n\t\ty()\n", "  if x:\n    y()", "  if x:\n    z()", "\tif x:\n\t\tz()\n", "white space"),
        (
            "  if x:\n    y( 1)\n",
            "if x:\n  y(  1)",
            "if x:\n  z()\n  y(  1)",
            "  if x:\n    z()\n    y( 1)\n",
            "white space",
        ),
    ],
)
def test_what_was_overlooked_is_told_and_lines_that_stay_keep_their_form(
    text: str, old: str, new: str, expected: str, overlooked: str
) -> None:
    newline = next((end for end in ("\r\n", "\r", "\n") if end in text), None)

    assert replace_text(text, Replacement(old, new), newline) == ReplaceResult(
        expected, 1, _LEVEL.format(overlooked)
    )


@pytest.mark.parametrize(
    ("text", "old", "mode", "why"),
    [
        ("x\nx\n", "x", "flexible", "old_string matches 2 places (lines 1, 2)"),
        ("aaa", "aa", "exact", "old_string matches 2 places (lines 1, 1)"),
        ("a  b\na   b\n", "a b", "flexible", "old_string matches 2 places"),
        ("a\r\nb", "a\nb", "exact", "try mode=flexible"),
        ("Abc", "abc", "flexible", "other upper and lower case"),
        ("x\n", "     1\tx", "flexible", "leave the numbers out"),
        ("one\ntwo", "two\n", "exact", "no newline at its end"),
        ("\tf( a )\n", "f( a )  ", "flexible", "cannot be indented"),
        ("x", "(", "regex", "is not a valid regular expression"),
        ("x", "y", "regex", "matches no text"),
        ("x", "y*", "regex", "matches no text"),
        pytest.param(
            "a" * 80 + "!", "(a|aa)+$", "regex", "was stopped after 2 seconds", id="endless", marks=pytest.mark.slow
        ),
        ("x", "", "flexible", "old_string is empty"),
        ("x", "x", "flexible", "nothing would change"),
    ],
)
def test_what_is_not_replaced_is_explained(text: str, old: str, mode: Mode, why: str) -> None:
    new = "x" if old == "x" and text == "x" else "f(a)\n    g()"

    assert why in _why(text, Replacement(old, new, mode=mode))


def test_an_edit_that_only_asks_for_other_line_ends_than_the_files_is_told_to_change_nothing() -> None:
    assert "nothing would change" in _why("a\r\nb\r\n", Replacement("a\r\n", "a\n"))


def test_a_missing_final_newline_stays_missing() -> None:
    remark = "The file has no newline at its end and still has none."

    assert replace_text("one\ntwo", Replacement("two\n", "three\n"), "\n") == ReplaceResult("one\nthree", 1, remark)
    assert replace_text("one\ntwo", Replacement("two", "three"), "\n") == ReplaceResult("one\nthree", 1)


def test_a_pattern_replaces_by_literal_text_and_leaves_line_ends() -> None:
    wish = Replacement(r"v\d$", r"\g<0>$1", replace_all=True, mode="regex")

    assert replace_text("v1\r\nv2 v3\r\n", wish, "\r\n") == ReplaceResult("\\g<0>$1\r\nv2 \\g<0>$1\r\n", 2)


_TEXTS = st.text(alphabet="ab\r\n", max_size=30)


@given(_TEXTS, st.data())
def test_a_place_in_the_plain_view_is_the_same_place_in_the_text(raw: str, data: st.DataObject) -> None:
    plain = PlainText.of(raw)
    start = data.draw(st.integers(0, len(plain.text)))
    end = data.draw(st.integers(start, len(plain.text)))

    piece = raw[slice(*plain.raw_span(start, end))]

    assert PlainText.of(piece).text == plain.text[start:end]


@given(_TEXTS)
def test_lines_and_their_ends_make_up_the_text(text: str) -> None:
    lines = split_lines(text)

    assert "".join(line + end for line, end in lines) == text
    assert [line for line, _ in lines] == PlainText.of(text).text.split("\n")


@pytest.mark.parametrize(
    ("found", "new", "expected"),
    [
        ("a\r\nb\nc", "a\nB\nc", "a\r\nB\nc"),
        ("a\r\nb", "a\nx\nb", "a\r\nx\r\nb"),
        ("a\nb", "b", "b"),
        ("a", "1\n2\n", "1\r\n2\r\n"),
    ],
)
def test_lines_that_stay_keep_their_ends_and_further_ones_get_the_majoritys(
    found: str, new: str, expected: str
) -> None:
    old = PlainText.of(found).text.split("\n")

    assert merge_lines(old, split_lines(found), new.split("\n"), "\r\n") == expected


@pytest.mark.parametrize(
    ("old", "found", "new", "expected"),
    [
        (["a", "  b"], ["    a", "      b"], ["a", "  c", "", "d"], ["    a", "      c", "", "    d"]),
        (["    a"], ["  a"], ["    b", "      c"], ["  b", "    c"]),
        (["    a"], ["  a"], ["b"], None),
        (["if x:", "    y"], ["if x:", "\ty"], ["if x:", "    y", "        z"], ["if x:", "\ty", "\t\tz"]),
        (["    a", "        b"], ["\ta", "\t\tb"], ["    a", "      c"], None),
        (["a"], ["\ta"], ["a", "    b"], None),
        (["a", "  b", " c"], ["a", "\tb", "    c"], ["b"], ["b"]),
        (["a", "  b", "  c"], ["a", "\tb", "    c"], ["  b"], None),
        (["", ""], ["", ""], ["  a"], ["  a"]),
    ],
)
def test_indentation_is_carried_over_by_one_rule_or_not_at_all(
    old: list[str], found: list[str], new: list[str], expected: list[str] | None
) -> None:
    assert reindent(old, found, new) == expected


_SPACES = [chr(code) for code in range(sys.maxunicode) if unicodedata.category(chr(code)) == "Zs"]


@pytest.mark.parametrize(
    ("wanted", "text", "found_by"),
    [
        ('say "hi"', "say “hi”", [True, True, True]),
        ("a - b", "a\u00a0– b", [True, True, True]),
        *(("one two", f"one{space}two", [True, True, True]) for space in _SPACES),
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
    assert find_similar("a  b", "a b\na   b\n", LEVELS[-1]) == [(0, 3), (4, 9)]


@pytest.mark.parametrize(
    ("wanted", "text", "shown"),
    [
        (
            "def g():\n    return 3\n",
            "def f():\n    return 1\n\ndef g():\n    return 2\n",
            "4\tdef g():\n     5\t    return 2\nThe first difference is in line 5: the file has '    return 2'",
        ),
        ("total = price * tax", "a = 1\ntotal = price + tax\nb = 2\n", "     2\ttotal = price + tax"),
        ("\xe9 x", "e\u0301 x\n", r"the file has 'e\u0301 x', old_string has '\xe9 x'"),
        ("quite different", "a\nb\n", ""),
    ],
    ids=["equal-lines", "equal-words", "invisible-difference", "nothing-near"],
)
def test_the_most_similar_text_is_shown_with_the_first_difference(wanted: str, text: str, shown: str) -> None:
    nearest = describe_nearest(wanted, text)

    assert (shown in nearest, bool(nearest)) == (True, bool(shown))


def test_a_large_file_is_searched_quickly_and_little_is_shown() -> None:
    text = "\n".join(f"line number {number} of many {'x' * 300}" for number in range(20_000))
    began = time.monotonic()

    shown = describe_nearest("\n".join(["line number 777 of few"] * 100), text)

    assert (len(shown) < 4_000, time.monotonic() - began < 10) == (True, True)
