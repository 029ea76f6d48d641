"""Getting one page: hop by hop, each judged before it is asked, bounded in size, time and number."""

import asyncio
import zlib
from collections.abc import Callable
from dataclasses import dataclass

import httpx

from tools.context import BytesFetched, HostLeave, Progress
from tools.kinds import ToolErrorType
from tools.web_ops.address import Address, BadAddress
from tools.web_ops.connecting import SILENCE_S, PrivateAddress, open_client
from tools.web_ops.resolving import Unresolved

__all__ = ["MAX_BYTES", "NotFetched", "Page", "bounded_body", "fetch", "why_not"]

MAX_BYTES = 2 * 1024 * 1024
"""Of a page after it was unpacked; what comes later is cut off, and the result says so."""

_MAX_HOPS = 10
_SECONDS = 60.0
_FOLLOWED = frozenset((301, 302, 303, 307, 308))


class NotFetched(Exception):
    """There is no page; the message tells the model why and what to do."""

    def __init__(self, kind: ToolErrorType, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Page:
    """What a server answered."""

    address: Address
    """Where it came from in the end."""
    status: int
    content_type: str
    charset: str
    """As the server named it; empty where it did not."""
    body: bytes
    is_cut: bool


async def fetch(address: Address, leave: Callable[[str], HostLeave], progress: Callable[[Progress], None]) -> Page:
    """Get the page.

    Raises:
        NotFetched: it may not be asked for, cannot be reached, or leads elsewhere for ever.
    """
    start = address
    try:
        async with asyncio.timeout(_SECONDS):
            for _ in range(_MAX_HOPS):
                answer = await _hop(address, leave(address.target), progress)
                if isinstance(answer, Page):
                    return answer
                _require_followed(start, answer, leave(answer.target))
                address = answer
    except TimeoutError as error:
        raise NotFetched(ToolErrorType.TIMEOUT, f"{address.url} did not answer in {_SECONDS:g} seconds.") from error
    raise NotFetched(
        ToolErrorType.EXECUTION, f"{start.url} was redirected {_MAX_HOPS} times and is still not there."
    )


def _require_followed(start: Address, to: Address, leave: HostLeave) -> None:
    """A host that the user was not asked about needs an answer of its own."""
    if leave.is_denied:
        raise NotFetched(ToolErrorType.PERMISSION, f"It leads to {to.url}, which a rule denies.")
    if to.host != start.host and not leave.may_follow:
        raise NotFetched(
            ToolErrorType.PERMISSION,
            f"It leads to another host: {to.url}. Call web_fetch with that address if it is the page you want.",
        )


async def _hop(address: Address, leave: HostLeave, progress: Callable[[Progress], None]) -> Page | Address:
    try:
        async with (
            open_client(address, may_be_private=leave.may_be_private) as client,
            client.stream("GET", address.url) as response,
        ):
            location = response.headers.get("location")
            if response.status_code in _FOLLOWED and location:
                return address.followed(location)
            body, is_cut = await bounded_body(response, progress)
    except PrivateAddress as error:
        rule = f"web_fetch({address.target})"
        message = f"{error}; that needs a rule of the user's own: allow {rule!r} in [policy]."
        raise NotFetched(ToolErrorType.PERMISSION, message) from error
    except BadAddress as error:
        raise NotFetched(ToolErrorType.EXECUTION, f"It leads nowhere: {error}.") from error
    except Unresolved as error:
        raise NotFetched(ToolErrorType.NOT_FOUND, f"{error}.") from error
    except (httpx.HTTPError, httpx.InvalidURL, ImportError, ValueError, zlib.error, OSError) as error:
        kind = ToolErrorType.TIMEOUT if isinstance(error, httpx.TimeoutException) else ToolErrorType.EXECUTION
        raise NotFetched(kind, f"{address.url} could not be fetched: {why_not(error)}.") from error
    kind, _, parameters = response.headers.get("content-type", "").partition(";")
    charset = parameters.partition("charset=")[2].partition(";")[0].strip().strip("'\"")
    return Page(address, response.status_code, kind.strip().casefold(), charset, body, is_cut)


def why_not(error: Exception) -> str:
    """What went wrong, in words; the library has none for silence."""
    if isinstance(error, httpx.TimeoutException):
        return f"nothing came for {SILENCE_S:g} seconds"
    return str(error) or type(error).__name__


async def bounded_body(
    response: httpx.Response, progress: Callable[[Progress], None] = lambda _: None
) -> tuple[bytes, bool]:
    """The unpacked bytes up to the limit, and whether more was cut off.

    Unpacked piece by piece: a few packed bytes may stand for gigabytes.
    """
    unpack = _unpacker(response.headers.get("content-encoding", ""))
    total = response.headers.get("content-length", "")
    body = bytearray()
    async for piece in response.aiter_raw():
        body += unpack(piece, MAX_BYTES + 1 - len(body))
        progress(BytesFetched(len(body), int(total) if total.isdecimal() else None))
        if len(body) > MAX_BYTES:
            return bytes(body[:MAX_BYTES]), True
    return bytes(body), False


def _unpacker(encoding: str) -> Callable[[bytes, int], bytes]:
    match encoding.strip().casefold():
        case "" | "identity":
            return lambda piece, room: piece[:room]
        case "gzip" | "x-gzip" | "deflate":
            # 47: gzip or zlib, whichever the header shows.
            unpacking = zlib.decompressobj(47)
            return unpacking.decompress
    raise ValueError(f"it is packed as {encoding[:40]!r}, which was not asked for")
