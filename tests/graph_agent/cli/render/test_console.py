import io
import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.text import Text

from graph_agent.cli.render.console import block, diff_lines, fold, make_console, safe_text
from graph_agent.ports.stored_text import parse_diff
from graph_agent.wording import escape


def test_markup_emoji_codes_and_numbers_are_printed_as_they_are() -> None:
    stream = io.StringIO()

    make_console(stream).print("[red]x[/] :smile: 42")

    assert stream.getvalue() == "[red]x[/] :smile: 42\n"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("kind", ["dumb", "unknown", "xterm"])
def test_a_terminal_of_any_kind_is_as_wide_as_it_says(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(sys, "stdout", _Terminal())
    monkeypatch.setenv("TERM", kind)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("os.get_terminal_size", lambda *_: os.terminal_size((60, 24)))

    assert make_console().width == 60


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


@pytest.mark.parametrize("text", ["\u0301", "\u0301\u0302", "ab\u0301" * 20, "漢" * 9 + "\u0301" * 30])
@pytest.mark.parametrize("width", [1, 12, 18])
def test_characters_without_cells_are_folded_like_others(text: str, width: int) -> None:
    assert "".join(line.plain for line in block(text, width, "")) == text


@given(st.text(), st.integers(min_value=12, max_value=60))
def test_a_block_loses_and_adds_nothing_and_keeps_to_the_width(text: str, width: int) -> None:
    lines = [line.plain for line in block(text, width, "| ")]

    assert all(line.startswith("| ") and cell_len(line) <= width for line in lines)
    shown = "".join(line.removeprefix("| ") for line in lines)
    assert shown == "".join(escape(line) for line in text.split("\n"))


def test_a_line_of_a_block_cannot_leave_its_gutter() -> None:
    assert [line.plain for line in block("ok\r\nApprove?\x1b[1A\n", 40, "| ")] == ["| ok\\r", "| Approve?\\x1b[1A"]


_CHANGE = """--- a.txt
+++ a.txt
@@ -3,3 +3,3 @@
 same
-old [red]
+new\t\x1b[2J
 tail
"""


def test_lines_carry_the_number_of_the_side_they_are_on() -> None:
    assert [line.plain for line in diff_lines(_CHANGE, 80)] == [
        "       --- a.txt",
        "       +++ a.txt",
        "     3  same",
        "     4 -old [red]",
        "     4 +new→   \\x1b[2J",
        "     5  tail",
    ]


def test_added_is_green_and_removed_is_red() -> None:
    styles = {line.plain[7:11]: {str(span.style) for span in line.spans} for line in diff_lines(_CHANGE, 80)}

    assert ("red" in styles["-old"], "green" in styles["+new"], "green" in styles[" sam"]) == (True, True, False)


def test_the_sides_of_a_hunk_are_the_texts_before_and_after() -> None:
    _, [hunk] = parse_diff("--- a\n+++ a\n@@ -1,2 +1,2 @@\n same\n-\\old\n\\ No newline at end of file\n+new\n")

    assert (hunk.side("-"), hunk.side("+")) == ("same\n\\old", "same\nnew\n")


def test_a_line_is_folded_between_words_without_blanks_at_its_ends_and_a_path_after_a_slash() -> None:
    pieces = fold(Text("one two three-and-more four a/bcd/efg  hij kl took 0.1 s"), 10, "  ", by_words=True)

    folded = ["one two", "three-an", "d-more", "four", "a/bcd/", "efg  hij", "kl took", "0.1 s"]
    assert [piece.plain for piece in pieces] == [f"  {line}" for line in folded]


def test_a_missing_last_line_feed_stays_visible() -> None:
    lines = diff_lines("@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n", 80)

    assert [line.plain for line in lines] == ["     1 +x", "       \\ No newline at end of file"]
