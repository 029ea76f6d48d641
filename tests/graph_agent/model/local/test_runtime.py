import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from graph_agent.errors import ModelError
from graph_agent.model.local.model import actions_for, instructions, parse_action, schema_of
from graph_agent.model.local.runtime import (
    Completion,
    CompletionRequest,
    LlamaRuntime,
    Worker,
    free_cores,
    shared_runtime,
)
from tests.fakes.scripted_runtime import ScriptedRuntime

REAL = os.environ.get("GRAPH_AGENT_TEST_GGUF", "")


class Params(SimpleNamespace):
    def __init__(self) -> None:
        super().__init__(model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())


class Server:
    """Answers every request with the same chunks."""

    chunks: tuple[dict[str, Any], ...] = ()
    made: ClassVar[list[Params]] = []
    bodies: ClassVar[list[dict[str, Any]]] = []

    def __init__(self, params: Params) -> None:
        if "bad" in params.model.path:
            raise RuntimeError("no such architecture")
        assert Path(params.hostnames[0]).parent.stat().st_mode & 0o077 == 0
        self.made.append(params)

    def handle_chat_completions(self, body: str, take: Callable[[str], bool]) -> None:
        self.bodies.append(json.loads(body))
        for chunk in self.chunks:
            if take(json.dumps(chunk)):
                return


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> type[Server]:
    monkeypatch.setitem(sys.modules, "xllamacpp", SimpleNamespace(CommonParams=Params, Server=Server))
    monkeypatch.setattr(Server, "made", [])
    monkeypatch.setattr(Server, "bodies", [])
    return Server


def chunk(text: str | None = None, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}, "finish_reason": finish}]}


def test_chunks_become_one_answer_and_the_weights_load_once(
    library: type[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2}}
    monkeypatch.setattr(library, "chunks", (chunk(), chunk("a"), chunk("b", "stop"), usage))
    runtime = LlamaRuntime(Path("a.gguf"), 512)
    pieces: list[str] = []

    def keep(piece: str) -> bool:
        pieces.append(piece)
        return False

    before = runtime.is_loaded
    told = [runtime.generate(CompletionRequest([], 9, {"type": "object"}), keep) for _ in "12"]

    assert told == [Completion("ab", is_complete=True, input_tokens=5, output_tokens=2)] * 2
    assert (before, runtime.is_loaded, len(library.made), pieces) == (False, True, 1, ["a", "b"] * 2)
    assert library.bodies[0]["response_format"]["json_schema"]["schema"] == {"type": "object"}
    assert not Path(library.made[0].hostnames[0]).parent.exists()


def test_an_answer_ended_by_a_stop_or_the_limit_is_incomplete(
    library: type[Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "chunks", (chunk("a"), chunk("b", "length")))
    runtime = LlamaRuntime(Path("a.gguf"), 512)

    stopped = runtime.generate(CompletionRequest([], 9), lambda _: True)
    limited = runtime.generate(CompletionRequest([], 9), lambda _: False)

    assert (stopped, limited) == (Completion("a", is_complete=False), Completion("ab", is_complete=False))


def test_errors_of_the_library_are_model_errors(library: type[Server], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "chunks", ({"error": {"message": "too long"}},))

    with pytest.raises(ModelError, match="cannot answer: too long"):
        LlamaRuntime(Path("a.gguf"), 512).generate(CompletionRequest([], 9), lambda _: False)
    with pytest.raises(ModelError, match=r"'bad\.gguf' cannot be loaded: no such architecture"):
        LlamaRuntime(Path("bad.gguf"), 512).generate(CompletionRequest([], 9), lambda _: False)


def test_a_missing_runtime_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)

    with pytest.raises(ModelError, match=r"pip install '\.\[local\]' in the checkout"):
        LlamaRuntime(Path("a.gguf"), 512).generate(CompletionRequest([], 9), lambda _: False)


def test_a_file_has_one_runtime_in_a_process() -> None:
    assert shared_runtime(Path("a"), 512) is shared_runtime(Path("a"), 512)
    assert shared_runtime(Path("a"), 512) is not shared_runtime(Path("b"), 512)


@pytest.mark.parametrize(("load", "threads"), [(0.1, "all"), (500.0, 1)])
def test_threads_are_the_free_cores_but_at_least_one(
    load: float, threads: str | int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getloadavg", lambda: (load, load, load))
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()

    assert free_cores() == (mine if threads == "all" else threads)


@pytest.mark.skipif(not REAL, reason="GRAPH_AGENT_TEST_GGUF names no GGUF file: the real local model was NOT tried")
@pytest.mark.timeout(300)
def test_a_real_model_chooses_an_action_under_the_schema() -> None:
    actions = actions_for(frozenset(("ls", "grep", "read_file", "write_file", "bash")))
    messages = [
        {"role": "system", "content": instructions(actions)},
        {"role": "user", "content": "what does setup.py do?"},
    ]

    told = LlamaRuntime(Path(REAL), 4096).generate(
        CompletionRequest(messages, 200, schema_of(actions)), lambda _: False
    )

    assert parse_action(told.text, actions) == ("read_file", {"file_path": "setup.py"})
    assert (told.is_complete, told.input_tokens < 600, told.output_tokens > 5) == (True, True, True)


ASK = CompletionRequest([], 10)


async def test_pieces_arrive_in_order_and_the_whole_is_returned() -> None:
    pieces: list[str] = []

    told = await Worker(ScriptedRuntime(["a\nb"])).generate(ASK, pieces.append)

    assert (told, pieces) == (Completion("a\nb", is_complete=True, input_tokens=7, output_tokens=3), ["a\n", "b"])


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (ModelError("no memory"), "no memory"),
        (RuntimeError("bad tensor"), "The local model failed: bad tensor."),
        (MemoryError(), "The local model failed: MemoryError."),
    ],
)
async def test_an_error_of_the_runtime_reaches_the_caller(failure: Exception, told: str) -> None:
    with pytest.raises(ModelError, match=told):
        await Worker(ScriptedRuntime([failure])).generate(ASK, lambda _: None)


async def test_a_cancelled_request_stops_at_the_next_token_and_streams_nothing_more() -> None:
    runtime = ScriptedRuntime([], endless=True)
    pieces: list[str] = []
    asking = asyncio.create_task(Worker(runtime).generate(ASK, pieces.append))
    await asyncio.to_thread(runtime.began.wait, 5)

    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    told = len(pieces)

    assert await asyncio.to_thread(runtime.ended.wait, 5)
    await asyncio.sleep(0.02)
    assert len(pieces) == told


async def test_closing_waits_for_a_running_generation() -> None:
    runtime = ScriptedRuntime([], endless=True)
    worker = Worker(runtime)
    asking = asyncio.create_task(worker.generate(ASK, lambda _: None))
    await asyncio.to_thread(runtime.began.wait, 5)

    await worker.close()

    assert runtime.ended.is_set()
    assert not (await asking).is_complete
