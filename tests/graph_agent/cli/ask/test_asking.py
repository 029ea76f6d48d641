import asyncio
import io
from collections.abc import Awaitable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest
from rich.console import Console

from graph_agent.cli.ask.asking import Asking, StopTurn
from graph_agent.cli.render.story import Story
from graph_agent.events import EventBus
from graph_agent.session.api import OpenQuestion
from tests.fakes.scripted_session import ScriptedSession, Turn, approval, recovery, rest

_KEYS = "[y]es  [e]dit  [n]o  no, with a [r]eason  [s]top the turn > "
_A = approval("call-a", "bash", {"command": "echo a"})
_B = approval("call-b", "bash", {"command": "echo b"})
_LONG = approval("call-a", "write_file", {"content": "".join(f"line {n}\n" for n in range(500))})


class _Typed:
    """A keyboard with lines typed at the moment they are asked for; without a line it waits to be relieved."""

    def __init__(self, lines: Sequence[str], stream: io.StringIO) -> None:
        self._lines = list(lines)
        self._stream = stream

    async def answer(self, prompt: str, gone: Awaitable[object] | None = None) -> str | None:
        self._stream.write(f"{prompt}\n")
        if self._lines:
            return self._lines.pop(0)
        assert gone is not None
        await gone
        return None

    def drop_typed_ahead(self) -> None:
        self._stream.write("<dropped>\n")

    def given_away(self) -> AbstractContextManager[None]:
        return nullcontext()


class _Scene:
    """Questions, the keys typed at them, and what came of it."""

    def __init__(self, folder: Path, *questions: OpenQuestion) -> None:
        self.elsewhere = folder / "elsewhere.json"
        self._questions = questions
        opening = Turn(rest("awaiting_approval", questions=questions))
        self.session = ScriptedSession(EventBus(), folder, opening=opening, elsewhere=self.elsewhere)
        self._stream = io.StringIO()

    async def asked(self, *lines: str) -> list[str]:
        await self.session.start()
        self.session.log.clear()
        story = Story(Console(file=self._stream, width=80, markup=False, highlight=False))
        asking = Asking(self.session, _Typed(lines, self._stream), story, 80)
        try:
            await asking.ask_all(self._questions)
        finally:
            self.answered = asking.answered
        return self.shown

    @property
    def shown(self) -> list[str]:
        return self._stream.getvalue().splitlines()


async def test_each_question_gets_its_own_answer_at_once(tmp_path: Path) -> None:
    scene = _Scene(tmp_path, _A, _B)

    await scene.asked("y", "n")

    assert scene.session.log == [("decide", "call-a", "approve", ""), ("decide", "call-b", "reject", "")]
    assert scene.answered == {"call-a", "call-b"}


async def test_what_was_typed_before_is_dropped_before_the_page_is_shown(tmp_path: Path) -> None:
    shown = await _Scene(tmp_path, _A).asked("y")

    assert (shown[0], shown[1].startswith("Approval: bash"), shown[-1]) == ("<dropped>", True, _KEYS)


async def test_a_page_with_more_must_be_opened_before_it_can_be_approved(tmp_path: Path) -> None:
    scene = _Scene(tmp_path, _LONG)

    shown = await scene.asked("y", "m", "y")

    first_refusal = shown.index("Part of it is not shown yet; open it first with m.")
    assert ("  │ line 499" in shown[:first_refusal], "  │ line 499" in shown) == (False, True)
    assert _KEYS.replace("> ", " [m]ore > ") in shown
    assert scene.session.log == [("decide", "call-a", "approve", "")]


async def test_a_page_with_more_can_be_refused_unopened(tmp_path: Path) -> None:
    scene = _Scene(tmp_path, _LONG)

    await scene.asked("n")

    assert scene.session.log == [("decide", "call-a", "reject", "")]


async def test_a_question_answered_before_it_is_its_turn_is_not_asked(tmp_path: Path) -> None:
    scene = _Scene(tmp_path, _A, _B)
    scene.elsewhere.write_text('{"call-b": "approve"}')

    shown = await scene.asked("y")

    assert (shown.count(_KEYS), shown[-1]) == (1, "bash: answered by cli pid 99: yes")


async def test_a_question_answered_while_it_is_asked_disappears(tmp_path: Path) -> None:
    scene = _Scene(tmp_path, _A)
    loop = asyncio.get_running_loop()
    loop.call_later(0.1, scene.elsewhere.write_text, '{"call-a": "reject"}')

    shown = await scene.asked()

    assert (shown[-1], scene.session.log) == ("bash: answered by cli pid 99: no", [])


async def test_the_answer_that_was_first_is_told_when_ours_came_too_late(tmp_path: Path) -> None:
    scene = _Scene(tmp_path, _A)
    refused = scene.session.decide

    async def too_late(*args: object, **named: object) -> object:
        scene.elsewhere.write_text('{"call-a": "reject"}')
        return await refused(*args, **named)  # type: ignore[arg-type]  # handed on as it came

    scene.session.decide = too_late  # type: ignore[method-assign, assignment]  # others answer in this very moment

    assert (await scene.asked("y"))[-1] == "bash: answered by cli pid 99: no"


async def test_stop_ends_the_asking(tmp_path: Path) -> None:
    scene = _Scene(tmp_path, _A, _B)

    with pytest.raises(StopTurn):
        await scene.asked("y", "s")

    assert (scene.session.log, scene.answered) == ([("decide", "call-a", "approve", "")], {"call-a"})


@pytest.mark.parametrize(
    ("lines", "decided"),
    [
        (("r",), ("retry", "")),
        (("c",), ("cancel", "")),
        (("x", "d", " it is there "), ("done", "it is there")),
    ],
)
async def test_an_interrupted_call_is_retried_done_or_cancelled(
    tmp_path: Path, lines: tuple[str, ...], decided: tuple[str, str]
) -> None:
    scene = _Scene(tmp_path, recovery("call-a", "bash", {"command": "make"}))

    await scene.asked(*lines)

    assert scene.session.log == [("decide", "call-a", *decided)]


async def test_what_still_runs_can_be_ended_before_the_call_is_tried_again(tmp_path: Path) -> None:
    scene = _Scene(tmp_path, recovery("call-a", "bash", {"command": "make"}, processes=(7, 8)))

    shown = await scene.asked("e", "r")

    assert scene.session.log == [("end", "call-a"), ("decide", "call-a", "retry", "")]
    assert "  still running: pid 7, 8; a retry waits until they have ended" in shown
    assert [line for line in shown if line.endswith("> ")] == [
        "[r]etry  [d]one  [c]ancel  [e]nd what still runs > ",
        "[r]etry  [d]one  [c]ancel > ",
    ]
