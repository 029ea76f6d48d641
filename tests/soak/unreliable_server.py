"""An unreliable model server for a long thread: odd streams, errors and truncated replies between useful answers.

It decides by a seed; a request that is repeated after a kill gets another answer, as from a real model. Its calls
carry markers, as in the crash tests.
"""

import random
import re
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tests.crash.scenes import Wanted
from tests.crash.world import World
from tests.fakes.openai_server import CUT, ERR, TCS, TXT, FakeOpenAI, Reply
from tests.graph_agent.model.reply_shapes import ARGUMENTS, ENDINGS, FRAGMENTS, TEXTS, Shape, as_sent

__all__ = ["UnreliableServer"]

_MESSAGES_PER_TURN = 5
_WORK = (
    *[Wanted("read_file")] * 3,
    *[Wanted("bash", "approve")] * 3,
    Wanted("bash", "approve", fails=True),
    Wanted("bash", "approve", says="seq 250"),
    Wanted("bash", "approve", stays=0.3),
    Wanted("bash", "approve", in_background=True),
    Wanted("bash_output"),
    Wanted("bash_kill"),
    *[Wanted("write_file", "approve")] * 2,
    Wanted("ask_user", "answer"),
)
_SHAPES: tuple[Shape, ...] = tuple(
    shape for shape in (*FRAGMENTS, *ARGUMENTS, *ENDINGS, *TEXTS) if not shape.whole and not shape.fails
)
_BROKEN: tuple[Shape, ...] = tuple(shape for shape in (*ENDINGS, *TEXTS) if not shape.whole and shape.fails)
_MAX_CHARS = 24_000
"""Fewer than in the settings, so that it sometimes refuses a conversation as too long."""


class UnreliableServer(FakeOpenAI):
    """Answers forever; strict about histories."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._chance = random.Random(seed)
        self.steps = 0
        """Complete answers, without summaries."""
        self.errors = 0
        """Requests that got an error or a broken stream."""
        self.summaries = 0
        super().__init__(strict=True, most_chars=_MAX_CHARS)

    def _next(self, body: dict[str, Any]) -> Reply:
        if not body.get("tools"):
            self.summaries += 1
            self._world.note("summary asked", of=self._hex())
            return TXT("a summary of what was done")
        if self._chance.random() < 0.1:
            self.errors += 1
            errors = (
                ERR(429, "busy", {"Retry-After": "0"}),
                ERR(500),
                CUT(TXT("this is truncated")),
                CUT(TCS((self._hex(), "read_file", {"file_path": "read.txt"}))),
                as_sent(self._chance.choice(_BROKEN)),
            )
            return self._chance.choice(errors)
        self.steps += 1
        if self._chance.random() < 0.2:
            return as_sent(self._chance.choice(_SHAPES))
        roles = [message["role"] for message in body["messages"]]
        since_user = roles[::-1].index("user") if "user" in roles else 0
        if since_user >= _MESSAGES_PER_TURN or self._chance.random() < 0.1:
            return TXT(f"this is over {'and that is all ' * self._chance.randint(0, 20)}")
        return TCS(*(self._call(body["messages"]) for _ in range(self._chance.choice((1, 1, 2, 3)))))

    def _call(self, messages: Sequence[dict[str, Any]]) -> tuple[str, str, dict[str, Any]]:
        wanted = self._chance.choice(_WORK)
        arguments = wanted.arguments(f"m000-{self._hex()[:8]}")
        if wanted.tool in ("bash_output", "bash_kill"):
            contents = "\n".join(str(message.get("content")) for message in messages)
            arguments = {"id": ["none", *re.findall(r"in the background as (sh\d+)", contents)][-1]}
        return f"call_{self._hex()}", wanted.tool, arguments

    def _hex(self) -> str:
        return UUID(int=self._chance.getrandbits(128)).hex
