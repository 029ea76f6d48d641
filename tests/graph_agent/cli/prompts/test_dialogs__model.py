import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput

from graph_agent.cli.prompts.dialogs import choose_model, picked
from graph_agent.cli.prompts.terminal import Terminal
from graph_agent.events import EventBus
from tests.fakes.scripted_session import ScriptedSession

NAMES = ("gpt-5", "gpt-5-mini", "qwen3:8b")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("gpt-5", "gpt-5"),
        ("3", "qwen3:8b"),
        ("QWEN", "qwen3:8b"),
        ("mini", "gpt-5-mini"),
        ("gpt", None),
        ("0", None),
        ("4", None),
        ("x", None),
    ],
)
def test_a_number_a_name_or_a_unique_part_of_one_picks(text: str, name: str | None) -> None:
    assert picked(text, NAMES) == name


@pytest.fixture
async def keys() -> AsyncIterator[PipeInput]:
    with create_pipe_input() as keys, create_app_session(output=DummyOutput()):
        yield keys


async def match_choice(
    folder: Path, keys: PipeInput, models: tuple[str, ...], typed: str = ""
) -> tuple[str | None, list[str]]:
    session = ScriptedSession(EventBus(), folder)
    session.models, session.model_name = models, None
    said: list[str] = []
    asyncio.get_running_loop().call_later(0.02, keys.send_text, typed)
    await choose_model(session, Terminal(None, source=keys), said.append)
    return session.model_name, said


async def test_the_only_model_is_taken_without_a_question(tmp_path: Path, keys: PipeInput) -> None:
    assert await match_choice(tmp_path, keys, ("only",)) == ("only", ["Model: only @ scripted"])


async def test_one_of_several_is_asked_for_until_the_answer_fits(tmp_path: Path, keys: PipeInput) -> None:
    keys.send_text("a message, typed before\r")

    name, said = await match_choice(tmp_path, keys, NAMES, "gpt\rmini\r")

    assert name == "gpt-5-mini"
    assert said[1:] == [
        "   1  gpt-5",
        "   2  gpt-5-mini",
        "   3  qwen3:8b",
        "'gpt' is none of them, or several; an empty line chooses none",
        "Model: gpt-5-mini @ scripted",
    ]


async def test_an_empty_answer_leaves_it_open(tmp_path: Path, keys: PipeInput) -> None:
    name, said = await match_choice(tmp_path, keys, NAMES, "\r")

    assert (name, said[-1]) == (None, "No model is chosen; /model NAME chooses one.")


async def test_an_endpoint_without_a_list_says_so(tmp_path: Path, keys: PipeInput) -> None:
    assert (await match_choice(tmp_path, keys, ()))[1] == [
        "The endpoint lists no models; /model NAME takes one all the same."
    ]
