"""Connections to what was judged: a name is resolved once, and the address found is the one connected to."""

import urllib.request
from collections.abc import Sequence

import httpx

from tools.web_ops.address import Address
from tools.web_ops.resolving import Unresolved, is_public, resolve

__all__ = ["SILENCE_S", "PrivateAddress", "open_client"]

SILENCE_S = 20.0
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
    return httpx.AsyncClient(transport=transport, headers=headers, timeout=SILENCE_S, follow_redirects=False)


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
        except Unresolved:
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
