"""Calls that are still streaming in: the name, and what can be read of the arguments until now. Shown live only."""

import re

from graph_agent.cli.render.running import RunningCalls
from graph_agent.events.live import LiveCall

__all__ = ["ArrivingCalls", "readable"]

_PAIR = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:\s*(?:"((?:[^"\\]|\\.)*)|([^\s"{\[,}\]][^,}\]]*))')
"""A name with a text, finished or not, or with a number or the like."""
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_SHOWN_CHARS = 60
_RAW_CHARS = 4_000
"""How much of the arguments is looked at again with each piece; a whole file may be among them."""


def readable(raw: str) -> str:
    """Names and values in the beginning of a JSON object; of a long value its end, which is what is new."""
    return ", ".join(f"{_plain(name)}: {_end(text or other)}" for name, text, other in _PAIR.findall(raw))


def _end(value: str) -> str:
    plain = _plain(value)
    return plain if len(plain) <= _SHOWN_CHARS else f"…{plain[-_SHOWN_CHARS:]}"


def _plain(text: str) -> str:
    return " ".join(_ESCAPE.sub(_unescaped, text).split())


def _unescaped(match: re.Match[str]) -> str:
    what = match.group(1)
    if len(what) > 1:
        return chr(int(what[1:], 16)).encode("utf-8", "replace").decode()
    return " " if what in "nrtbf" else what


class ArrivingCalls:
    """What arrives of one reply; its lines stand among those of the running calls and leave nothing behind."""

    def __init__(self, running: RunningCalls) -> None:
        self._running = running
        self._names: dict[int, str] = {}

    def show(self, index: int, call: LiveCall) -> None:
        """A piece of a call arrived."""
        if self._names.get(index) != call.tool_name:
            self._names[index] = call.tool_name
            self._running.begin(_key(index), f"{call.tool_name} (arriving)")
        self._running.tell(_key(index), readable(call.arguments_text[-_RAW_CHARS:]))

    def forget(self) -> None:
        """The reply is whole, void, or goes on with text."""
        for index in self._names:
            self._running.end(_key(index))
        self._names.clear()


def _key(index: int) -> str:
    return f"arriving {index}"
