"""What the local model needs of a runtime, and the one that is used: llama.cpp within this process.

Knows no tool and no history. No port is opened and nothing is fetched.

Runs the requests of a local model in a thread, one after another, so that they can be broken off at any instant.

The runtime itself notices a stop between two tokens only; nobody waits for that but the next request.
"""

import asyncio
import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol

from graph_agent.config.model_choice import INSTALL
from graph_agent.errors import ModelError

__all__ = ["LOCAL_CONTEXT", "Ask", "Generated", "LlamaRuntime", "Runtime", "Worker", "free_cores", "shared_runtime"]

LOCAL_CONTEXT = 4096
"""Tokens of context where the settings name no number: more would take memory, and minutes to fill."""

OnPiece = Callable[[str], bool]
"""Takes each new piece of text; true ends the generation."""


@dataclass(frozen=True, slots=True)
class Ask:
    """One request."""

    messages: Sequence[Mapping[str, str]]
    """`{role, content}`: system first, then user and assistant in turn."""
    max_tokens: int
    schema: Mapping[str, Any] | None = None
    """The JSON schema that the text is made to fit; None: free text."""


@dataclass(frozen=True, slots=True)
class Generated:
    """What came of it."""

    text: str
    is_whole: bool
    """False where the limit of tokens or a stop ended it."""
    input_tokens: int = 0
    output_tokens: int = 0


class Runtime(Protocol):
    """A model in memory. Both methods block, and are called from one worker thread at a time."""

    @property
    def is_loaded(self) -> bool:
        """Whether the weights are in memory already."""
        ...

    def generate(self, ask: Ask, on_piece: OnPiece) -> Generated:
        """Load the weights where that is still to be done, and answer.

        Raises:
            ModelError: the file cannot be loaded, or the request does not fit.
        """
        ...


class LlamaRuntime:
    """Implements `Runtime` on xllamacpp."""

    def __init__(self, path: Path, context: int) -> None:
        self._path = path
        self._context = context
        self._server: Any = None
        self._alone = threading.Lock()

    @property
    def is_loaded(self) -> bool:
        """See `Runtime`."""
        return self._server is not None

    def generate(self, ask: Ask, on_piece: OnPiece) -> Generated:
        """See `Runtime`."""
        with self._alone:
            if self._server is None:
                self._server = _loaded(self._path, self._context)
            reading = _Reading(on_piece)
            self._server.handle_chat_completions(json.dumps(_body(ask)), reading.take)
        return reading.result()


class _Reading:
    """Puts the chunks of one answer together."""

    def __init__(self, on_piece: OnPiece) -> None:
        self._on_piece = on_piece
        self._pieces: list[str] = []
        self._finish = ""
        self._fault = ""
        self._usage: Mapping[str, int] = {}

    def take(self, chunk: str) -> bool:
        told = json.loads(chunk)
        self._fault = str(told["error"].get("message", "unknown")) if "error" in told else self._fault
        self._usage = told.get("usage") or self._usage
        for choice in told.get("choices", ()):
            self._finish = choice.get("finish_reason") or self._finish
            if piece := choice.get("delta", {}).get("content"):
                self._pieces.append(piece)
                return self._on_piece(piece)
        return False

    def result(self) -> Generated:
        if self._fault:
            raise ModelError(f"The local model cannot answer: {self._fault}.")
        read, written = self._usage.get("prompt_tokens", 0), self._usage.get("completion_tokens", 0)
        return Generated("".join(self._pieces), self._finish == "stop", read, written)


@cache
def shared_runtime(path: Path, context: int) -> LlamaRuntime:
    """The one runtime of this process for a file: its weights are in memory once, whoever asks."""
    return LlamaRuntime(path, context)


def free_cores() -> int:
    """Threads to calculate with: more than the machine has to spare make each token slower, not faster."""
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    busy = os.getloadavg()[0]
    return max(1, min(mine, round(mine - busy)))


def _body(ask: Ask) -> dict[str, Any]:
    form = {"type": "json_schema", "json_schema": {"name": "action", "schema": ask.schema}}
    return {
        "messages": list(ask.messages),
        "max_tokens": ask.max_tokens,
        "temperature": 0,
        "stream": True,
        "stream_options": {"include_usage": True},
        **({"response_format": form} if ask.schema else {}),
    }


def _loaded(path: Path, context: int) -> Any:
    try:
        import xllamacpp  # type: ignore[import-not-found]  # noqa: PLC0415 - an extra, and heavy
    except ImportError as missing:
        raise ModelError(f"The runtime of the local model cannot be loaded ({missing}): {INSTALL}") from missing
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = free_cores()
    params.verbosity, params.warmup, params.ui, params.endpoint_slots = -1, False, False, False
    params.cache_ram_mib = 0
    # It insists on listening somewhere: on a socket in a private folder, with a key nobody has, gone at once.
    folder = tempfile.mkdtemp(prefix="graph-agent-")
    params.hostnames = [f"{folder}/model.sock"]
    params.api_keys = [token_hex(32)]
    try:
        return xllamacpp.Server(params)
    except (RuntimeError, ValueError, OSError) as error:
        raise ModelError(f"The local model {str(path)!r} cannot be loaded: {error}.") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_OF_A_LIBRARY = (RuntimeError, ValueError, TypeError, LookupError, OSError, MemoryError)
"""What native code behind Python raises."""

_LEAVING_S = 3.0
"""Longest wait for the end of a generation when the model is closed."""


class Worker:
    """The thread belongs to one request; a daemon, because a prompt that is being read holds up no exit."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    async def generate(self, ask: Ask, on_piece: Callable[[str], None]) -> Generated:
        """The answer; its pieces are told in the event loop. Cancelling ends it at the next token.

        Raises:
            ModelError: see `Runtime.generate`.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Generated] = loop.create_future()
        stop = self._stop = threading.Event()

        def tell(piece: str) -> bool:
            if not stop.is_set():
                _later(loop, lambda: None if stop.is_set() else on_piece(piece))
            return stop.is_set()

        self._thread = threading.Thread(target=self._work, args=(ask, tell, loop, done), daemon=True)
        self._thread.start()
        try:
            return await done
        finally:
            stop.set()

    def _work(
        self,
        ask: Ask,
        tell: Callable[[str], bool],
        loop: asyncio.AbstractEventLoop,
        done: "asyncio.Future[Generated]",
    ) -> None:
        failure = ModelError("The local model broke off.")
        generated: Generated | None = None
        try:
            generated = self._runtime.generate(ask, tell)
        except ModelError as error:
            failure = error
        except _OF_A_LIBRARY as error:
            failure = ModelError(f"The local model failed: {str(error) or type(error).__name__}.")
        finally:
            _later(loop, lambda: _settle(done, generated, failure))

    async def close(self) -> None:
        """End what still generates."""
        self._stop.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, _LEAVING_S)


def _settle(done: "asyncio.Future[Generated]", generated: Generated | None, failure: ModelError) -> None:
    if done.done():
        return
    if generated is None:
        done.set_exception(failure)
    else:
        done.set_result(generated)


def _later(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """A loop that is closed meanwhile has nobody who would listen."""
    with suppress(RuntimeError):
        loop.call_soon_threadsafe(call)
