import unicodedata

import pytest

from graph_agent.cli.escape import escape


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("rm -rf /\rls", "rm -rf /\\rls"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("safe\u202egpj.exe", "safe\\u202egpj.exe"),
        ("pay\u200bpal\ufeff", "pay\\u200bpal\\ufeff"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800"),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_written_out(text: str, shown: str) -> None:
    assert escape(text) == shown


@pytest.mark.parametrize("text", ["plain [red]text[/red]", "C:\\new", "日本語 é ß", "❤\ufe0f", "\\x1b"])
def test_readable_text_comes_back_as_it_was(text: str) -> None:
    assert escape(text) == text


def test_multiline_keeps_line_feeds_and_tabs_and_still_shows_the_rest() -> None:
    assert escape("a\n\tb\r\n\x1b[2J\u2028", multiline=True) == "a\n\tb\\r\n\\x1b[2J\\u2028"


def test_no_control_format_surrogate_or_separator_character_survives() -> None:
    categories = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    # Visible signs that Unicode counts as format characters: Arabic, Syriac, Kaithi and Egyptian marks.
    visible = {*range(0x600, 0x606), 0x6DD, 0x70F, 0x890, 0x891, 0x8E2, 0x110BD, 0x110CD, *range(0x13430, 0x13440)}

    survivors = [
        code
        for code in range(0x110000)
        if unicodedata.category(chr(code)) in categories and code not in visible and escape(chr(code)) == chr(code)
    ]

    assert survivors == []
