"""Stands in for the runtime of local models in a real process: the texts come from the file that is the model.

After the header, the file holds one JSON string a line; each request takes the next one.
"""

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

__all__ = ["CommonParams", "Server"]

_MARK = b"\nREPLIES\n"


class CommonParams(SimpleNamespace):
    """Takes whatever is set."""

    def __init__(self) -> None:
        super().__init__(model=SimpleNamespace(), cpuparams=SimpleNamespace(), cpuparams_batch=SimpleNamespace())


class Server:
    """Answers in the order of the file."""

    def __init__(self, params: CommonParams) -> None:
        self._left = Path(params.model.path).read_bytes().partition(_MARK)[2].decode().splitlines()

    def handle_chat_completions(self, body: str, take: Callable[[str], bool]) -> None:
        """Streams one reply in two chunks."""
        json.loads(body)
        usage = {"prompt_tokens": 11, "completion_tokens": 5}
        text = json.loads(self._left.pop(0))
        take(json.dumps({"choices": [{"delta": {"content": text}, "finish_reason": None}]}))
        take(json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage}))
