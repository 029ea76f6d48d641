from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from graph_agent.cli.render.console import block, fold, safe_text
from graph_agent.cli.render.escape import escape


def test_an_escape_looks_different_from_the_same_characters_typed() -> None:
    typed, hidden = safe_text("\\x1b[2J"), safe_text("\x1b[2J")

    assert typed.plain == hidden.plain
    assert (typed.spans, [(span.start, span.end, span.style) for span in hidden.spans]) == ([], [(0, 4, "reverse")])


def test_escapes_that_follow_each_other_are_one_piece_however_many_they_are() -> None:
    shown = safe_text("\0" * 1_000 + "a\x1b\x1b")

    assert (shown.plain, len(shown.spans)) == ("\\x00" * 1_000 + "a\\x1b\\x1b", 2)


def test_a_long_line_folds_behind_its_gutter() -> None:
    pieces = fold(Text("abcdefghijklmnopqrst"), 14, "  a: ", "   │ ")

    assert [piece.plain for piece in pieces] == ["  a: abcdefghi", "   │ jklmnopqr", "   │ st"]


def test_wide_characters_fold_by_cells() -> None:
    pieces = fold(Text("漢字漢字漢字"), 10, "")

    assert [piece.plain for piece in pieces] == ["漢字漢字漢", "字"]


@given(st.text(), st.integers(min_value=12, max_value=60))
def test_a_block_loses_and_adds_nothing_and_keeps_to_the_width(text: str, width: int) -> None:
    lines = [line.plain for line in block(text, width, "| ")]

    assert all(line.startswith("| ") and cell_len(line) <= width for line in lines)
    shown = "".join(line.removeprefix("| ") for line in lines)
    assert shown == "".join(escape(line) for line in text.split("\n"))


def test_a_line_of_a_block_cannot_leave_its_gutter() -> None:
    assert [line.plain for line in block("ok\r\nApprove?\x1b[1A\n", 40, "| ")] == ["| ok\\r", "| Approve?\\x1b[1A"]
