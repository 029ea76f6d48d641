"""How soon something is there: help, listings, the prompt, the first model request, with a slow MCP server too."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.bench.figures import AGENT, PYTHON, Figure, Row, Spread, in_turns, pairs, process_s
from tests.bench.ground import Ground, home_of
from tests.fakes.openai_server import DELAY, TXT, FakeOpenAI
from tests.fakes.pty_program import PtyProgram

__all__ = ["ROWS", "prompt_s"]

_TYPER = "import typer"
_READER = "import sqlite3, json, typer, rich"
_TERMINAL = "import prompt_toolkit, rich, typer, sqlite3"
_GRAPH = "import langgraph.graph, langchain_openai"
_CTRL_D = "\x04"
_DEMO = Path(__file__).parents[1] / "fakes" / "mcp_demo.py"
_START_S = 5
_KEYS = 60
_BETWEEN_KEYS_S = 0.04


def _against_import(*arguments: str, imports: str, target: float) -> Callable[[Ground], Iterator[Figure]]:
    def measure(ground: Ground) -> Iterator[Figure]:
        env = {**home_of(ground.folder), **ground.crowd}
        # Without a folder of its own a thread is found by the database that is named.
        database = (
            ["--db", str(ground.folder / "crowd" / "data" / "graph-agent.db")] if arguments == ("inspect",) else []
        )
        ours, reference = in_turns([*AGENT, *arguments, *database], [PYTHON, "-c", imports], env, ground.runs)
        yield Figure(" ".join(arguments), ours, "s", target, reference, imports)

    return measure


def _complete(ground: Ground) -> Iterator[Figure]:
    env = {**home_of(ground.folder), **ground.crowd, "_GRAPH_AGENT_COMPLETE": "words"}
    line = [*AGENT, "graph-agent", "threads", "show", ""]
    ours, reference = in_turns(line, [PYTHON, "-c", _READER], env, ground.runs)
    yield Figure("completion of a thread id", ours, "s", 1, reference, _READER)


def _prompt(ground: Ground) -> Iterator[Figure]:
    env = home_of(ground.fresh("prompt"))
    ours, reference = pairs(
        lambda: prompt_s(("chat",), ground.folder, env),
        lambda: process_s([PYTHON, "-c", _TERMINAL], env),
        ground.runs,
    )
    yield Figure("chat, prompt on screen", ours, "s", 1.5, reference, _TERMINAL)
    times = sorted(_keys_ms(ground.folder, env))
    late = times[int(len(times) * 0.95)]
    yield Figure("key to screen while the rest loads, p95", Spread(late, times[0], times[-1]), "ms", 20)


def _enter(ground: Ground) -> Iterator[Figure]:
    for seconds in (0, 0.5, 3):
        times = [_enter_s(ground, seconds) * 1000 for _ in range(ground.runs)]
        yield Figure(f"chat, Enter to request, {seconds:g} s after the prompt", Spread.of(times), "ms", 40)


def _enter_s(ground: Ground, seconds: float) -> float:
    """From Enter on the first message to its request; the rest of the chat loads meanwhile."""
    folder = ground.fresh("enter")
    with FakeOpenAI([TXT("hello")]) as server:
        program = PtyProgram(["-m", "graph_agent", "chat"], folder, home_of(folder, server), is_cold=True)
        program.sees("> ")
        program.types_at_once("hi")
        time.sleep(seconds)
        began = time.monotonic()
        program.types_at_once("\r")
        program.sees("hello")
        _leave(program)
        return server.requests[0].at - began


def prompt_s(arguments: Sequence[str], folder: Path, env: Mapping[str, str]) -> float:
    """From the start of a chat until it can be typed into."""
    began = time.perf_counter()
    program = PtyProgram(["-m", "graph_agent", *arguments], folder, env, is_cold=True)
    program.sees("> ")
    taken = time.perf_counter() - began
    _leave(program)
    return taken


def _keys_ms(folder: Path, env: Mapping[str, str]) -> Iterator[float]:
    program = PtyProgram(["-m", "graph_agent", "chat"], folder, env, is_cold=True)
    program.sees("> ")
    for number in range(_KEYS):
        key = "qxjz"[number % 4]
        began = time.perf_counter()
        program.types_at_once(key)
        program.sees(key)
        yield (time.perf_counter() - began) * 1000
        time.sleep(_BETWEEN_KEYS_S)
    program.types("\x15")
    _leave(program)


def _leave(program: PtyProgram) -> None:
    program.types(_CTRL_D)
    program.ends()


def _first_request(ground: Ground) -> Iterator[Figure]:
    ours, reference = pairs(
        lambda: _start_s(ground, 0, _our_run)[0],
        partial(process_s, [PYTHON, "-c", _GRAPH], home_of(ground.folder)),
        ground.runs,
    )
    yield Figure("run, first model request", ours, "s", 0.5, reference, _GRAPH)


_MOMENTS = (("first model request", 0.1), ("first token", 1.0), ("end", 1.1))
"""What is timed of a run, and how much of the time of `create_agent` it may take."""


def _start(ground: Ground) -> Iterator[Figure]:
    for seconds in (0, 0.3, 1):
        runs = [
            (_start_s(ground, seconds, _our_run), _start_s(ground, seconds, _plain_run))
            for _ in range(ground.runs + 1)
        ][1:]
        for moment, (name, target) in enumerate(_MOMENTS):
            ours, reference = (Spread.of([run[side][moment] for run in runs]) for side in (0, 1))
            what = f"run, {name}, the model takes {seconds:g} s"
            yield Figure(what, ours, "s", target, reference, "plain create_agent")


def _our_run(server: FakeOpenAI, folder: Path) -> Sequence[str]:
    return [*AGENT, "run", "hello", "--workspace", str(folder), "--output", "stream-json"]


def _plain_run(server: FakeOpenAI, folder: Path) -> Sequence[str]:
    return [PYTHON, "-m", "tests.bench.references", "start", server.base_url, str(folder / "plain.db"), str(folder)]


def _start_s(
    ground: Ground, seconds: float, command: Callable[[FakeOpenAI, Path], Sequence[str]]
) -> tuple[float, float, float]:
    """From the start of the process to its first request, the first token it prints, and its end."""
    folder, token = ground.fresh("first"), 0.0
    with FakeOpenAI([DELAY(seconds, TXT("hello"))]) as server:
        began = time.monotonic()
        with subprocess.Popen(
            command(server, folder), env=home_of(folder, server), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        ) as process:
            for line in process.stdout or ():
                if not token and b"text_delta" in line:
                    token = time.monotonic() - began
        ended = time.monotonic() - began
        if process.returncode or not token:
            raise RuntimeError(f"{command.__name__} ended with {process.returncode} and printed no token")
        return server.requests[0].at - began, token, ended


def _slow_start(ground: Ground) -> Iterator[Figure]:
    slow, none = ground.fresh("servers"), ground.fresh("servers")
    settings = {"command": PYTHON, "args": [str(_DEMO), "--wait", str(_START_S)]}
    table = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    # A chat with servers makes no early request: what a server costs is seen beside a chat that makes none either.
    for folder, servers in ((slow, f"[mcp_servers.slow]\n{table}"), (none, "")):
        (folder / "home").mkdir()
        (folder / "home" / "config.toml").write_text(f'early_request = "off"\n{servers}', encoding="utf-8")
    trusted = subprocess.run(
        [*AGENT, "mcp", "trust", "slow"], env=home_of(slow), cwd=slow, check=False, capture_output=True, text=True
    )
    if trusted.returncode:
        raise RuntimeError(f"the server was not trusted: {trusted.stderr}")
    with FakeOpenAI() as server:
        ours, reference = pairs(partial(_turn_s, slow, server), partial(_turn_s, none, server), ground.runs)
    plain = "without a server or an early request"
    yield Figure("chat, first request, an MCP server takes 5 s", ours, "s", 1.25, reference, plain)


def _turn_s(folder: Path, server: FakeOpenAI) -> float:
    environment: Mapping[str, str] = home_of(folder, server)
    before = len(server.requests)
    began = time.monotonic()
    program = PtyProgram(["-m", "graph_agent", "chat", "hello"], folder, environment, is_cold=True)
    program.sees("end")
    program.types(_CTRL_D)
    program.ends()
    return server.requests[before].at - began


ROWS = (
    Row("version", _against_import("--version", imports=_TYPER, target=1.5)),
    Row("help", _against_import("--help", imports=_TYPER, target=1.5)),
    Row("threads", _against_import("threads", "list", imports=_READER, target=3)),
    Row("inspect", _against_import("inspect", imports=_READER, target=3)),
    Row("calls", _against_import("calls", imports=_READER, target=3)),
    Row("approvals", _against_import("approvals", "list", imports=_READER, target=3)),
    Row("complete", _complete),
    Row("prompt", _prompt),
    Row("enter", _enter),
    Row("first-request", _first_request),
    Row("start", _start),
    Row("mcp", _slow_start),
)
