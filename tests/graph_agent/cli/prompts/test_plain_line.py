import asyncio
import sys
from collections.abc import Iterator

import pytest
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input

from graph_agent.cli.prompts.input_line import Lines, Unfinished
from graph_agent.cli.prompts.keys import InputClosed, InputInterrupted
from graph_agent.cli.prompts.plain_line import PlainLine
from tests.fakes.screen import Screen


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as source:
        yield source


def _line(keys: PipeInput, *earlier: str) -> PlainLine:
    return PlainLine(Lines(keys, lambda: None, InMemoryHistory(earlier), Unfinished(keys)))


def _seen(capsys: pytest.CaptureFixture[str]) -> list[str]:
    screen, written = Screen(60, 10), capsys.readouterr().out
    assert "\x1b" not in written
    screen.feed(written)
    return screen.lines


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("one\x7f two\r", "on two"),
        ("日本\x7f語\r", "日語"),
        ("one two\x17three\r", "onethree"),
        ("one\x15two\r", "two"),
        ("one\x03two\r", "two"),
        ("on\x1b[De\x01\t\r", "one"),
        ("\x1b[A\x1b[A\r", "first"),
        ("\x1b[A\x1b[A\x1b[A\x1b[B!\r", "second!"),
        ("x\x1b[A\x1b[By\r", "y"),
        ("\x7f\x04x\r", None),
    ],
)
async def test_what_stands_on_the_screen_is_what_is_entered(
    keys: PipeInput, capsys: pytest.CaptureFixture[str], typed: str, text: str | None
) -> None:
    keys.send_text(typed)

    if text is None:
        with pytest.raises(InputClosed):
            await _line(keys, "first", "second").message()
    else:
        assert await _line(keys, "first", "second").message() == text
        assert _seen(capsys) == [f"> {text}"]


async def test_a_paste_and_alt_enter_bring_lines_and_a_message_is_remembered(keys: PipeInput) -> None:
    line = _line(keys)
    keys.send_text("\x1b[200~one\r\ntwo\x1b[201~\x1b\rthree\r\x1b[A\rleft over")

    messages = [await line.message(), await line.message()]
    keys.send_text("\r")

    assert (messages, await line.message()) == (["one\ntwo\nthree"] * 2, "left over")


@pytest.mark.parametrize(
    ("key", "raised"), [("\x03", InputInterrupted), ("\x04", InputClosed), ("abc\x04", InputClosed)]
)
async def test_leaving_a_question_works_with_something_typed_too(
    keys: PipeInput, key: str, raised: type[Exception]
) -> None:
    keys.send_text(key)

    with pytest.raises(raised):
        await _line(keys).answer("? ")


async def test_the_choices_of_a_question_are_folded_between_words(
    keys: PipeInput, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    keys.send_text("y\r")

    assert await _line(keys).answer("[y]es  [n]o  no, with a [r]eason  [s]top > ") == "y"
    assert _seen(capsys) == ["[y]es  [n]o  no, with", "a [r]eason  [s]top > y"]


async def test_news_stand_between_the_line_as_it_was_and_as_it_goes_on(
    keys: PipeInput, capsys: pytest.CaptureFixture[str]
) -> None:
    line = _line(keys)
    message = asyncio.create_task(line.message())
    keys.send_text("half")
    await asyncio.sleep(0.02)

    def write_news() -> None:
        sys.stdout.write("news\n")

    line.above(write_news)
    keys.send_text(" whole\r")

    assert (await message, _seen(capsys)) == ("half whole", ["> half", "news", "> half whole"])
    assert not line.is_read


async def test_a_backslash_before_enter_breaks_the_line_of_a_message(keys: PipeInput) -> None:
    keys.send_text("one\\\rtwo\r")

    assert await _line(keys).message() == "one\ntwo"
