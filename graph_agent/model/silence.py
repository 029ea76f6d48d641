"""Tells an endpoint that works on an answer from one that only keeps the connection open.

Servers send comments or blank lines while a request waits for its turn: signs of life, but no part of an answer.
A line of a stream counts once it is whole, so that one byte a minute is no answer either; of a single object each
byte does. Knows nothing of what an answer says.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Awaitable
from typing import TypeVar

from graph_agent.model.failures import SilentReply

__all__ = ["begun_in_time", "unless_silent"]

T = TypeVar("T")

_LINE_END = re.compile(rb"[\r\n]")
_BOM = b"\xef\xbb\xbf"
_TELLING = 64
"""How many bytes of a line tell whether it is part of an answer."""


async def begun_in_time(answer: Awaitable[T], limit_s: float) -> T:
    """The answer once its head is whole, however slowly the bytes of that drip in.

    Raises:
        SilentReply: it was not whole after so long.
    """
    try:
        async with asyncio.timeout(limit_s):
            return await answer
    except TimeoutError:
        raise SilentReply(f"{limit_s:g} s") from None


async def unless_silent(blocks: AsyncGenerator[bytes, None], limit_s: float) -> AsyncGenerator[bytes, None]:
    """The blocks as they come.

    Raises:
        SilentReply: none of them was part of an answer for so long.
    """
    ear, clock = _Ear(), asyncio.get_running_loop().time
    heard = clock()
    while True:
        try:
            async with asyncio.timeout_at(heard + limit_s):
                block = await anext(blocks, None)
        except TimeoutError:
            raise SilentReply(f"{limit_s:g} s") from None
        if block is None:
            return
        if ear.hears(block):
            heard = clock()
        yield block


class _Ear:
    """Listens to the bytes of one answer."""

    def __init__(self) -> None:
        self._line = b""
        """The beginning of a line that has not ended yet."""
        self._is_object: bool | None = None
        """Whether the answer is one object; None: nothing of it came yet."""

    def hears(self, block: bytes) -> bool:
        """Whether this brings the answer further."""
        if self._is_object:
            return bool(block.strip())
        *whole, rest = _LINE_END.split(self._line + block)
        told = [begin for line in (*whole, rest) if (begin := line.removeprefix(_BOM).strip())]
        if self._is_object is None and told:
            self._is_object = told[0][:1] in (b"{", b"[")
        self._line = rest.lstrip()[:_TELLING]
        return bool(self._is_object) or any(map(_is_part, whole))


def _is_part(line: bytes) -> bool:
    text = line.removeprefix(_BOM).strip()
    return text.startswith(b"{") or (text.startswith(b"data:") and len(text) > len(b"data:"))
