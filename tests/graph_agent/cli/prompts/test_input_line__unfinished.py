import asyncio
from collections.abc import Iterator

import pytest
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.key_binding import KeyPress

from graph_agent.cli.prompts.input_line import Unfinished
from graph_agent.cli.prompts.keys import line_of


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as source:
        yield source


async def _newest() -> str | None:
    await asyncio.sleep(0)
    return "queued "


async def _none() -> str | None:
    return None


def test_a_line_that_was_begun_before_a_question_is_on_the_next_line_before_what_is_typed_there(
    keys: PipeInput,
) -> None:
    unfinished = Unfinished(keys)
    store_typeahead(keys, [KeyPress(key) for key in "half "])
    unfinished.keep_typed_ahead()
    answered = get_typeahead(keys)
    store_typeahead(keys, [KeyPress(key) for key in "a line"])

    unfinished.begin()

    assert (answered, line_of(get_typeahead(keys))) == ([], "half a line")


async def test_a_message_taken_back_comes_onto_the_line_or_where_that_is_entered_onto_the_next(
    keys: PipeInput,
) -> None:
    unfinished = Unfinished(keys)
    line: list[str] = []

    def put(text: str) -> bool:
        line.append(text)
        return True

    unfinished.source_of_more = _newest
    with unfinished.put_by(put):
        first = unfinished.take_back()
        await asyncio.sleep(0.01)
        second = unfinished.take_back()
    await asyncio.sleep(0.01)

    unfinished.begin()

    assert (first, second, line, line_of(get_typeahead(keys))) == (True, True, ["queued "], "queued ")


async def test_where_nothing_waits_any_more_the_key_is_free_again(keys: PipeInput) -> None:
    unfinished = Unfinished(keys)
    unfinished.source_of_more = _none

    asked = unfinished.take_back()
    await asyncio.sleep(0.01)

    assert (asked, unfinished.take_back()) == (True, False)
