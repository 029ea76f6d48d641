import asyncio
from collections.abc import Callable, Iterator

import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.output import DummyOutput

from graph_agent.cli.prompts.keys import TurnKeys, Watch, answer_keys, message_keys


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as source:
        yield source


async def _no_editor(line: Buffer) -> None:
    line.text = "edited"


def _message_keys(suspend: Callable[[], None]) -> KeyBindings:
    return message_keys(suspend, _no_editor, lambda: False)


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
async def test_a_backslash_before_enter_breaks_the_line_as_alt_enter_does(
    keys: PipeInput, typed: str, message: str
) -> None:
    made = _message_keys(lambda: None)
    prompt: PromptSession[str] = PromptSession(input=keys, output=DummyOutput(), key_bindings=made)
    keys.send_text(typed)

    assert await prompt.prompt_async() == message


@pytest.mark.parametrize("bindings", [_message_keys, answer_keys])
async def test_ctrl_z_at_a_prompt_stops_the_job_and_keeps_the_line(
    keys: PipeInput, bindings: Callable[[Callable[[], None]], KeyBindings]
) -> None:
    stops: list[str] = []
    made = bindings(lambda: stops.append("stopped"))
    prompt: PromptSession[str] = PromptSession(input=keys, output=DummyOutput(), key_bindings=made)
    keys.send_text("half\x1a whole\r")

    assert (await prompt.prompt_async(), stops) == ("half whole", ["stopped"])


async def test_ctrl_z_while_a_turn_runs_stops_the_job_and_keeps_what_is_typed(keys: PipeInput) -> None:
    told, typed = list[str](), list[str]()

    def take(line: str) -> bool:
        told.append(line)
        return True

    turn = TurnKeys(keys, Watch(lambda: told.append("stop"), take, typed.append, lambda: told.append("stopped")))

    with turn.watched():
        keys.send_text("ne\x1axt\r")
        await asyncio.sleep(0.05)

    assert (told, typed) == (["stopped", "next"], [""])
