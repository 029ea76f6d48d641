"""Takes the body of an answer apart into payloads, whatever it is called: events, lines, or one whole object.

Knows nothing of what the payloads say.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator

from graph_agent.model.failures import NotAnApi

__all__ = ["payloads_of"]

_LINE_END = re.compile(rb"[\r\n]")
_EVENTS = re.compile(rb"\s*(?:data|event|id|retry)?:")
_TELLING = 6
"""How many of the first bytes tell what comes."""
_JSON = (b"{", b"[")
_BOM = b"\xef\xbb\xbf"


async def payloads_of(blocks: AsyncIterator[bytes], content_type: str = "") -> AsyncIterator[str]:
    """The data of each event, or the one body of an answer that is none; the first bytes tell more than its name.

    Raises:
        NotAnApi: it is a web page.
    """
    start = b""
    while len(start.removeprefix(_BOM).strip()) < _TELLING and (block := await anext(blocks, None)) is not None:
        start += block
    begins = start.removeprefix(_BOM).lstrip()
    are_events = _EVENTS.match(begins) is not None
    if begins.startswith(b"<") or ("text/html" in content_type and not are_events and begins[:1] not in _JSON):
        raise NotAnApi("it answered with a web page")
    if (begins[:1] in _JSON or "json" in content_type) and not are_events:
        body = start + b"".join([block async for block in blocks])
        for payload in _whole(body.decode("utf-8-sig", "replace")):
            yield payload
        return
    async for payload in _events(start, blocks):
        yield payload


def _whole(text: str) -> Iterator[str]:
    """One object; some servers send one a line, and some report an error before their first event."""
    lines = [payload for line in text.splitlines() if (payload := _payload(line))]
    if _is_json(text) or not lines:
        yield text
    else:
        yield from lines


async def _events(start: bytes, blocks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    """Payloads of an event stream; one may go over several lines, each called data."""
    begun: list[str] = []
    async for line in _lines_of(start, blocks):
        payload = _payload(line)
        if payload and (begun or (payload.startswith("{") and not payload.endswith("}"))):
            begun.append(payload)
            payload = "\n".join(begun)
            if not _is_json(payload):
                continue
        elif not line and begun:
            payload = "\n".join(begun)
        if payload:
            begun.clear()
            yield payload
    if begun:
        yield "\n".join(begun)


async def _lines_of(start: bytes, blocks: AsyncIterator[bytes]) -> AsyncIterator[str]:
    *lines, rest = _LINE_END.split(start)
    for line in lines:
        yield _decoded(line)
    async for block in blocks:
        *lines, rest = _LINE_END.split(rest + block)
        for line in lines:
            yield _decoded(line)
    yield _decoded(rest)


def _decoded(line: bytes) -> str:
    return line.decode("utf-8-sig", "replace").strip()


def _payload(line: str) -> str:
    """What an event says; a bare object between events reports an error."""
    text = line.strip()
    return text if text.startswith("{") else text.removeprefix("data:").strip() if text.startswith("data:") else ""


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
