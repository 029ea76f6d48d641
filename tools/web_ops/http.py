"""Getting one page: hop by hop, each judged before it is asked, bounded in size, time and number.

A web address, parsed once: what is judged is what is asked, so that no two readings of it can differ.

Connections to what was judged: a name is resolved once, and the address found is the one connected to.

From a host to the addresses behind it, and whether those are of the public internet. Connects to nothing.
"""

import asyncio
import ipaddress
import re
import socket
import urllib.request
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import httpx

from tools.context import BytesFetched, HostPermission, Progress
from tools.result import ToolErrorType

__all__ = [
    "MAX_BYTES",
    "READ_TIMEOUT_S",
    "Address",
    "BadAddress",
    "FetchError",
    "HostNotFound",
    "Page",
    "PrivateAddress",
    "bounded_body",
    "describe_error",
    "fetch",
    "is_public",
    "open_client",
    "parse_address",
    "resolve",
]

_USUAL_PORTS = {"http": 80, "https": 443}
_MAX_CHARS = 8_000
_MAX_PORT = 65_535
_HOST = re.compile(rb"[a-z0-9_-]+(\.[a-z0-9_-]+)*|[0-9a-f:.]*:[0-9a-f:.]*")
"""A name or a number; anything else may be read differently by whoever reads it next."""


class BadAddress(ValueError):
    """The text is no address of a web page; the message says why."""


@dataclass(frozen=True)
class Address:
    """Where a page is."""

    url: httpx.URL

    @property
    def host(self) -> str:
        """The host alone: lower case, in the letters that go over the wire, without brackets."""
        return self.url.raw_host.decode("ascii").rstrip(".")

    @property
    def port(self) -> int:
        """The port, the usual one where none is written."""
        return self.url.port or _USUAL_PORTS[self.url.scheme]

    @property
    def target(self) -> str:
        """The host as rules name it: with its port where that is not the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _USUAL_PORTS[self.url.scheme] else f"{host}:{self.port}"

    def followed(self, location: str) -> "Address":
        """Where a redirection from here leads.

        Raises:
            BadAddress: to something that is no web page.
        """
        try:
            return parse_address(str(self.url.join(location)))
        except httpx.InvalidURL as error:
            raise BadAddress(f"{location[:200]!r} is no address: {error}") from error


def parse_address(text: str) -> Address:
    """Read an address that somebody wrote.

    Raises:
        BadAddress: it is none, or of another kind than http and https, or carries a password.
    """
    text = text.strip()
    if len(text) > _MAX_CHARS:
        raise BadAddress(f"it has {len(text)} characters; addresses up to {_MAX_CHARS} are fetched")
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise BadAddress(f"{text[:200]!r} is no address: {error}") from error
    if url.scheme not in _USUAL_PORTS:
        raise BadAddress(f"{text[:200]!r} does not begin with http:// or https://; only those are fetched")
    if _HOST.fullmatch(url.raw_host.strip(b".")) is None:
        raise BadAddress(f"{text[:200]!r} names no host")
    if (url.port or 1) > _MAX_PORT:
        raise BadAddress(f"there is no port {url.port}, the highest is {_MAX_PORT}")
    if url.userinfo:
        raise BadAddress("it carries a user name or password, which would end up in the history; leave them out")
    return Address(url.copy_with(fragment=None))


_NAT64 = ipaddress.ip_network("64:ff9b::/96")
"""RFC 6052: the last 32 bits are an IPv4 address."""


class HostNotFound(OSError):
    """The name leads nowhere."""


async def resolve(host: str, port: int) -> list[str]:
    """The IP addresses of a host in the system's order; numbers in every spelling that the system reads as one.

    Raises:
        Unresolved: there are none.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise HostNotFound(f"the name {host!r} could not be resolved ({error})") from error
    addresses = list(dict.fromkeys(str(place[0]) for *_, place in found))
    if not addresses:
        raise HostNotFound(f"the name {host!r} leads to no address")
    return addresses


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet, whatever it is wrapped in."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inner = _embedded(ip)
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


def _embedded(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if ip in _NAT64:
        return ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
    if ip.teredo is not None:
        return ip.teredo[1]
    return ip.ipv4_mapped or ip.sixtofour


READ_TIMEOUT_S = 20.0
"""How long a server may say nothing."""
_AGENT = "graph-agent (web_fetch)"
_ACCEPT = "text/html, text/markdown, text/plain, application/json;q=0.9, */*;q=0.5"


class PrivateAddress(OSError):
    """The host leads to an address that is not of the public internet."""


def open_client(address: Address, *, may_be_private: bool) -> httpx.AsyncClient:
    """A client for this one address, through the proxy that the environment names for it, if it names one.

    Raises:
        PrivateAddress, Unresolved: when it is used.
    """
    proxy = _proxy_for(address)
    transport = _JudgedTransport(may_be_private=may_be_private, proxy=proxy)
    headers = {"User-Agent": _AGENT, "Accept": _ACCEPT, "Accept-Encoding": "gzip, deflate"}
    return httpx.AsyncClient(transport=transport, headers=headers, timeout=READ_TIMEOUT_S, follow_redirects=False)


def _proxy_for(address: Address) -> str | None:
    proxies = urllib.request.getproxies_environment()
    if urllib.request.proxy_bypass(f"{address.host}:{address.port}"):
        return None
    return proxies.get(address.url.scheme) or proxies.get("all")


class _JudgedTransport(httpx.AsyncBaseTransport):
    def __init__(self, *, may_be_private: bool, proxy: str | None) -> None:
        self._may_be_private = may_be_private
        self._is_proxied = proxy is not None
        self._below = httpx.AsyncHTTPTransport(proxy=proxy)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        address = Address(request.url)
        if self._is_proxied:
            # The proxy resolves the name; what this machine knows of it is judged all the same.
            await self._judged_if_known(address)
            return await self._below.handle_async_request(request)
        return await self._first_that_answers(request, await self._judged(address))

    async def aclose(self) -> None:
        await self._below.aclose()

    async def _judged(self, address: Address) -> Sequence[str]:
        found = await resolve(address.host, address.port)
        private = next((ip for ip in found if not is_public(ip)), None)
        if private is not None and not self._may_be_private:
            raise PrivateAddress(
                f"{address.host} leads to {private}, which is not an address of the public internet"
            )
        return found

    async def _judged_if_known(self, address: Address) -> None:
        try:
            await self._judged(address)
        except HostNotFound:
            return

    async def _first_that_answers(self, request: httpx.Request, found: Sequence[str]) -> httpx.Response:
        host = Address(request.url).host
        request.extensions = {**request.extensions, "sni_hostname": host}
        original = request.url
        for last, ip in zip(_lasts(found), found, strict=True):
            # The Host header was written from the name, and certificates are checked against the name too.
            request.url = original.copy_with(host=ip)
            try:
                return await self._below.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if last:
                    raise
            finally:
                request.url = original
        raise httpx.ConnectError(f"{host} has no address")


def _lasts(found: Sequence[str]) -> Sequence[bool]:
    return [position == len(found) - 1 for position in range(len(found))]


MAX_BYTES = 2 * 1024 * 1024
"""Of a page after it was unpacked; what comes later is cut off, and the result says so."""

_MAX_HOPS = 10
_SECONDS = 60.0
_FOLLOWED = frozenset((301, 302, 303, 307, 308))


class FetchError(Exception):
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


async def fetch(
    address: Address, leave: Callable[[str], HostPermission], progress: Callable[[Progress], None]
) -> Page:
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
        raise FetchError(ToolErrorType.TIMEOUT, f"{address.url} did not answer in {_SECONDS:g} seconds.") from error
    raise FetchError(
        ToolErrorType.EXECUTION, f"{start.url} was redirected {_MAX_HOPS} times and is still not there."
    )


def _require_followed(start: Address, to: Address, leave: HostPermission) -> None:
    """A host that the user was not asked about needs an answer of its own."""
    if leave.is_denied:
        raise FetchError(ToolErrorType.PERMISSION, f"It leads to {to.url}, which a rule denies.")
    if to.host != start.host and not leave.may_follow:
        raise FetchError(
            ToolErrorType.PERMISSION,
            f"It leads to another host: {to.url}. Call web_fetch with that address if it is the page you want.",
        )


async def _hop(address: Address, leave: HostPermission, progress: Callable[[Progress], None]) -> Page | Address:
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
        raise FetchError(ToolErrorType.PERMISSION, message) from error
    except BadAddress as error:
        raise FetchError(ToolErrorType.EXECUTION, f"It leads nowhere: {error}.") from error
    except HostNotFound as error:
        raise FetchError(ToolErrorType.NOT_FOUND, f"{error}.") from error
    except (httpx.HTTPError, httpx.InvalidURL, ImportError, ValueError, zlib.error, OSError) as error:
        kind = ToolErrorType.TIMEOUT if isinstance(error, httpx.TimeoutException) else ToolErrorType.EXECUTION
        raise FetchError(kind, f"{address.url} could not be fetched: {describe_error(error)}.") from error
    kind, _, parameters = response.headers.get("content-type", "").partition(";")
    charset = parameters.partition("charset=")[2].partition(";")[0].strip().strip("'\"")
    return Page(address, response.status_code, kind.strip().casefold(), charset, body, is_cut)


def describe_error(error: Exception) -> str:
    """What went wrong, in words; the library has none for silence."""
    if isinstance(error, httpx.TimeoutException):
        return f"nothing came for {READ_TIMEOUT_S:g} seconds"
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
