import time

import pytest

from tools.patterns import BadPattern, compiled, spans


def test_places_come_in_order_and_borders_are_those_of_lines() -> None:
    assert list(spans(compiled("^a.$"), "ab\ncd\nae")) == [(0, 2), (6, 8)]


@pytest.mark.parametrize("pattern", ["foo(", "[z-a]", "*"])
def test_what_is_no_pattern_is_refused_with_the_reason(pattern: str) -> None:
    with pytest.raises(BadPattern, match=r"is no valid regular expression: .+"):
        compiled(pattern)


def test_a_pattern_that_runs_away_is_stopped() -> None:
    began = time.monotonic()

    with pytest.raises(BadPattern, match=r"was stopped after 0.2 seconds"):
        list(spans(compiled(r"(a|aa)+$"), "a" * 80 + "!", seconds=0.2))

    assert time.monotonic() - began < 5
