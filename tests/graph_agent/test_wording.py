import unicodedata

import pytest

from graph_agent.cli.views.table import is_plain_terminal, supports_escapes
from graph_agent.wording import escape, parts


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
        ("a\u200db", "a\\u200db"),
        ("pay\ufe0fpal", "pay\\ufe0fpal"),
        ("👍\u200d", "👍\\u200d"),
        ("👨\u200d\u202e👩", "👨\\u200d\\u202e👩"),
        ("👨\u200b👩", "👨\\u200b👩"),
        ("\U0001f3f4\U000e0061\U000e007f", "\U0001f3f4\\U000e0061\\U000e007f"),
        ("❤\ufe0e", "❤\\ufe0e"),
        ("9\ufe0f", "9\\ufe0f"),
    ],
)
def test_what_a_terminal_would_obey_or_hide_is_written_out(text: str, shown: str) -> None:
    assert escape(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        *("plain [red]text[/red]", "C:\\new", "日本語 é ß", "\\x1b", "e\u0301"),
        *(
            "❤\ufe0f",
            "👨\u200d👩\u200d👧",
            "👩🏽\u200d🚀",
            "👍🏽",
            "🇩🇪",
            "🏳\ufe0f\u200d🌈",
            "❤\ufe0f\u200d🔥",
            "1\ufe0f\u20e3",
        ),
        "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    ],
)
def test_readable_text_comes_back_as_it_was(text: str) -> None:
    assert escape(text) == text


def test_the_pieces_of_a_line_say_which_of_them_are_escapes() -> None:
    pieces = list(parts("a\u200b👨\u200d👩\x1b\x1bz"))

    assert pieces == [("a", False), ("\\u200b", True), ("👨\u200d👩", False), ("\\x1b\\x1b", True), ("z", False)]
    assert list(parts("")) == []


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


@pytest.mark.parametrize(
    ("environment", "plain", "moves"),
    [
        ({"TERM": "xterm-256color"}, False, True),
        ({"TERM": "xterm-256color", "GRAPH_AGENT_PLAIN": "1"}, True, True),
        ({"TERM": "xterm-256color", "GRAPH_AGENT_PLAIN": "0"}, False, True),
        ({"TERM": "dumb"}, True, False),
        ({}, False, True),
    ],
)
def test_plain_is_what_is_asked_for_and_what_a_dumb_terminal_needs(
    environment: dict[str, str], plain: bool, moves: bool
) -> None:
    assert (is_plain_terminal(environment), supports_escapes(environment)) == (plain, moves)
