from collections.abc import Iterator

import pytest
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input

from graph_agent.cli.prompts.choices import ALL, APPROVAL, OUTSIDE, choice_line
from graph_agent.cli.prompts.input_line import DrawnLine, Lines, Unfinished
from graph_agent.cli.prompts.keys import InputClosed
from tests.fakes.screen import Screen


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as source:
        yield source


def _line(keys: PipeInput, *earlier: str) -> DrawnLine:
    lines = Lines(keys, lambda: None, InMemoryHistory(earlier), Unfinished(keys))
    return DrawnLine(lines, None, lambda: "")


@pytest.mark.parametrize("columns", [40, 80])
async def test_the_choices_of_a_question_are_folded_between_words(
    keys: PipeInput, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setattr("os.get_terminal_size", lambda _: (columns, 24))
    line = _line(keys)
    keys.send_text("y\r")

    answer = await line.answer(choice_line((*APPROVAL, OUTSIDE, ALL)))

    screen = Screen(columns, 24)
    screen.feed(capfd.readouterr().out)
    choices = choice_line((*APPROVAL, OUTSIDE, ALL))
    assert (answer, " ".join(screen.lines).split()) == ("y", [*choices.split(), "y"])
    assert all(word in choices.split() for line in screen.lines for word in line.split()[:-1])


async def test_what_is_typed_after_a_search_that_was_left_is_the_next_message(keys: PipeInput) -> None:
    line = _line(keys, "hi there")

    keys.send_text("\x12hi\x03mine\r")
    assert await line.message() == "mine"
    keys.send_text("\x12hi\x04")
    with pytest.raises(InputClosed):
        await line.answer("? ")
    keys.send_text("y\r")
    assert await line.answer("? ") == "y"
