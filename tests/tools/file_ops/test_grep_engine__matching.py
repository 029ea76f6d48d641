import pytest

from tools.file_ops import grep_engine
from tools.file_ops.grep_engine import LineSearch, RequiredTexts, SearchHit, split_lines
from tools.patterns import BadPattern, compile_pattern


def test_a_line_matches_once_and_a_spanning_match_knows_its_lines() -> None:
    lines = ["aa b", "b", "", "a"]

    assert LineSearch(compile_pattern("a"), RequiredTexts(("a",)), is_multiline=False).hits(lines) == [
        SearchHit(0, 0, 0),
        SearchHit(3, 3, 0),
    ]
    assert LineSearch(compile_pattern("b\nb"), RequiredTexts(), is_multiline=True).hits(lines) == [
        SearchHit(0, 1, 3)
    ]


def test_a_pattern_that_runs_away_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grep_engine, "_SECONDS", 0.2)
    search = LineSearch(compile_pattern(r"(a|aa|a.)+\1(b|c)+d\2$"), RequiredTexts(), is_multiline=False)

    with pytest.raises(BadPattern, match="nested repetitions"):
        search.hits(["a" * 5_000 + "c"] * 50)


def test_lines_end_as_editors_see_them() -> None:
    assert split_lines("a\r\nb\rc\x0cd\n") == ["a", "b", "c\x0cd"]
