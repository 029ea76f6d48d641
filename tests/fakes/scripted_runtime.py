"""A runtime of the local model that answers from a list, piece by piece, and keeps what it was asked."""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from graph_agent.model.local.runtime import Completion, CompletionRequest, LlamaRuntime

__all__ = ["ScriptedRuntime", "action"]

Reply = str | Completion | Exception


@dataclass
class ScriptedRuntime(LlamaRuntime):
    """A runtime without a file."""

    replies: list[Reply]
    asked: list[CompletionRequest] = field(default_factory=list)
    endless: bool = False
    """Whether it goes on until it is stopped."""
    is_loaded: bool = False
    began: threading.Event = field(default_factory=threading.Event)
    ended: threading.Event = field(default_factory=threading.Event)

    def generate(self, request: CompletionRequest, on_piece: Callable[[str], bool]) -> Completion:
        """See `LlamaRuntime`."""
        self.asked.append(request)
        self.is_loaded = True
        self.began.set()
        while self.endless and not on_piece("more "):
            time.sleep(0.005)
        self.ended.set()
        reply = Completion("", is_complete=False) if self.endless else self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        completion = (
            Completion(reply, is_complete=True, input_tokens=7, output_tokens=3)
            if isinstance(reply, str)
            else reply
        )
        for piece in completion.text.splitlines(keepends=True):
            on_piece(piece)
        return completion


def action(tool: str, **arguments: str) -> str:
    """What the model says to take an action."""
    pairs = {"tool": tool, **arguments}
    return "{" + ", ".join(f'"{name}": {_quoted(value)}' for name, value in pairs.items()) + "}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
