import time

import pytest

from tools.patterns import BadPattern, compile_pattern, find_spans


def test_places_come_in_order_and_borders_are_those_of_lines() -> None:
    assert list(find_spans(compile_pattern("^a.$"), "ab\ncd\nae")) == [(0, 2), (6, 8)]


@pytest.mark.parametrize("pattern", ["foo(", "[z-a]", "*"])
def test_what_is_no_pattern_is_refused_with_the_reason(pattern: str) -> None:
    with pytest.raises(BadPattern, match=r"is not a valid regular expression: .+"):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    "pattern", ["a{99999999}", "(?:[)]{1000}){1000}", "((\\({99}){99}b){99}", "x{9" + "9" * 50 + "}"]
)
def test_a_pattern_that_would_take_all_memory_is_refused_unread(pattern: str) -> None:
    with pytest.raises(BadPattern, match=r"repeats too often|is no valid"):
        compile_pattern(pattern)


def test_repetitions_side_by_side_are_not_taken_for_nested_ones() -> None:
    pattern = r"\d{1,999999}(a{1000}|[]{9]{1000})b{50000}\{99999999\}"

    assert compile_pattern(pattern).pattern == pattern


def test_a_pattern_that_runs_away_is_stopped() -> None:
    began = time.monotonic()

    with pytest.raises(BadPattern, match=r"was stopped after 0.2 seconds"):
        list(find_spans(compile_pattern(r"(a|aa)+$"), "a" * 80 + "!", seconds=0.2))

    assert time.monotonic() - began < 5
