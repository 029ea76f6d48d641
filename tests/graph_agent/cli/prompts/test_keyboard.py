import os
import pty
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prompt_toolkit.history import FileHistory
from prompt_toolkit.keys import Keys

from graph_agent.cli.prompts.keyboard import Keyboard, TypedHistory, typed_text
from graph_agent.cli.prompts.terminal_output import bracketed_paste, plain_paste, terminal_output


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
        ("\x1b[13;2u", [Keys.Escape, Keys.Enter]),
        ("\x1b[27;2;13~", [Keys.Escape, Keys.Enter]),
        ("\x1b[13u", [Keys.Enter]),
        ("\x1b[97;1u\x1b[97;2u\x1b[97;3u", ["a", "A", Keys.Escape, "a"]),
        ("\x1b[97;5u\x1b[98;7u", [Keys.ControlA, Keys.Escape, Keys.ControlB]),
        ("\x1b[97;1:3u\x1b[57441;2u", []),
        ("\x1b[9u\x1b[9;2u", [Keys.Tab, Keys.BackTab]),
        ("\x1b[127u\x1b[127;3u", [Keys.Backspace, Keys.Escape, Keys.Backspace]),
        ("\x1b[27u", [Keys.Escape]),
        ("\x1bb\x1b[A", [Keys.Escape, "b", Keys.Up]),
    ],
)
def test_an_escape_sequence_is_the_key_it_stands_for_or_none(
    line: tuple[int, Keyboard], typed: str, keys: list[str]
) -> None:
    person, keyboard = line

    with keyboard.raw_mode():
        os.write(person, typed.encode())
        assert [press.key for press in keyboard.read_keys()] == keys


def test_brackets_around_pastes_stay_on_until_the_terminal_is_given_back_or_lent(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    output = terminal_output()

    with bracketed_paste():
        output.disable_bracketed_paste()
        output.flush()
        with plain_paste():
            sys.stdout.write("editor\n")
        sys.stdout.write("chat\n")

    assert capsys.readouterr().out == "\x1b[?2004h\x1b[?2004leditor\n\x1b[?2004hchat\n\x1b[?2004l"


def test_a_dumb_terminal_gets_no_paste_mode(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")

    with bracketed_paste(), plain_paste():
        sys.stdout.write("chat\n")

    assert capsys.readouterr().out == "chat\n"


def test_the_history_is_read_newest_first_and_by_other_readers_of_its_format(tmp_path: Path) -> None:
    history = TypedHistory(tmp_path / "history")

    for text in ("one", "+two\n\n#three", "four \udcff"):
        history.store_string(text)

    kept = ["four ?", "+two\n\n#three", "one"]
    assert list(history.load_history_strings()) == kept
    assert list(FileHistory(tmp_path / "history").load_history_strings()) == kept


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_anything_but_a_plain_file_is_neither_read_nor_waited_for(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "history")
    history = TypedHistory(tmp_path / "history")

    history.store_string("lost")

    assert list(history.load_history_strings()) == []


def test_the_end_of_a_large_history_is_read_and_garbage_is_ignored(tmp_path: Path) -> None:
    file = tmp_path / "history"
    file.write_bytes(b"\n# then\n" + b"+old line\n" * 300_000 + b"\xff\x00garbage\n")
    history = TypedHistory(file)

    history.store_string("new")

    assert list(history.load_history_strings()) == ["new"]
