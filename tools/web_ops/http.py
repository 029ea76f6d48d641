"""Fetching one page over HTTP: each redirect is checked before it is followed; size, time and number are limited.

An address is parsed once, so that what is checked is what is requested. A host is resolved once, and the connection
goes to an address that was checked.
"""

import asyncio
import ipaddress
import re
import socket
import zlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import httpx

from tools.base import BytesFetched, HostPermission, Progress
from tools.proxies import proxy_for
from tools.result import ToolErrorType

__all__ = [
    "MAX_BYTES",
    "READ_TIMEOUT_S",
    "Address",
    "BadAddress",
    "DeniedAddress",
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

_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_CHARS = 8_000
_MAX_PORT = 65_535
_HOST = re.compile(rb"[a-z0-9_-]+(\.[a-z0-9_-]+)*|[0-9a-f:.]*:[0-9a-f:.]*")
"""A name or a number; anything else might be read differently by another parser."""


class BadAddress(ValueError):
    """The text is not the address of a web page; the message says why."""


@dataclass(frozen=True)
class Address:
    """The address of a page."""

    url: httpx.URL

    @property
    def host(self) -> str:
        """The host in lower case, as it is sent, without brackets."""
        return self.url.raw_host.decode("ascii").rstrip(".")

    @property
    def port(self) -> int:
        """The port, or the default one."""
        return self.url.port or _DEFAULT_PORTS[self.url.scheme]

    @property
    def target(self) -> str:
        """The host as rules name it: with its port if that is not the default one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _DEFAULT_PORTS[self.url.scheme] else f"{host}:{self.port}"

    def redirect(self, location: str) -> "Address":
        """The target of a redirect.

        Raises:
            BadAddress: it is not a web page.
        """
        try:
            return parse_address(str(self.url.join(location)))
        except httpx.InvalidURL as error:
            raise BadAddress(f"{location[:200]!r} is not an address: {error}") from error


def parse_address(text: str) -> Address:
    """Parse an address.

    Raises:
        BadAddress: it is not one, is neither http nor https, or contains a password.
    """
    text = text.strip()
    if len(text) > _MAX_CHARS:
        raise BadAddress(f"it has {len(text)} characters; at most {_MAX_CHARS} are allowed")
    try:
        url = httpx.URL(text)
    except (httpx.InvalidURL, UnicodeError) as error:
        raise BadAddress(f"{text[:200]!r} is not an address: {error}") from error
    if url.scheme not in _DEFAULT_PORTS:
        raise BadAddress(f"{text[:200]!r} does not begin with http:// or https://; only those are fetched")
    if _HOST.fullmatch(url.raw_host.strip(b".")) is None:
        raise BadAddress(f"{text[:200]!r} names no host")
    if (url.port or 1) > _MAX_PORT:
        raise BadAddress(f"port {url.port} does not exist, the highest is {_MAX_PORT}")
    if url.userinfo:
        raise BadAddress(
            "it contains a user name or password, which would be stored in the history; leave them out"
        )
    return Address(url.copy_with(fragment=None))


_NAT64 = ipaddress.ip_network("64:ff9b::/96")
"""RFC 6052: the last 32 bits are an IPv4 address."""
_ALSO_PRIVATE = tuple(map(ipaddress.ip_network, ("fec0::/10", "3fff::/20", "168.63.129.16/32")))
"""What `ipaddress` takes for public: site-local addresses (RFC 3879), documentation (RFC 9637), and a service that
Azure offers to virtual machines."""
_ISATAP = re.compile(r"00005efe|02005efe")
"""How the interface part of an address begins that tunnels to an IPv4 address in the site (RFC 5214)."""


class HostNotFound(OSError):
    """The host name has no address."""


async def resolve(host: str, port: int) -> list[str]:
    """The IP addresses of a host in the system's order, which also reads unusual spellings of numbers.

    Raises:
        HostNotFound: there are none.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise HostNotFound(f"the name {host!r} could not be resolved ({error})") from error
    addresses = list(dict.fromkeys(str(place[0]) for *_, place in found))
    if not addresses:
        raise HostNotFound(f"the name {host!r} has no address")
    return addresses


def is_public(address: str) -> bool:
    """Whether an IP address is public, even if it is embedded in another one."""
    try:
        ip = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    if any(ip.version == network.version and ip in network for network in _ALSO_PRIVATE):
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        if _ISATAP.fullmatch(f"{int(ip) >> 32 & 0xFFFF_FFFF:08x}"):
            return False
        inner = ip.ipv4_mapped or ip.sixtofour
        if ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFF_FFFF)
        elif ip.teredo is not None:
            inner = ip.teredo[1]
        if inner is not None:
            return is_public(str(inner))
    return ip.is_global and not ip.is_multicast and not ip.is_reserved


READ_TIMEOUT_S = 20.0
"""How long a server may send nothing."""
_AGENT = "graph-agent (web_fetch)"
_ACCEPT = "text/html, text/markdown, text/plain, application/json;q=0.9, */*;q=0.5"


class PrivateAddress(OSError):
    """The host has an address that is not public."""


class DeniedAddress(OSError):
    """The host has an address that a rule denies."""


def open_client(
    address: Address, *, may_be_private: bool, is_closed: Callable[[str], bool] = lambda _: False
) -> httpx.AsyncClient:
    """A client for this address, through the proxy that the environment names for it, if any.

    Args:
        address: what will be requested.
        may_be_private: whether the host may have addresses that are not public.
        is_closed: whether a rule denies an IP address, given as rules name hosts.

    Raises:
        ProxyUnusable: the environment names a proxy that cannot be used.
        PrivateAddress, DeniedAddress, HostNotFound: when it is used.
    """
    proxy = proxy_for(str(address.url))
    transport = _CheckedTransport(may_be_private=may_be_private, is_closed=is_closed, proxy=proxy)
    headers = {"User-Agent": _AGENT, "Accept": _ACCEPT, "Accept-Encoding": "gzip, deflate"}
    return httpx.AsyncClient(transport=transport, headers=headers, timeout=READ_TIMEOUT_S, follow_redirects=False)


class _CheckedTransport(httpx.AsyncBaseTransport):
    def __init__(self, *, may_be_private: bool, is_closed: Callable[[str], bool], proxy: str | None) -> None:
        self._may_be_private = may_be_private
        self._is_closed = is_closed
        self._is_proxied = proxy is not None
        self._inner = httpx.AsyncHTTPTransport(proxy=proxy)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        address = Address(request.url)
        if self._is_proxied:
            # The proxy resolves the name; if this machine can resolve it too, the address is checked all the same.
            with suppress(HostNotFound):
                await self._checked_addresses(address)
            return await self._inner.handle_async_request(request)
        found = await self._checked_addresses(address)
        request.extensions = {**request.extensions, "sni_hostname": address.host}
        for position, ip in enumerate(found, 1):
            # The Host header was made from the name, and certificates are checked against the name too.
            request.url = address.url.copy_with(host=ip)
            try:
                return await self._inner.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                if position == len(found):
                    raise
            finally:
                request.url = address.url
        raise httpx.ConnectError(f"{address.host} has no address")

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def _checked_addresses(self, address: Address) -> Sequence[str]:
        found = await resolve(address.host, address.port)
        closed = next((ip for ip in found if self._is_closed(Address(address.url.copy_with(host=ip)).target)), None)
        if closed is not None:
            raise DeniedAddress(f"{address.host} has the address {closed}, which a rule denies")
        private = next((ip for ip in found if not is_public(ip)), None)
        if private is not None and not self._may_be_private:
            raise PrivateAddress(f"{address.host} has the address {private}, which is not public")
        return found


MAX_BYTES = 2 * 1024 * 1024
"""Of a page after decompression; the rest is cut off, and the result says so."""

_MAX_HOPS = 10
_SECONDS = 60.0
_REDIRECTS = frozenset((301, 302, 303, 307, 308))


class FetchError(Exception):
    """The page could not be fetched; the message tells the model why and what to do."""

    def __init__(self, kind: ToolErrorType, message: str) -> None:
        super().__init__(message)
        self.kind = kind


@dataclass(frozen=True)
class Page:
    """The response of a server."""

    address: Address
    """The address after redirects."""
    status: int
    content_type: str
    charset: str
    """As the server named it; empty if it did not."""
    body: bytes
    is_cut: bool


async def fetch(
    address: Address, permission_of: Callable[[str], HostPermission], progress: Callable[[Progress], None]
) -> Page:
    """Fetch the page.

    Raises:
        FetchError: it is not allowed or not reachable, or has too many redirects.
    """
    start = address
    try:
        async with asyncio.timeout(_SECONDS):
            for _ in range(_MAX_HOPS):
                answer = await _request_once(address, permission_of, progress)
                if isinstance(answer, Page):
                    return answer
                address = _checked_redirect(start, answer, permission_of(answer.target))
    except TimeoutError as error:
        raise FetchError(ToolErrorType.TIMEOUT, f"{address.url} did not answer in {_SECONDS:g} seconds.") from error
    raise FetchError(
        ToolErrorType.EXECUTION, f"{start.url} was redirected {_MAX_HOPS} times without reaching a page."
    )


def _checked_redirect(start: Address, to: Address, permission: HostPermission) -> Address:
    if permission.is_denied:
        raise FetchError(ToolErrorType.PERMISSION, f"It redirects to {to.url}, which a rule denies.")
    if to.host != start.host and not permission.may_follow:
        raise FetchError(
            ToolErrorType.PERMISSION,
            f"It redirects to another host: {to.url}. Call web_fetch with that address if it is the page you want.",
        )
    return to


async def _request_once(
    address: Address, permission_of: Callable[[str], HostPermission], progress: Callable[[Progress], None]
) -> Page | Address:
    may_be_private = permission_of(address.target).may_be_private
    try:
        async with (
            open_client(
                address, may_be_private=may_be_private, is_closed=lambda host: permission_of(host).is_closed
            ) as client,
            client.stream("GET", address.url) as response,
        ):
            location = response.headers.get("location")
            if response.status_code in _REDIRECTS and location:
                return address.redirect(location)
            body, is_cut = await bounded_body(response, progress)
    except DeniedAddress as error:
        raise FetchError(ToolErrorType.PERMISSION, f"{error}. Nothing was sent.") from error
    except PrivateAddress as error:
        rule = f"web_fetch({address.target})"
        message = f"{error}; this needs a rule by the user: allow {rule!r} in [policy]."
        raise FetchError(ToolErrorType.PERMISSION, message) from error
    except BadAddress as error:
        raise FetchError(ToolErrorType.EXECUTION, f"Its redirect is invalid: {error}.") from error
    except HostNotFound as error:
        raise FetchError(ToolErrorType.NOT_FOUND, f"{error}.") from error
    except (httpx.HTTPError, httpx.InvalidURL, ImportError, ValueError, zlib.error, OSError) as error:
        kind = ToolErrorType.TIMEOUT if isinstance(error, httpx.TimeoutException) else ToolErrorType.EXECUTION
        raise FetchError(kind, f"{address.url} could not be fetched: {describe_error(error)}.") from error
    kind, _, parameters = response.headers.get("content-type", "").partition(";")
    charset = parameters.partition("charset=")[2].partition(";")[0].strip().strip("'\"")
    return Page(address, response.status_code, kind.strip().casefold(), charset, body, is_cut)


def describe_error(error: Exception) -> str:
    """The error in words; httpx has none for timeouts."""
    if isinstance(error, httpx.TimeoutException):
        return f"no data for {READ_TIMEOUT_S:g} seconds"
    return str(error).rstrip(".") or type(error).__name__


async def bounded_body(
    response: httpx.Response, progress: Callable[[Progress], None] = lambda _: None
) -> tuple[bytes, bool]:
    """The decompressed bytes up to the limit, and whether more was cut off.

    Decompressed piece by piece: a few bytes may expand to gigabytes.
    """
    encoding = response.headers.get("content-encoding", "").strip().casefold()
    if encoding not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise ValueError(f"it is compressed as {encoding[:40]!r}, which was not requested")
    # 47: gzip or zlib, whichever the header shows.
    decompressor = None if encoding in ("", "identity") else zlib.decompressobj(47)
    total = response.headers.get("content-length", "")
    body = bytearray()
    async for piece in response.aiter_raw():
        room = MAX_BYTES + 1 - len(body)
        body += decompressor.decompress(piece, room) if decompressor else piece[:room]
        progress(BytesFetched(len(body), int(total) if total.isdecimal() else None))
        if len(body) > MAX_BYTES:
            return bytes(body[:MAX_BYTES]), True
    return bytes(body), False
