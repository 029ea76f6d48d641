"""Pending questions, a keyboard that answers each prompt with the next line, and what was decided."""

import io
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from graph_agent.cli.prompts.prompt import Prompt
from graph_agent.cli.prompts.questions import PendingQuestions
from graph_agent.cli.render.turn_display import TurnDisplay
from graph_agent.events import EventBus
from graph_agent.session.turn_result import OpenQuestion
from tests.fakes.scripted_session import ScriptedSession, Turn, approval, rest

if TYPE_CHECKING:
    from graph_agent.cli.prompts.terminal import Terminal as _Terminal
else:
    _Terminal = object

__all__ = ["ALL_KEYS", "KEYS", "LONG", "A", "B", "Scene", "Typed", "editor"]

KEYS = "[y]es  [a]lways  [e]dit  [n]o  no, with a [r]eason  [s]top the turn > "
ALL_KEYS = KEYS.replace("[s]top", "[all]  [s]top")
A = approval("call-a", "bash", {"command": "echo a"})
B = approval("call-b", "bash", {"command": "echo b"})
LONG = approval("call-a", "write_file", {"content": "".join(f"line {n}\n" for n in range(500))})


class Typed(_Terminal):
    """A keyboard that answers each prompt with the next line; without one it waits until the question is gone."""

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

    @contextmanager
    def given_away(self) -> Iterator[None]:
        yield


class Scene:
    """Pending questions, the keys typed at them, and what was decided."""

    def __init__(self, folder: Path, *questions: OpenQuestion) -> None:
        self.elsewhere = folder / "elsewhere.json"
        self._questions = questions
        opening = Turn(rest("awaiting_approval", questions=questions))
        self.session = ScriptedSession(EventBus(), folder, opening=opening, elsewhere=self.elsewhere)
        self._stream = io.StringIO()

    async def asked(self, *lines: str) -> list[str]:
        await self.session.start()
        self.session.log.clear()
        display = TurnDisplay(Console(file=self._stream, width=80, markup=False, highlight=False))
        asking = PendingQuestions(Prompt(self.session, Typed(lines, self._stream), display))
        try:
            await asking.ask_all(self._questions)
        finally:
            self.answered = asking.answered
        return self._stream.getvalue().splitlines()

    @property
    def shown(self) -> list[str]:
        return self._stream.getvalue().splitlines()


def editor(folder: Path, left: str) -> str:
    """A command for $VISUAL that leaves this text behind."""
    script, text = folder / "editor.sh", folder / "left.txt"
    text.write_text(left)
    script.write_text(f'#!/bin/sh\ncp {text} "$1"\n')
    script.chmod(0o700)
    return str(script)
