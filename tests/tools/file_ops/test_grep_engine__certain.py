import pytest

from tools.file_ops.grep_engine import RequiredTexts, required_texts


@pytest.mark.parametrize(
    ("pattern", "texts"),
    [
        ("hello", ["hello"]),
        (r"def \w+_name\(", ["_name"]),
        ("colou?r", ["colo"]),
        ("ab*c", ["a"]),
        ("ab+", ["ab"]),
        ("a{0,2}bc", ["bc"]),
        ("(maybe)?sure", ["sure"]),
        ("[abc]def", ["def"]),
        ("one|two", ["one", "two"]),
        ("one|two|", []),
        ("need(le|ing) on", ["need"]),
        ("(?:a|b)cd(?=efgh)", ["cd"]),
        ("(?P<name>longer)cd", ["cd"]),
        ("a}(bcd)?", ["a"]),
        ("[[:alpha:]foo]", []),
        ("(?s)hit", []),
        ("a(?#longer)b", []),
        (r"\x41bc", []),
        (r"\u0041bc", []),
        (r"(a)\1b", []),
        (r"\p{L}abc", []),
        ("é", []),
    ],
)
def test_only_what_every_match_must_hold_is_taken_for_certain(pattern: str, texts: list[str]) -> None:
    assert required_texts(pattern, is_literal=False) == RequiredTexts(tuple(texts))


def test_where_case_is_ignored_only_letters_that_have_no_case_beyond_ascii_are_certain() -> None:
    assert required_texts("(?i)Needle|skill", is_literal=False) == RequiredTexts(
        ("Needle", "ll"), ignores_case=True
    )


def test_the_longest_line_of_ascii_in_a_literal_is_certain() -> None:
    assert required_texts("é(x|y)\nlonger than that", is_literal=True) == RequiredTexts(("longer than that",))


def test_a_match_is_possible_where_one_of_the_texts_stands_or_nothing_is_known() -> None:
    known = RequiredTexts(("one", "two"))

    assert (known.may_match("a two"), known.may_match("a three"), RequiredTexts().may_match("a")) == (
        True,
        False,
        True,
    )
