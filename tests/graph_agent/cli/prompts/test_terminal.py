import asyncio
import os
import pty
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from prompt_toolkit.input import PipeInput, create_input, create_pipe_input

from graph_agent.cli.prompts.keyboard import TypedHistory
from graph_agent.cli.prompts.terminal import InputClosed, InputInterrupted, Terminal, TurnKeys

_IN_TRANSIT_SECONDS = 0.02
"""The kernel hands on what is typed a moment later, in the mode the terminal has by then."""


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as source:
        yield source


class _Line:
    """A terminal at whose other end somebody types."""

    def __init__(self) -> None:
        self._master, self._slave = pty.openpty()
        self.source = os.fdopen(self._slave, encoding="utf-8")

    def types(self, keys: str) -> None:
        os.write(self._master, keys.encode())
        time.sleep(_IN_TRANSIT_SECONDS)

    def close(self) -> None:
        self.source.close()
        os.close(self._master)


@pytest.fixture
def line(monkeypatch: pytest.MonkeyPatch) -> Iterator[_Line]:
    monkeypatch.setenv("TERM", "xterm-256color")
    made = _Line()
    yield made
    made.close()


@pytest.mark.parametrize("typed", ["more\r", "x\x7fmore\r", "\x04more\r"])
async def test_what_is_typed_while_something_is_shown_above_the_line_arrives(line: _Line, typed: str) -> None:
    terminal = Terminal(None, source=create_input(line.source))

    with terminal.held():
        message = asyncio.create_task(terminal.message())
        line.types("one ")
        await asyncio.sleep(0.1)
        terminal.show(lambda: line.types(typed))

        assert await message == "one more"


async def test_ctrl_d_typed_while_something_is_shown_leaves(line: _Line) -> None:
    terminal = Terminal(None, source=create_input(line.source))

    with terminal.held():
        message = asyncio.create_task(terminal.message())
        await asyncio.sleep(0.1)
        terminal.show(lambda: line.types("\x04"))

        with pytest.raises(InputClosed):
            await message


async def test_what_is_shown_while_a_line_is_typed_stands_above_it(
    line: _Line, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal = Terminal(None, source=create_input(line.source))

    def write_news() -> None:
        sys.stdout.write("news\n")

    message = asyncio.create_task(terminal.message())
    line.types("half")
    shown = ""
    while "half" not in shown:
        await asyncio.sleep(0.01)
        shown += capsys.readouterr().out
    terminal.show(write_news)
    line.types(" whole\r")
    await message

    shown += capsys.readouterr().out
    assert shown.index("half") < shown.index("news\n") < shown.index("whole")


async def test_ctrl_c_clears_a_line_and_interrupts_when_it_comes_twice_at_an_empty_one(keys: PipeInput) -> None:
    keys.send_text("abc\x03d\r\x03\x03")
    terminal = Terminal(None, source=keys)

    assert await terminal.message() == "d"
    with pytest.raises(InputInterrupted):
        await terminal.message()


async def test_a_question_that_is_gone_gives_no_answer(keys: PipeInput) -> None:
    assert await Terminal(None, source=keys).answer("? ", asyncio.sleep(0.05)) is None


async def test_keys_of_a_turn_wait_for_the_next_message(keys: PipeInput) -> None:
    terminal, stops = Terminal(None, source=keys), list[str]()

    async with terminal.during_turn(TurnKeys(lambda: stops.append("stop"))):
        keys.send_text("typed ahead\r")
        await asyncio.sleep(0.1)

    assert (await terminal.message(), stops) == ("typed ahead", [])


async def test_keys_that_came_with_the_last_line_count_as_typed_during_the_turn(keys: PipeInput) -> None:
    terminal, lines, stops = Terminal(None, source=keys), list[str](), list[str]()
    keys.send_text("go\rnext\r\x03rest")
    await terminal.message()

    def take(line: str) -> bool:
        lines.append(line)
        return True

    async with terminal.during_turn(TurnKeys(lambda: stops.append("stop"), take)):
        await asyncio.sleep(0.05)
    keys.send_text(" of it\r")

    assert (lines, stops, await terminal.message()) == (["next"], ["stop"], "rest of it")


async def test_an_escape_that_came_with_the_last_line_stops_the_turn_of_it(keys: PipeInput) -> None:
    terminal, stops = Terminal(None, source=keys), list[str]()
    keys.send_text("go\r\x1b")
    await terminal.message()

    async with terminal.during_turn(TurnKeys(lambda: stops.append("stop"))):
        await asyncio.sleep(0.5)

    assert stops == ["stop"]


@pytest.mark.parametrize("plain", ["", "1"])
async def test_what_is_taken_back_at_the_instant_a_line_is_entered_is_on_that_line_or_on_the_next(
    keys: PipeInput, monkeypatch: pytest.MonkeyPatch, plain: str
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_PLAIN", plain)
    for steps in range(15):

        async def newest(steps: int = steps) -> str | None:
            for _ in range(steps):
                await asyncio.sleep(0)
            return "queued "

        terminal = Terminal(None, source=keys)
        keys.send_text("\x1b[Aabc\r")
        first = await terminal.message(newest)
        await asyncio.sleep(0.01)
        keys.send_text("next\r")

        assert (first, await terminal.message()) in (("queued abc", "next"), ("abc", "queued next")), steps


async def test_dropped_keys_answer_nothing(keys: PipeInput) -> None:
    terminal = Terminal(None, source=keys)
    async with terminal.during_turn(TurnKeys(lambda: None)):
        keys.send_text("y\r")
        await asyncio.sleep(0.05)

    terminal.drop_typed_ahead()

    assert await terminal.answer("? ", asyncio.sleep(0.05)) is None


async def test_what_was_entered_is_kept_in_the_history_file(keys: PipeInput, tmp_path: Path) -> None:
    history = tmp_path / "history"
    keys.send_text("remember me\r")

    await Terminal(TypedHistory(history), source=keys).message()

    assert "+remember me" in history.read_text().splitlines()


async def test_a_line_entered_while_a_turn_runs_is_handed_over_and_what_follows_waits(keys: PipeInput) -> None:
    terminal, lines = Terminal(None, source=keys), list[str]()

    def take(line: str) -> bool:
        lines.append(line)
        return not line.startswith("/")

    async with terminal.during_turn(TurnKeys(lambda: None, take)):
        keys.send_text("nexx\x7ft\r/calls\r")
        await asyncio.sleep(0.05)

    assert (await terminal.message(), lines) == ("/calls", ["next", "/calls"])
