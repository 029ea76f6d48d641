import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.file_ops.replace import PlainText, common_ends, merge_lines, split_lines

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
    ("one", "other", "shared"),
    [(["a", "b"], ["a", "b"], (2, 0)), (["a", "x", "c"], ["a", "c"], (1, 1)), (["a"], ["b"], (0, 0))],
)
def test_shared_ends_do_not_overlap(one: list[str], other: list[str], shared: tuple[int, int]) -> None:
    assert common_ends(one, other) == shared


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
