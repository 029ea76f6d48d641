"""Every key, at the prompt, while a turn runs and at a question: the same line everywhere, and nothing stops."""

import asyncio
import os
from collections.abc import Iterator

import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory

from graph_agent.cli.prompts.keyboard import Keyboard, KeyDecoder
from graph_agent.cli.prompts.terminal import Terminal, TurnKeys
from tests.fakes.terminal_keys import KEYS, LINE_BREAKS
from tests.fakes.waiting import until

_LINE, _CURSOR = "one two", 4
_SHORT_S = 0.002
"""How long an Escape waits for what makes it another key."""

_Results = dict[str, tuple[str, int]]


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Iterator["_Person"]:
    monkeypatch.setenv("GRAPH_AGENT_PLAIN", "1")  # What is drawn is the matter of other tests.
    monkeypatch.setenv("TERM", "xterm-256color")
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as source:
        yield _Person(Keyboard(source), writing)
    os.close(writing)


class _Person:
    """Somebody who tries every key on a line."""

    def __init__(self, keyboard: Keyboard, writing: int) -> None:
        self._keyboard = keyboard
        self._writing = writing
        self.terminal = Terminal(InMemoryHistory(["earlier", "later"]), source=keyboard)

    async def tries(self, session: PromptSession[str]) -> _Results:
        """Text and cursor after each key, which finds the same line; the line is not entered by any."""
        session.app.timeoutlen = session.app.ttimeoutlen = _SHORT_S
        found: _Results = {}
        for name, key in KEYS.items():
            await self._begin(session)
            os.write(self._writing, key.encode())
            await self._settled(session)
            assert session.app.is_running, name
            assert not session.app.is_done, name
            buffer = session.default_buffer
            found[name] = (buffer.text, buffer.cursor_position)
        return found

    async def _begin(self, session: PromptSession[str]) -> None:
        app = session.app
        app.key_processor.reset()
        app.quoted_insert = False
        app.clipboard.set_text("clip")
        app.layout.focus(session.default_buffer)
        session.default_buffer.reset(Document(_LINE, _CURSOR))
        session.default_buffer.load_history_if_not_yet_loaded()
        if (loading := session.default_buffer._load_history_task) is not None:
            await loading

    async def _settled(self, session: PromptSession[str]) -> None:
        """The key was read, and no other one is waited for."""
        decoder = self._keyboard.vt100_parser
        assert isinstance(decoder, KeyDecoder)
        for _ in range(4):
            await asyncio.sleep(0)
        keys = session.app.key_processor
        if decoder._kept or keys.key_buffer or keys.input_queue:
            await until(lambda: not (decoder._kept or keys.key_buffer or keys.input_queue))


@pytest.mark.slow
async def test_every_key_edits_the_line_everywhere_as_at_the_prompt_and_stops_nothing(person: _Person) -> None:
    terminal, stops = person.terminal, list[str]()
    message = asyncio.create_task(terminal.message())
    await asyncio.sleep(0.01)
    at_the_prompt = await person.tries(terminal._messages)
    message.cancel()
    await asyncio.gather(message, return_exceptions=True)

    async with terminal.during_turn(TurnKeys(lambda: stops.append("stop"))):
        during_a_turn = await person.tries(terminal._busy)
    answer = asyncio.create_task(terminal.answer("? "))
    await asyncio.sleep(0.01)
    at_a_question = await person.tries(terminal._answers)
    answer.cancel()
    await asyncio.gather(answer, return_exceptions=True)

    assert (stops, _differing(during_a_turn, at_the_prompt)) == ([], {})
    # A question has no history and no completion.
    assert _differing(at_a_question, at_the_prompt, or_else=_LINE) == {}
    assert {name: text for name, (text, _) in at_the_prompt.items() if not _is_plausible(text)} == {}
    assert {at_the_prompt[name] for name in LINE_BREAKS} == {("one \ntwo", 5)}
    assert len(KEYS) > 2_500


def _differing(found: _Results, wanted: _Results, or_else: str = "") -> dict[str, object]:
    return {
        name: (KEYS[name], found[name], wanted[name])
        for name in wanted
        if found[name] != wanted[name] and found[name][0] != or_else
    }


def _is_plausible(text: str) -> bool:
    """Whether nothing of a sequence is in the line: nothing but what was there, and at most one character."""
    rest = text.lower()
    for known in ("one", "two", "earlier", "later", "clip", "x\ny", "\x1b[a\x03\x1b", " "):
        rest = rest.replace(known, "", 1)
    return len(rest) <= len("onetwo") + 1 and "[" not in rest[:-1]
