import os
import pty
import sys
import time
from collections.abc import Iterator

import pytest
from prompt_toolkit.input.typeahead import get_typeahead
from prompt_toolkit.keys import Keys

from graph_agent.cli.prompts.keyboard import BREAK_LINE, CTRL_ENTER, Keyboard, typed_text
from graph_agent.cli.prompts.terminal_output import full_reports, plain_input, terminal_output


@pytest.fixture
def line() -> Iterator[tuple[int, Keyboard]]:
    person, program = pty.openpty()
    with os.fdopen(program, encoding="utf-8") as source:
        yield person, Keyboard(source)
    os.close(person)


def test_a_long_run_of_characters_is_one_paste_without_its_first_and_last(line: tuple[int, Keyboard]) -> None:
    person, keyboard = line
    text = "é" + "0123456789" * 10 + "\\"

    with keyboard.raw_mode():
        os.write(person, f"\x1b{text}\rnext\r".encode())
        keys = keyboard.read_keys()

    assert [press.key for press in keys] == [
        Keys.Escape, "é", Keys.BracketedPaste, "\\", Keys.Enter, *"next", Keys.Enter
    ]  # fmt: skip
    assert typed_text(keys) == f"{text}\nnext\n"


@pytest.mark.parametrize(
    ("typed", "keys"),
    [
        ("\x1b[I\x1b[O", []),
        ("\x1b[?2026;2$y", []),
        ("\x1b[13;2u", [BREAK_LINE]),
        ("\x1b[27;2;13~", [BREAK_LINE]),
        ("\x1b[13;5u\x1b[27;5;13~", [CTRL_ENTER, CTRL_ENTER]),
        ("\x1b[13u", [Keys.Enter]),
        ("\x1b[97;1u\x1b[97;2u\x1b[97;3u", ["a", "A", Keys.Escape, "a"]),
        ("\x1b[97;5u\x1b[98;7u", [Keys.ControlA, Keys.Escape, Keys.ControlB]),
        ("\x1b[97;1:3u\x1b[57441;2u", []),
        ("\x1b[9u\x1b[9;2u", [Keys.Tab, Keys.BackTab]),
        ("\x1b[127u\x1b[127;3u", [Keys.Backspace, Keys.Escape, Keys.Backspace]),
        ("\x1b[27u", [Keys.Escape]),
        ("\x1bb\x1b[A", [Keys.Escape, "b", Keys.Up]),
        ("a\nb\nc", [Keys.BracketedPaste]),
        ("a\rb\rc", [Keys.BracketedPaste]),
        ("a\rb\r", ["a", Keys.Enter, "b", Keys.Enter]),
        ("\r\r", [Keys.Enter, Keys.Enter]),
        ("\x1ba\nb", [Keys.Escape, "a", Keys.BracketedPaste]),
        ("line\r" * 300, [Keys.BracketedPaste]),
        ("\x1b[118;9u\x1b[<0;3;4M\x1b[M !!\x1b]11;rgb:0/0/0\x07\x1bP>|x\x1b\\", []),
        ("\x1b[57400u\x1bOp\x1b[57417u\x1b[1;129A", ["1", "0", Keys.Left, Keys.Up]),
    ],
)
def test_an_escape_sequence_is_the_key_it_stands_for_or_none(
    line: tuple[int, Keyboard], typed: str, keys: list[str]
) -> None:
    person, keyboard = line

    with keyboard.raw_mode():
        os.write(person, typed.encode())
        assert [press.key for press in keyboard.read_keys()] == keys


@pytest.mark.parametrize(
    ("typed", "keys"),
    [("\x1b[1;5D", [Keys.ControlLeft]), ("\x1b]11;x\x07", []), ("\x1b[200~a\rb\x1b[201~", [Keys.BracketedPaste])],
)
def test_a_sequence_that_comes_in_pieces_is_the_same_key(
    line: tuple[int, Keyboard], typed: str, keys: list[str]
) -> None:
    person, keyboard = line
    found = list[str]()

    with keyboard.raw_mode():
        for piece in typed:
            os.write(person, piece.encode())
            found += [press.key for press in keyboard.read_keys()]

    assert found == keys


def test_lines_typed_before_raw_mode_are_entered_one_by_one(line: tuple[int, Keyboard]) -> None:
    person, keyboard = line

    os.write(person, b"second\rthird\r")
    time.sleep(0.1)
    with keyboard.raw_mode():
        keyboard.take_typed_lines()

    assert typed_text(get_typeahead(keyboard)) == "second\nthird\n"
    assert [press.key for press in get_typeahead(keyboard)] == []


@pytest.mark.parametrize(
    ("term", "on", "off"),
    [
        ("xterm-256color", "\x1b[?2004h\x1b[?1004h\x1b[>4;1m\x1b[>1u", "\x1b[<u\x1b[>4m\x1b[?1004l\x1b[?2004l"),
        ("linux", "\x1b[?2004h\x1b[?1004h", "\x1b[?1004l\x1b[?2004l"),
    ],
)
def test_the_terminal_reports_pastes_and_keys_until_it_is_given_back_or_lent(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, term: str, on: str, off: str
) -> None:
    monkeypatch.setenv("TERM", term)
    output = terminal_output()

    with full_reports():
        output.disable_bracketed_paste()
        output.flush()
        with plain_input():
            sys.stdout.write("editor\n")
        sys.stdout.write("chat\n")

    assert capsys.readouterr().out == f"{on}{off}editor\n{on}chat\n{off}"


def test_a_dumb_terminal_gets_no_paste_mode(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")

    with full_reports(), plain_input():
        sys.stdout.write("chat\n")

    assert capsys.readouterr().out == "chat\n"
