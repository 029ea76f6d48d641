import asyncio
import os
import pty
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import PipeInput, create_input, create_pipe_input

from graph_agent.cli.chat.completion import TypedHistory
from graph_agent.cli.prompts.choices import HELP, VIEW, KeyLine
from graph_agent.cli.prompts.keyboard import KeyDecoder
from graph_agent.cli.prompts.terminal import InputCancelled, InputClosed, InputInterrupted, Terminal, TurnKeys
from graph_agent.wording import APPROVAL, OUTSIDE, Choice
from tests.fakes.screen import Screen
from tests.fakes.waiting import until

_IN_TRANSIT_S = 0.02
"""The kernel hands on what is typed a moment later, in the mode the terminal has by then."""
_ESCAPE_S = 0.02
"""How long a lone Esc takes to be a key, where a test waits for that."""
_UP, _CTRL_C, _CTRL_D = "\x1b[A", "\x03", "\x04"
_KEYS = {
    "Alt-Enter": "\x1b\r",
    "Ctrl-J": "\n",
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


@pytest.fixture(params=["", "1"], ids=["drawn", "plain"])
def any_terminal(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPH_AGENT_PLAIN", request.param)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GRAPH_AGENT_PLAIN", "1")


class _Pty:
    """A terminal at whose other end somebody types."""

    def __init__(self) -> None:
        self._master, self._slave = pty.openpty()
        self.source = os.fdopen(self._slave, encoding="utf-8")
        self.terminal = Terminal(source=create_input(self.source))

    def types(self, keys: str) -> None:
        os.write(self._master, keys.encode())
        time.sleep(_IN_TRANSIT_S)

    def close(self) -> None:
        self.source.close()
        os.close(self._master)


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Pty]:
    monkeypatch.setenv("TERM", "xterm-256color")
    made = _Pty()
    yield made
    made.close()


class _Turn:
    """What the keys of a turn did: lines that were entered, and stops."""

    def __init__(self, *, takes: Callable[[str], bool] = lambda _: True) -> None:
        self.lines: list[str] = []
        self.stops: list[str] = []
        self.changes: list[tuple[str, int]] = []
        self._takes = takes

    @property
    def keys(self) -> TurnKeys:
        return TurnKeys(
            lambda: self.stops.append("stop"),
            self._enter,
            lambda *line: self.changes.append(line),
            lambda: self.stops.append("hidden"),
        )

    def _enter(self, line: str, _: bool = False) -> bool:
        self.lines.append(line)
        return self._takes(line)


def _seen(capsys: pytest.CaptureFixture[str]) -> list[str]:
    screen, written = Screen(60, 10), capsys.readouterr().out
    assert "\x1b" not in written
    screen.feed(written)
    return screen.lines


@pytest.mark.parametrize("typed", ["more\r", "x\x7fmore\r", "\x04more\r"])
async def test_what_is_typed_while_something_is_shown_above_the_line_arrives(line: _Pty, typed: str) -> None:
    with line.terminal.held():
        message = asyncio.create_task(line.terminal.message())
        line.types("one ")
        await asyncio.sleep(0.1)
        line.terminal.show(lambda: line.types(typed))

        assert await message == "one more"


async def test_ctrl_d_typed_while_something_is_shown_leaves(line: _Pty) -> None:
    with line.terminal.held():
        message = asyncio.create_task(line.terminal.message())
        await asyncio.sleep(0.1)
        line.terminal.show(lambda: line.types(_CTRL_D))

        with pytest.raises(InputClosed):
            await message


async def test_what_is_shown_while_a_line_is_typed_stands_above_it(
    line: _Pty, capsys: pytest.CaptureFixture[str]
) -> None:
    def write() -> None:
        sys.stdout.write("output\n")

    message = asyncio.create_task(line.terminal.message())
    line.types("half")
    shown = ""
    while "half" not in shown:
        await asyncio.sleep(0.01)
        shown += capsys.readouterr().out
    line.terminal.show(write)
    line.types(" whole\r")
    await message

    shown += capsys.readouterr().out
    assert shown.index("half") < shown.index("output\n") < shown.index("whole")


@pytest.mark.parametrize("key", _KEYS.values(), ids=_KEYS)
async def test_a_key_edits_the_line_during_a_turn_as_at_the_prompt_and_stops_nothing(
    keys: PipeInput, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    source: Any = keys
    source.vt100_parser = KeyDecoder(source.vt100_parser.feed_key_callback)
    for name in ("ESCAPE_S", "ALT_S"):
        monkeypatch.setattr(f"graph_agent.cli.prompts.terminal.{name}", _ESCAPE_S)
    terminal, turn = Terminal(source=keys), _Turn()

    async def type_line() -> None:
        for part in ("one two", key, "3", "\r"):
            keys.send_text(part)
            await asyncio.sleep(0.01)

    async with terminal.during_turn(turn.keys):
        await type_line()
        await until(lambda: bool(turn.lines))
        await asyncio.sleep(4 * _ESCAPE_S if "\x1b" in key else 0)
    message = asyncio.create_task(terminal.message())
    await type_line()

    assert (turn.stops, turn.lines) == ([], [await message])


@pytest.mark.parametrize("key", ["\x1b", _CTRL_C, "half a line\x1b"])
async def test_a_lone_escape_and_ctrl_c_stop_the_turn_and_keep_the_line(keys: PipeInput, key: str) -> None:
    terminal, turn = Terminal(source=keys), _Turn()

    async with terminal.during_turn(turn.keys):
        keys.send_text(key)
        await until(lambda: bool(turn.stops))
    keys.send_text("\r")

    assert (turn.stops, await terminal.message()) == (["stop"], key.rstrip("\x1b\x03"))


async def test_ctrl_d_during_a_turn_leaves_after_it_and_says_so(keys: PipeInput) -> None:
    terminal, turn, said = Terminal(source=keys), _Turn(), list[str]()
    terminal.say = said.append

    async with terminal.during_turn(turn.keys):
        keys.send_text(_CTRL_D)
        await until(lambda: bool(said))

    assert (said, turn.stops) == (["Ctrl-D leaves once the turn has ended. Esc or Ctrl-C stops it now."], [])
    with pytest.raises(InputClosed):
        await terminal.message()


async def test_an_escape_that_came_with_the_last_line_stops_its_turn(keys: PipeInput) -> None:
    terminal, turn = Terminal(source=keys), _Turn()
    keys.send_text("go\r\x1b")
    await terminal.message()

    async with terminal.during_turn(turn.keys):
        await until(lambda: bool(turn.stops))

    assert turn.stops == ["stop"]


async def test_the_line_of_a_turn_is_continued_at_the_prompt_where_its_cursor_was(keys: PipeInput) -> None:
    terminal, turn = Terminal(source=keys), _Turn()

    async with terminal.during_turn(turn.keys):
        keys.send_text("half\x1b[D")
        await until(lambda: turn.changes[-1:] == [("half", 3)])
    keys.send_text("X\r")

    assert await terminal.message() == "halXf"


@pytest.mark.usefixtures("any_terminal")
async def test_ctrl_z_stops_the_job_and_keeps_the_line(keys: PipeInput, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, turn = Terminal(source=keys), _Turn()
    monkeypatch.setattr("os.kill", lambda *_: turn.stops.append("stopped"))
    keys.send_text("half\x1a whole\r")

    assert (await terminal.message(), turn.stops) == ("half whole", ["stopped"])
    async with terminal.during_turn(turn.keys):
        keys.send_text("ne\x1axt")
        await until(lambda: turn.changes[-1:] == [("next", 4)])
    keys.send_text("\r")

    assert (await terminal.message(), turn.stops) == ("next", ["stopped", "hidden", "stopped"])


@pytest.mark.parametrize(
    ("typed", "messages"),
    [
        pytest.param("one\\\rtwo\r", ["one\ntwo"], id="a backslash before Enter"),
        pytest.param("one\\\r\\\rtwo\r", ["one\n\ntwo"], id="two of them"),
        pytest.param("a\\b\r", ["a\\b"], id="a backslash within"),
        pytest.param("x\\\x1b[D\r", ["x\\"], id="a backslash behind the cursor"),
        pytest.param("one\x1b\rtwo\r", ["one\ntwo"], id="Alt-Enter"),
        pytest.param("abc\x03d\r", ["d"], id="Ctrl-C clears a line"),
        pytest.param(
            "\x1b[200~one\r\ntwo\x1b[201~\x1b\rthree\rleft over", ["one\ntwo\nthree", "left over"], id="paste"
        ),
        pytest.param("\x12hi\x03mine\r", ["mine"], id="after a search that was left"),
    ],
)
@pytest.mark.usefixtures("any_terminal")
async def test_what_is_typed_becomes_messages(keys: PipeInput, typed: str, messages: list[str]) -> None:
    terminal = Terminal(InMemoryHistory(["hi there"]), source=keys)
    keys.send_text(typed)

    first, *rest = messages
    assert await terminal.message() == first
    for message in rest:
        keys.send_text("\r")
        assert await terminal.message() == message


async def test_ctrl_c_interrupts_when_it_comes_twice_at_an_empty_line(keys: PipeInput) -> None:
    keys.send_text(_CTRL_C * 2)

    with pytest.raises(InputInterrupted):
        await Terminal(source=keys).message()


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("one\x7f two\r", "on two"),
        ("日本\x7f語\r", "日語"),
        ("one two\x17three\r", "one three"),
        ("one\x15two\r", "two"),
        ("one\x03two\r", "two"),
        ("on\x1b[De\r", "oen"),
    ],
)
@pytest.mark.usefixtures("plain")
async def test_on_a_plain_terminal_the_screen_shows_what_is_entered(
    keys: PipeInput, capsys: pytest.CaptureFixture[str], typed: str, text: str
) -> None:
    keys.send_text(typed)

    assert (await Terminal(source=keys).message(), _seen(capsys)) == (text, [f"> {text}"])


@pytest.mark.usefixtures("plain")
async def test_on_a_plain_terminal_up_and_down_go_through_the_history(
    keys: PipeInput, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal(InMemoryHistory(["first", "second"]), source=keys)
    message = asyncio.create_task(terminal.message())
    await asyncio.sleep(0.1)
    keys.send_text(f"{_UP}{_UP}{_UP}\x1b[B!\r")

    assert (await message, _seen(capsys)) == ("second!", ["> second!"])


@pytest.mark.usefixtures("plain")
async def test_on_a_plain_terminal_output_comes_above_the_line_as_elsewhere(
    keys: PipeInput, capsys: pytest.CaptureFixture[str]
) -> None:
    def write() -> None:
        sys.stdout.write("output\n")

    terminal = Terminal(source=keys)
    message = asyncio.create_task(terminal.message())
    keys.send_text("half")
    await asyncio.sleep(0.05)
    terminal.show(write)
    keys.send_text(" whole\r")

    assert (await message, _seen(capsys)) == ("half whole", ["output", "> half whole"])


@pytest.mark.parametrize(
    ("key", "raised"),
    [
        (_CTRL_C, InputInterrupted),
        ("\x1b", InputCancelled),
        ("abc\x1b", InputCancelled),
        (_CTRL_D, InputClosed),
        (f"abc{_CTRL_D}", InputClosed),
    ],
)
@pytest.mark.usefixtures("any_terminal")
async def test_leaving_a_question_works_with_something_typed_too(
    keys: PipeInput, key: str, raised: type[Exception]
) -> None:
    keys.send_text(key)

    with pytest.raises(raised):
        await Terminal(source=keys).answer("? ")


async def test_a_question_left_within_a_search_does_not_hand_its_keys_to_the_next(keys: PipeInput) -> None:
    terminal = Terminal(InMemoryHistory(["hi there"]), source=keys)

    keys.send_text(f"\x12hi{_CTRL_D}")
    with pytest.raises(InputClosed):
        await terminal.answer("? ")
    keys.send_text("y\r")
    assert await terminal.answer("? ") == "y"


@pytest.mark.parametrize("columns", [60, 80, 120])
@pytest.mark.parametrize("more", [(), (OUTSIDE,), (VIEW, OUTSIDE)])
async def test_the_keys_of_a_question_are_one_line_at_any_width(
    keys: PipeInput,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    columns: int,
    more: tuple[Choice, ...],
) -> None:
    monkeypatch.setattr("os.get_terminal_size", lambda *_: os.terminal_size((columns, 24)))
    choices = KeyLine((*APPROVAL, *more, HELP))
    keys.send_text("y\r")

    answer = await Terminal(source=keys).answer(choices)

    screen = Screen(columns, 24)
    screen.feed(capfd.readouterr().out)
    assert (answer, screen.lines) == ("y", [f"{choices.line(columns)}y"])
    on_the_line = choices.line(columns).removesuffix(" › ").split(" · ")
    labelled = [f"{one.key} {one.label}" for one in choices.choices]
    assert set(on_the_line) <= set(labelled)
    assert {"y run", "n reject", "? help"} <= set(on_the_line)
    explained = "\n".join(choices.explanations())
    assert all(f"  {one}" in explained for one in labelled)


@pytest.mark.usefixtures("any_terminal")
@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("\r", ""),
        ("\x1b[C\r", "y"),
        ("\t\t\r", "a"),
        ("\x1b[C\x1b[C\x1b[D\r", "y"),
        ("\x1b[D\r", "?"),
        ("\x1b[B\r", "2"),
        ("\x1b[A\r", "3"),
        ("\x1b[B\x1b[C\r", "y"),
        ("yo\x1b[C\x7f\r", "y"),
        ("\x1b[B\x03n\r", "n"),
        ("\x1bn\r", "n"),
    ],
)
async def test_the_arrows_choose_among_the_keys_and_enter_alone_chooses_none(
    keys: PipeInput, typed: str, answer: str
) -> None:
    keys.send_text(typed)

    assert await Terminal(source=keys).answer(KeyLine((*APPROVAL, HELP), {"2": "", "3": ""})) == answer


async def test_a_question_that_is_gone_gives_no_answer(keys: PipeInput) -> None:
    assert await Terminal(source=keys).answer("? ", asyncio.ensure_future(asyncio.sleep(0.05))) is None


async def test_keys_that_came_with_the_last_line_count_as_typed_during_the_turn(keys: PipeInput) -> None:
    terminal, turn = Terminal(source=keys), _Turn()
    keys.send_text("go\rnext\r\x03rest")
    await terminal.message()

    async with terminal.during_turn(turn.keys):
        await until(lambda: turn.changes[-1:] == [("rest", 4)])
    keys.send_text(" of it\r")

    assert (turn.lines, turn.stops, await terminal.message()) == (["next"], ["stop"], "rest of it")


async def test_a_line_that_the_turn_does_not_take_waits_for_the_next_prompt(keys: PipeInput) -> None:
    terminal, turn = Terminal(source=keys), _Turn(takes=lambda line: not line.startswith("/"))

    async with terminal.during_turn(turn.keys):
        keys.send_text("nexx\x7ft\r/calls\r")
        await until(lambda: len(turn.lines) == 2)

    assert (await terminal.message(), turn.lines, turn.stops) == ("/calls", ["next", "/calls"], [])


async def test_dropped_keys_answer_nothing(keys: PipeInput) -> None:
    terminal, turn = Terminal(source=keys), _Turn(takes=lambda _: False)
    async with terminal.during_turn(turn.keys):
        keys.send_text("y\r")
        await until(lambda: bool(turn.lines))

    terminal.drop_typed_ahead()

    assert await terminal.answer("? ", asyncio.ensure_future(asyncio.sleep(0.05))) is None


def _queued_after(steps: int) -> Callable[[], Awaitable[str | None]]:
    async def newest() -> str | None:
        for _ in range(steps):
            await asyncio.sleep(0)
        return "queued "

    return newest


@pytest.mark.usefixtures("any_terminal")
@pytest.mark.slow
async def test_a_message_taken_back_as_a_line_is_entered_is_on_that_line_or_the_next(keys: PipeInput) -> None:
    for steps in range(15):
        terminal = Terminal(source=keys)
        keys.send_text(f"{_UP}abc\r")
        first = await terminal.message(_queued_after(steps))
        await asyncio.sleep(0.01)
        keys.send_text("next\r")

        assert (first, await terminal.message()) in (("queued abc", "next"), ("abc", "queued next")), steps


async def test_once_nothing_is_queued_any_more_up_is_for_the_history(keys: PipeInput) -> None:
    async def nothing() -> str | None:
        return None

    message = asyncio.create_task(Terminal(InMemoryHistory(["earlier"]), source=keys).message(nothing))
    await asyncio.sleep(0.1)
    for key in (_UP, _UP, "\r"):
        keys.send_text(key)
        await asyncio.sleep(0.05)

    assert await message == "earlier"


async def test_what_was_entered_is_kept_in_the_history_file(keys: PipeInput, tmp_path: Path) -> None:
    history = tmp_path / "history"
    keys.send_text("remember me\r")

    await Terminal(TypedHistory(history), source=keys).message()

    assert "+remember me" in history.read_text().splitlines()


_LONG = "\n".join(f"line {number}" for number in range(300))


@pytest.mark.usefixtures("any_terminal")
async def test_a_long_paste_is_one_word_on_the_line_and_whole_in_message_history_and_editor(
    keys: PipeInput, tmp_path: Path
) -> None:
    history = TypedHistory(tmp_path / "history")
    terminal, turn = Terminal(history, source=keys), _Turn()
    paste = f"\x1b[200~{_LONG}\x1b[201~"

    keys.send_text(f"see {paste} and {paste.replace('line 7', 'seven')}.\r")
    message = await terminal.message()
    async with terminal.during_turn(turn.keys):
        keys.send_text(f"busy {paste}")
        await until(lambda: turn.changes[-1:] == [("busy [pasted 300 lines]", 23)])
        keys.send_text("\x0f")
        await until(lambda: turn.changes[-1:] == [(f"busy {_LONG}", len(_LONG) + 5)])
        keys.send_text("\r")
        await until(lambda: bool(turn.lines))

    seven = _LONG.replace("line 7", "seven")
    assert (message, turn.lines) == (f"see {_LONG} and {seven}.", [f"busy {_LONG}"])
    assert list(history.load_history_strings()) == [message]


async def test_shift_tab_is_told_at_the_prompt_and_during_a_turn(keys: PipeInput) -> None:
    terminal, turn = Terminal(source=keys), _Turn()
    told = list[str]()
    terminal.cycle_mode = lambda: told.append("next")

    keys.send_text("half\x1b[Z\r")
    message = await terminal.message()
    async with terminal.during_turn(turn.keys):
        keys.send_text("\x1b[Z")
        await until(lambda: len(told) == 2)

    assert (message, told, turn.stops) == ("half", ["next", "next"], [])
