"""What the local model needs of a runtime, and the one that is used: llama.cpp within this process.

Knows no tool and no history. No port is opened and nothing is fetched.
"""

import json
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol

from graph_agent.config.local_model import INSTALL
from graph_agent.errors import ModelError

__all__ = ["LOCAL_CONTEXT", "Ask", "Generated", "LlamaRuntime", "Runtime", "free_cores", "shared_runtime"]

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
