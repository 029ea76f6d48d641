"""Races around a living chat: it holds the thread in a real terminal, others answer, want the thread, and kill it.

Knows what races in general know; see `tests.crash.races`.
"""

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

from tests.crash.forked_commands import Ended
from tests.crash.races import THREAD, Race, Tally
from tests.fakes.pty_program import PtyProgram

__all__ = ["TIMEOUT_S", "race_chat"]

_KEYS = "? help"
_WANT_IT = 7
_POLL_S = 0.02
TIMEOUT_S = 5.0
"""Far more than the second within which a chat takes in what was answered elsewhere, for machines under load."""
_TAKEN_IN = "SELECT count(*) FROM decisions WHERE call_id IN ('c1', 'c2') AND applied_at IS NOT NULL"


def race_chat(seed: int, folder: Path, base_url: str, tally: Tally) -> None:
    """One chat, asked about two calls, until it is killed; then the thread is brought to rest by others."""
    ChatRace(random.Random(seed), folder, base_url).into(tally, seed)


class ChatRace(Race):
    """A race whose holder is a chat."""

    def __init__(self, chance: random.Random, folder: Path, base_url: str) -> None:
        super().__init__(chance, folder, base_url)
        self._late: list[str] = []

    def run(self) -> None:
        """Answers from two sides for each call, while seven more want the thread; then the chat dies."""
        environment = {**self.environment, "NO_COLOR": "1"}
        chat = PtyProgram(["-m", "graph_agent", "chat", "go", "--thread", THREAD], self.workspace, environment)
        self.holders.add(chat.pid)
        chat.sees(_KEYS)
        self.together([*self._answers(), *(("run", "me too", "--resume", THREAD) for _ in range(_WANT_IT))])
        last = [("approvals", "approve", f"{THREAD}:{call}", "--json") for call in ("c1", "c2")]
        self.ended += [self.start(command).wait() for command in last]
        self._wait_until_taken_in()
        time.sleep(self.chance.uniform(0, 0.5))
        chat.signals(signal.SIGKILL)
        self.ended.append(Ended(("chat",), chat.pid, chat.ends(), "", ""))
        self.bring_to_rest()

    def broken(self) -> Iterator[str]:
        """Also: who was refused was refused for the chat, and the chat heard of the answers in time."""
        yield from super().broken()
        yield from self._late
        wanted = [one for one in self.ended if one.arguments[:2] == ("run", "me too") and one.code != -9]
        yield from (f"{one.arguments} was not refused: {one}" for one in wanted if one.code != 7)

    def _answers(self) -> list[tuple[str, ...]]:
        return [
            ("approvals", self.chance.choice(("approve", "reject")), f"{THREAD}:{call}", "--json")
            for call in ("c1", "c2", "c1", "c2")
        ]

    def _wait_until_taken_in(self) -> None:
        began = time.monotonic()
        while self.rows(_TAKEN_IN) != [(2,)]:
            if time.monotonic() > began + TIMEOUT_S:
                self._late.append(f"the chat did not take the answers in within {TIMEOUT_S:g} s")
                return
            time.sleep(_POLL_S)
