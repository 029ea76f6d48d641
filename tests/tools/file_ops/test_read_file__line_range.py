import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tools.file_ops import read_file
from tools.file_ops.read_file import range_of_lines


def _split(text: str) -> list[str]:
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


@settings(deadline=None)
@given(st.text(alphabet="ab\n\r\x0c\u2028"), st.integers(1, 12), st.integers(1, 12))
def test_a_range_is_what_splitting_the_whole_text_gives(text: str, first: int, count: int) -> None:
    lines = _split(text)

    assert range_of_lines(text, first, count) == (lines[first - 1 : first - 1 + count], len(lines))


@pytest.mark.parametrize("first", [1, 2, 9_999, 10_000, 10_001, 20_000, 20_001])
def test_a_range_far_into_a_text_is_found_across_its_pieces(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_file, "_PIECE", 1_000)
    text = "".join(f"line {number}\n" for number in range(1, 20_001))

    assert range_of_lines(text, first, 2) == (
        [f"line {number}" for number in range(first, min(first + 2, 20_001))],
        20_000,
    )
