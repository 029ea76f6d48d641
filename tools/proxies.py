"""Which proxy of the environment an address is requested through: one answer for models, servers, and pages.

HTTP libraries set up every proxy that the environment names, also those that NO_PROXY keeps away from the address,
and fail if one of them cannot be used.
"""

import ipaddress
import re
from importlib.util import find_spec
from urllib.parse import urlsplit
from urllib.request import getproxies

__all__ = ["ProxyUnusable", "proxy_for"]

_PORTS = {"http": 80, "https": 443}
_SOCKS = ("socks5", "socks5h")


class ProxyUnusable(ValueError):
    """The environment names a proxy for this address that cannot be used; the message says why and what to do."""


def proxy_for(url: str) -> str | None:
    """The address of the proxy for a URL; None where it is requested directly.

    NO_PROXY holds hosts with all their subdomains, IP addresses, networks such as `10.0.0.0/8`, each with a port or
    without, or `*`, separated by commas or blanks.

    Raises:
        ProxyUnusable: the proxy that applies is of a kind that is not supported, or has no address.
    """
    parts = urlsplit(url)
    proxies = {name.lower(): value for name, value in getproxies().items()}
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or not parts.hostname or _is_excepted(parts.hostname, _port(url), proxies.get("no", "")):
        return None
    address = proxy if "://" in proxy else f"http://{proxy}"
    scheme = urlsplit(address).scheme.lower()
    if scheme in _SOCKS and find_spec("socksio") is None:
        raise ProxyUnusable(
            "The proxy in ALL_PROXY, HTTPS_PROXY or HTTP_PROXY is a SOCKS proxy, which needs another package: "
            'pip install "graph-agent[socks]". Or set an http:// proxy, or name the host in NO_PROXY.'
        )
    if scheme not in (*_PORTS, *_SOCKS) or not urlsplit(address).hostname:
        raise ProxyUnusable(
            f"The proxy in ALL_PROXY, HTTPS_PROXY or HTTP_PROXY cannot be used: its address begins with {scheme}://."
            " Set an http://, https:// or socks5:// one, or name the host in NO_PROXY."
        )
    return address


def _port(url: str) -> int | None:
    parts = urlsplit(url)
    try:
        return parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None


def _is_excepted(host: str, port: int | None, exceptions: str) -> bool:
    host = host.rstrip(".").lower()
    return any(_matches(entry, host, port) for entry in re.split(r"[\s,]+", exceptions.lower()) if entry)


def _matches(entry: str, host: str, port: int | None) -> bool:
    entry = entry.partition("://")[2] or entry
    if entry == "*":
        return True
    if "/" in entry:
        return _is_in_network(host, entry)
    bracketed = re.fullmatch(r"\[([^]]*)\](?::(\d+))?", entry)
    if bracketed:
        name, wanted = bracketed.groups()
    elif entry.count(":") == 1:
        name, wanted = entry.split(":")
    else:
        name, wanted = entry, None
    if wanted and wanted != str(port):
        return False
    name = name.removeprefix("*").strip(".")
    return bool(name) and (host == name or host.endswith(f".{name}") or _is_in_network(host, name))


def _is_in_network(host: str, network: str) -> bool:
    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(network.strip("[]"), strict=False)
    except ValueError:
        return False
