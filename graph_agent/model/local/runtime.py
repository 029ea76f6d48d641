"""Runs a GGUF file with llama.cpp inside this process; no port is opened and nothing is downloaded."""

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
from typing import Any

from graph_agent.config.model_choice import INSTALL
from graph_agent.errors import ModelError

__all__ = [
    "LOCAL_CONTEXT",
    "Completion",
    "CompletionRequest",
    "LlamaRuntime",
    "Worker",
    "free_cores",
    "shared_runtime",
]

LOCAL_CONTEXT = 4096
"""Context window where the settings name none, in tokens: a larger one takes memory, and minutes to fill."""
_LIBRARY_ERRORS = (RuntimeError, ValueError, TypeError, LookupError, OSError, MemoryError)
"""What native code behind Python raises."""
_CLOSE_S = 3.0
"""Longest wait for the end of a generation when the model is closed."""


@dataclass(frozen=True, slots=True)
class CompletionRequest:
    """One request."""

    messages: Sequence[Mapping[str, str]]
    """`{role, content}`: system first, then user and assistant in turn."""
    max_tokens: int
    schema: Mapping[str, Any] | None = None
    """The JSON schema that decoding is constrained to; None: free text."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer to a request."""

    text: str
    is_complete: bool
    """False where the token limit or a stop ended it."""
    input_tokens: int = 0
    output_tokens: int = 0


class LlamaRuntime:
    """A model on xllamacpp; its weights are loaded by the first request."""

    def __init__(self, path: Path, context: int) -> None:
        self.is_loaded = False
        self._path = path
        self._context = context
        self._server: Any = None
        self._lock = threading.Lock()

    def generate(self, request: CompletionRequest, on_piece: Callable[[str], bool]) -> Completion:
        """Answer. Blocks; `on_piece` returns true to stop.

        Raises:
            ModelError: the file cannot be loaded, or the request does not fit.
        """
        body: dict[str, Any] = {
            "messages": list(request.messages),
            "max_tokens": request.max_tokens,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.schema:
            schema = {"name": "action", "schema": request.schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        pieces: list[str] = []
        last: dict[str, Any] = {}

        def take(line: str) -> bool:
            chunk = json.loads(line)
            last.update({key: chunk[key] for key in ("error", "usage") if chunk.get(key)})
            for choice in chunk.get("choices", ()):
                last["finish"] = choice.get("finish_reason") or last.get("finish")
                if piece := choice.get("delta", {}).get("content"):
                    pieces.append(piece)
                    return on_piece(piece)
            return False

        with self._lock:
            if self._server is None:
                self._server = _load_server(self._path, self._context)
                self.is_loaded = True
            self._server.handle_chat_completions(json.dumps(body), take)
        if "error" in last:
            raise ModelError(f"The local model cannot answer: {last['error'].get('message', 'unknown')}.")
        usage = last.get("usage", {})
        tokens = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
        return Completion("".join(pieces), last.get("finish") == "stop", *tokens)


@cache
def shared_runtime(path: Path, context: int) -> LlamaRuntime:
    """The one runtime of this process for a file, so that its weights are in memory only once."""
    return LlamaRuntime(path, context)


def free_cores() -> int:
    """Threads to compute with: more than the machine has to spare make each token slower, not faster."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, round(cores - os.getloadavg()[0])))


def _load_server(path: Path, context: int) -> Any:
    try:
        import xllamacpp  # type: ignore[import-not-found]  # noqa: PLC0415 - an extra, and heavy
    except ImportError as missing:
        raise ModelError(f"The runtime of the local model cannot be loaded ({missing}): {INSTALL}") from missing
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx, params.n_parallel = context, 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = free_cores()
    params.verbosity, params.warmup, params.ui, params.endpoint_slots = -1, False, False, False
    params.cache_ram_mib = 0
    # The library insists on listening somewhere: a socket in a private folder, with a secret key, removed at once.
    folder = tempfile.mkdtemp(prefix="graph-agent-")
    params.hostnames = [f"{folder}/model.sock"]
    params.api_keys = [token_hex(32)]
    try:
        return xllamacpp.Server(params)
    except (RuntimeError, ValueError, OSError) as error:
        raise ModelError(f"The local model {str(path)!r} cannot be loaded: {error}.") from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Worker:
    """Runs each request in a daemon thread, so that it can be cancelled and never delays the exit of the process.

    The runtime notices a stop between two tokens only; no one but the next request waits for that.
    """

    def __init__(self, runtime: LlamaRuntime) -> None:
        self._runtime = runtime
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    async def generate(self, request: CompletionRequest, on_piece: Callable[[str], None]) -> Completion:
        """The answer; `on_piece` is called in the event loop. Cancelling stops the generation at the next token.

        Raises:
            ModelError: see `LlamaRuntime.generate`.
        """
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Completion | ModelError] = loop.create_future()
        stop = self._stop = threading.Event()

        def show(piece: str) -> None:
            if not stop.is_set():
                on_piece(piece)

        def finish(outcome: Completion | ModelError) -> None:
            if not done.done():
                done.set_result(outcome)

        def take(piece: str) -> bool:
            with suppress(RuntimeError):  # The loop is closed: no one waits any more.
                loop.call_soon_threadsafe(show, piece)
            return stop.is_set()

        def work() -> None:
            try:
                outcome: Completion | ModelError = self._runtime.generate(request, take)
            except (ModelError, *_LIBRARY_ERRORS) as error:
                text = f"The local model failed: {str(error) or type(error).__name__}."
                outcome = error if isinstance(error, ModelError) else ModelError(text)
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(finish, outcome)

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()
        try:
            outcome = await done
        finally:
            stop.set()
        if isinstance(outcome, ModelError):
            raise outcome
        return outcome

    async def close(self) -> None:
        """Stop a running generation."""
        self._stop.set()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join, _CLOSE_S)
