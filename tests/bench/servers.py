"""A chat whose MCP server takes long to start, against one without."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from tests.bench.figures import Figure, Row
from tests.bench.ground import Ground, home_of
from tests.bench.timing import AGENT, pairs
from tests.fakes.openai_server import FakeOpenAI
from tests.fakes.pty_program import PtyProgram

__all__ = ["ROWS"]

_DEMO = Path(__file__).parents[1] / "fakes" / "mcp_demo.py"
_START_S = 5
_CTRL_D = "\x04"


def _slow_start(ground: Ground) -> Iterator[Figure]:
    slow, none = ground.fresh("servers"), ground.fresh("servers")
    settings = {"command": sys.executable, "args": [str(_DEMO), "--wait", str(_START_S)]}
    table = "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items())
    (slow / "home").mkdir()
    (slow / "home" / "config.toml").write_text(f"[mcp_servers.slow]\n{table}", encoding="utf-8")
    trusted = subprocess.run(
        [*AGENT, "mcp", "trust", "slow"], env=home_of(slow), cwd=slow, check=False, capture_output=True, text=True
    )
    if trusted.returncode:
        raise RuntimeError(f"the server was not trusted: {trusted.stderr}")
    with FakeOpenAI() as server:
        ours, reference = pairs(partial(_turn_s, slow, server), partial(_turn_s, none, server), ground.runs)
    yield Figure("chat, first request, an MCP server takes 5 s", ours, "s", 1.25, reference, "without a server")


def _turn_s(folder: Path, server: FakeOpenAI) -> float:
    environment: Mapping[str, str] = home_of(folder, server)
    before = len(server.requests)
    began = time.monotonic()
    program = PtyProgram(["-m", "graph_agent", "chat", "hello"], folder, environment)
    program.sees("end")
    program.types(_CTRL_D)
    program.ends()
    return server.requests[before].at - began


ROWS = (Row("mcp", _slow_start),)
