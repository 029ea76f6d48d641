import asyncio
import os
import sys
from collections.abc import Callable, Iterator

import pytest
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input

from graph_agent.cli.prompts.choices import ALL, APPROVAL, OUTSIDE, choice_line
from graph_agent.cli.prompts.keyboard import decode_sequences
from graph_agent.cli.prompts.terminal import InputClosed, InputInterrupted, Terminal, TurnKeys
from tests.fakes.screen import Screen

_UP = "\x1b[A"
_SETTLED_S = 0.4
"""Longer than a lone Esc takes to be a key."""
_KEYS = {
    "Alt-Enter": "\x1b\r",
    "Shift-Enter": "\x1b[13;2u",
    "Alt-b": "\x1bb",
    "Alt-f": "\x1bf",
    "Alt-d": "\x1bd",
    "Alt-Backspace": "\x1b\x7f",
    "Alt-z, unbound": "\x1bz",
    "Left": "\x1b[D",
    "Right": "\x1b[C",
    "Home": "\x1b[H",
    "End": "\x1b[F",
    "Delete": "\x1b[3~",
    "Ctrl-Left": "\x1b[1;5D",
    "Ctrl-A": "\x01",
    "Ctrl-E": "\x05",
    "Ctrl-K": "\x0b",
    "Ctrl-U": "\x15",
    "Ctrl-W": "\x17",
    "Ctrl-W Ctrl-Y": "\x17\x19",
    "Ctrl-T": "\x14",
    "F1": "\x1bOP",
    "F5": "\x1b[15~",
    "focus in": "\x1b[I",
    "focus out": "\x1b[O",
    "a release in the kitty protocol": "\x1b[97;1:3u",
    "an unknown sequence": "\x1b[?2026;2$y",
    "backslash Enter": "\\\r",
    "a paste of lines": "\x1b[200~x\r\ny\x1b[201~",
}


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as source:
        yield source


def _editor(
    keys: PipeInput, *earlier: str, is_plain: bool = False, suspend: Callable[[], None] = lambda: None
) -> Terminal:
    terminal = Terminal(InMemoryHistory(earlier), source=keys)
    vars(terminal).update(_is_plain=is_plain, _suspend=suspend)
    return terminal


def _keyboard(keys: PipeInput, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the pipe decode sequences as the keyboard of a terminal does."""
    read = keys.read_keys
    monkeypatch.setattr(keys, "read_keys", lambda: decode_sequences(read()))


def _seen(capsys: pytest.CaptureFixture[str]) -> list[str]:
    screen, written = Screen(60, 10), capsys.readouterr().out
    assert "\x1b" not in written
    screen.feed(written)
    return screen.lines


@pytest.mark.parametrize("name", _KEYS)
async def test_a_key_edits_the_line_during_a_turn_as_at_the_prompt_and_stops_nothing(
    keys: PipeInput, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    _keyboard(keys, monkeypatch)
    editor, stops, lines = _editor(keys), list[str](), list[str]()
    typed = ("one two", _KEYS[name], "3")

    def enter(line: str) -> bool:
        lines.append(line)
        return True

    async with editor.during_turn(TurnKeys(lambda: stops.append("stop"), enter)):
        for part in (*typed, "\r"):
            keys.send_text(part)
            await asyncio.sleep(0.01)
        await asyncio.sleep(_SETTLED_S)
    message = asyncio.create_task(editor.message())
    for part in (*typed, "\r"):
        keys.send_text(part)
        await asyncio.sleep(0.01)

    assert (stops, lines) == ([], [await message])


@pytest.mark.parametrize("key", ["\x1b", "\x03", "half a line\x1b"])
async def test_a_lone_escape_and_ctrl_c_stop_the_turn_and_keep_the_line(keys: PipeInput, key: str) -> None:
    editor, stops = _editor(keys), list[str]()

    async with editor.during_turn(TurnKeys(lambda: stops.append("stop"))):
        keys.send_text(key)
        await asyncio.sleep(_SETTLED_S)
    keys.send_text("\r")

    assert (stops, await editor.message()) == (["stop"], key.rstrip("\x1b\x03"))


async def test_the_line_of_a_turn_is_continued_at_the_prompt_where_its_cursor_was(keys: PipeInput) -> None:
    editor, seen = _editor(keys), list[tuple[str, int]]()

    async with editor.during_turn(TurnKeys(lambda: None, changed=lambda *line: seen.append(line))):
        keys.send_text("half\x1b[D")
        await asyncio.sleep(_SETTLED_S)
    keys.send_text("X\r")

    assert (await editor.message(), seen[-1]) == ("halXf", ("half", 3))


@pytest.mark.parametrize("is_plain", [False, True])
async def test_ctrl_z_stops_the_job_and_keeps_the_line(keys: PipeInput, is_plain: bool) -> None:
    stops: list[str] = []
    editor = _editor(keys, is_plain=is_plain, suspend=lambda: stops.append("stopped"))
    keys.send_text("half\x1a whole\r")

    assert (await editor.message(), stops) == ("half whole", ["stopped"])
    async with editor.during_turn(TurnKeys(lambda: None, suspend=lambda: stops.append("hidden"))):
        keys.send_text("ne\x1axt")
        await asyncio.sleep(_SETTLED_S)
    keys.send_text("\r")

    assert (await editor.message(), stops) == ("next", ["stopped", "hidden", "stopped"])


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("one\\\rtwo\r", "one\ntwo"),
        ("one\\\r\\\rtwo\r", "one\n\ntwo"),
        ("a\\b\r", "a\\b"),
        ("x\\\x1b[D\r", "x\\"),
        ("one\x1b\rtwo\r", "one\ntwo"),
    ],
)
async def test_alt_enter_and_a_backslash_before_enter_start_a_new_line(
    keys: PipeInput, typed: str, message: str
) -> None:
    keys.send_text(typed)

    assert await _editor(keys).message() == message


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("one\x7f two\r", "on two"),
        ("日本\x7f語\r", "日語"),
        ("one two\x17three\r", "one three"),
        ("one\x15two\r", "two"),
        ("one\x03two\r", "two"),
        ("on\x1b[De\r", "oen"),
        ("\x7f\x04x\r", None),
    ],
)
async def test_on_a_plain_terminal_the_screen_shows_what_is_entered(
    keys: PipeInput, capsys: pytest.CaptureFixture[str], typed: str, text: str | None
) -> None:
    editor = _editor(keys, is_plain=True)
    keys.send_text(typed)

    if text is None:
        with pytest.raises(InputClosed):
            await editor.message()
    else:
        assert await editor.message() == text
        assert _seen(capsys) == [f"> {text}"]


async def test_on_a_plain_terminal_up_and_down_go_through_the_history(
    keys: PipeInput, capsys: pytest.CaptureFixture[str]
) -> None:
    message = asyncio.create_task(_editor(keys, "first", "second", is_plain=True).message())
    await asyncio.sleep(0.1)
    keys.send_text(f"{_UP}{_UP}{_UP}\x1b[B!\r")

    assert (await message, _seen(capsys)) == ("second!", ["> second!"])


async def test_on_a_plain_terminal_a_paste_brings_lines_and_what_is_left_over_waits(keys: PipeInput) -> None:
    editor = _editor(keys, is_plain=True)
    keys.send_text("\x1b[200~one\r\ntwo\x1b[201~\x1b\rthree\rleft over")

    first = await editor.message()
    keys.send_text("\r")

    assert (first, await editor.message()) == ("one\ntwo\nthree", "left over")


async def test_on_a_plain_terminal_output_comes_between_the_line_and_its_continuation(
    keys: PipeInput, capsys: pytest.CaptureFixture[str]
) -> None:
    editor = _editor(keys, is_plain=True)
    message = asyncio.create_task(editor.message())
    keys.send_text("half")
    await asyncio.sleep(0.05)

    def write() -> None:
        sys.stdout.write("output\n")

    editor.show(write)
    keys.send_text(" whole\r")

    assert (await message, _seen(capsys)) == ("half whole", ["> half", "output", "> half whole"])


@pytest.mark.parametrize("is_plain", [False, True])
@pytest.mark.parametrize(
    ("key", "raised"), [("\x03", InputInterrupted), ("\x04", InputClosed), ("abc\x04", InputClosed)]
)
async def test_leaving_a_question_works_with_something_typed_too(
    keys: PipeInput, key: str, raised: type[Exception], is_plain: bool
) -> None:
    keys.send_text(key)

    with pytest.raises(raised):
        await _editor(keys, is_plain=is_plain).answer("? ")


@pytest.mark.parametrize("columns", [40, 80])
async def test_the_choices_of_a_question_are_folded_between_words(
    keys: PipeInput, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setattr("os.get_terminal_size", lambda *_: os.terminal_size((columns, 24)))
    choices = choice_line((*APPROVAL, OUTSIDE, ALL))
    keys.send_text("y\r")

    answer = await _editor(keys).answer(choices)

    screen = Screen(columns, 24)
    screen.feed(capfd.readouterr().out)
    assert (answer, " ".join(screen.lines).split()) == ("y", [*choices.split(), "y"])
    assert all(word in choices.split() for line in screen.lines for word in line.split()[:-1])


async def test_what_is_typed_after_a_search_that_was_left_is_the_next_message(keys: PipeInput) -> None:
    editor = _editor(keys, "hi there")

    keys.send_text("\x12hi\x03mine\r")
    assert await editor.message() == "mine"
    keys.send_text("\x12hi\x04")
    with pytest.raises(InputClosed):
        await editor.answer("? ")
    keys.send_text("y\r")
    assert await editor.answer("? ") == "y"


async def test_once_nothing_is_queued_any_more_up_is_for_the_history(keys: PipeInput) -> None:
    async def nothing() -> str | None:
        return None

    editor = _editor(keys, "earlier")
    message = asyncio.create_task(editor.message(nothing))
    await asyncio.sleep(0.1)
    for key in (_UP, _UP, "\r"):
        keys.send_text(key)
        await asyncio.sleep(0.05)

    assert await message == "earlier"
