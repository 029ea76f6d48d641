"""The terminal at work: text that streams in, a long diff; memory of an idle chat, and of many sessions.

`python -m tests.bench.terminal WORKSPACE NUMBER` opens so many sessions in one process and prints the MB of each.
"""

import asyncio
import gc
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path

from graph_agent import open_session
from tests.bench.figures import PYTHON, Figure, Row, Spread
from tests.bench.ground import Ground, home_of
from tests.fakes.openai_server import DELAY, SSE, TC, TXT, FakeOpenAI
from tests.fakes.pty_program import PtyProgram

__all__ = ["ROWS"]

_COLUMNS, _ROWS = 120, 40
_TOKENS_PER_S, _SECONDS = 200, 5
_CTRL_D = "\x04"
_SENTENCE = (
    "The ",
    "worker ",
    "notes ",
    "**each** ",
    "attempt ",
    "in ",
    "the ",
    "`journal`",
    ", ",
    "asks",
    ".\n\n",
)
_DIFF_LINES = 5_000
_LINE = "    value_{} = compute(first={}, second='a word or two')\n"


def _chat(folder: Path, server: FakeOpenAI) -> PtyProgram:
    program = PtyProgram(["-m", "graph_agent", "chat"], folder, home_of(folder, server), (_COLUMNS, _ROWS))
    program.plays("> ", "<hello", "ready")
    time.sleep(0.5)
    return program


def _cpu_s(pid: int) -> float:
    """Processor time of a process until now."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _stream(ground: Ground) -> Iterator[Figure]:
    first, shares = [], []
    for _ in range(3 if ground.quick else 5):
        first.append(_first_token_ms(ground))
        shares.append(_streaming_percent(ground))
    yield Figure("chat, arrival of the first token to the screen", Spread.of(first), "ms", 30)
    yield Figure(f"chat, {_TOKENS_PER_S} tokens/s in {_COLUMNS} columns, of a core", Spread.of(shares), "%", 15)


def _diff(ground: Ground) -> Iterator[Figure]:
    times = [_diff_ms(ground) for _ in range(ground.runs)]
    yield Figure(f"chat, a diff of {_DIFF_LINES} lines to its question", Spread.of(times), "ms", 300)


def _diff_ms(ground: Ground) -> float:
    """From the end of the reply, which asks for the change, to the question on the screen."""
    folder = ground.fresh("diff")
    before, after = ("".join(_LINE.format(at, at + more) for at in range(_DIFF_LINES // 2)) for more in (0, 1))
    (folder / "long.py").write_text(before, encoding="utf-8")
    read = TC("c1", "read_file", {"file_path": "long.py", "limit": 5_000})
    write = DELAY(1.0, TC("c2", "write_file", {"file_path": "long.py", "content": after}))
    with FakeOpenAI([TXT("ready"), read, write]) as server:
        program = _chat(folder, server)
        program.plays("<go", "not shown")
        taken = (time.monotonic() - server.requests[2].at - 1.0) * 1000
        program.signals(9)
        program.ends()
        return taken


class _Timed(FakeOpenAI):
    """Notes when the answer to the second request leaves."""

    wait_s = 1.0

    def left(self) -> float:
        return self.requests[1].at + self.wait_s


def _first_token_ms(ground: Ground) -> float:
    folder = ground.fresh("stream")
    with _Timed([TXT("ready"), DELAY(_Timed.wait_s, TXT("the-first-token", linger_s=0.5))]) as server:
        program = _chat(folder, server)
        program.plays("<go", "the-")
        seen = time.monotonic()
        program.plays("^" + _CTRL_D)
        program.ends()
        return (seen - server.left()) * 1000


def _streaming_percent(ground: Ground) -> float:
    folder, number = ground.fresh("stream"), _TOKENS_PER_S * _SECONDS
    tokens = [{"content": _SENTENCE[at % len(_SENTENCE)]} for at in range(number)]
    answer = SSE([*tokens, {"content": "the-last-token"}], "stop", pace_s=1 / _TOKENS_PER_S)
    with FakeOpenAI([TXT("ready"), answer]) as server:
        program = _chat(folder, server)
        program.plays("<go", "notes")
        began, used = time.monotonic(), _cpu_s(program.pid)
        program.sees("the-last-token")
        share = 100 * (_cpu_s(program.pid) - used) / (time.monotonic() - began)
        program.plays("^" + _CTRL_D)
        program.ends()
        return share


def _idle(ground: Ground) -> Iterator[Figure]:
    ours = Spread.of([_chat_mb(ground) for _ in range(3)])
    imports = "import prompt_toolkit, rich, typer, langgraph.graph, langchain_openai"
    code = f"{imports}\nfor line in open('/proc/self/status'):\n    if 'VmRSS' in line: print(line.split()[1])"
    shown = subprocess.run([PYTHON, "-c", code], check=True, capture_output=True, text=True).stdout
    yield Figure("idle chat", ours, "MB", 90)
    yield Figure("idle chat", ours, "MB", 1.2, Spread.one(int(shown) / 1024), imports)


def _chat_mb(ground: Ground) -> float:
    folder = ground.fresh("idle")
    with FakeOpenAI([TXT("ready")]) as server:
        program = PtyProgram(["-m", "graph_agent", "chat"], folder, home_of(folder, server), is_cold=True)
        program.plays("> ", "<hello", "ready")
        time.sleep(1)
        taken = _resident_mb(program.pid)
        program.plays("^" + _CTRL_D)
        program.ends()
        return taken


def _resident_mb(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def _beside_others(ground: Ground) -> Iterator[Figure]:
    folder, number = ground.fresh("beside"), 20 if ground.quick else 100
    with FakeOpenAI() as server:
        command = [PYTHON, "-m", "tests.bench.terminal", str(folder), str(number)]
        done = subprocess.run(
            command, env=home_of(folder, server), check=True, stdout=subprocess.PIPE, text=True, timeout=600
        )
    yield Figure(f"a session, {number} in one process", Spread.one(float(done.stdout)), "MB", 8)


async def _open_many(workspace: Path, number: int) -> float:
    """Megabytes of each session after the first few, each with one turn."""
    warm, taken = 5, 0.0
    async with AsyncExitStack() as opened:
        for at in range(warm + number):
            session = await opened.enter_async_context(open_session(workspace=workspace))
            await session.send("hello")
            if at == warm - 1:
                gc.collect()
                taken = _resident_mb(os.getpid())
        gc.collect()
        return (_resident_mb(os.getpid()) - taken) / number


ROWS = (Row("stream", _stream), Row("diff", _diff), Row("idle", _idle), Row("beside", _beside_others))

if __name__ == "__main__":
    sys.stdout.write(f"{asyncio.run(_open_many(Path(sys.argv[1]), int(sys.argv[2])))}\n")
