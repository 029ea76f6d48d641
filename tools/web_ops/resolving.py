"""From a host to the addresses behind it, and whether those are of the public internet. Connects to nothing."""

import asyncio
import ipaddress
import socket

__all__ = ["Unresolved", "is_public", "resolve"]

_NAT64 = ipaddress.ip_network("64:ff9b::/96")
"""RFC 6052: the last 32 bits are an IPv4 address."""


class Unresolved(OSError):
    """The name leads nowhere."""


async def resolve(host: str, port: int) -> list[str]:
    """The IP addresses of a host in the system's order; numbers in every spelling that the system reads as one.

    Raises:
        Unresolved: there are none.
    """
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise Unresolved(f"the name {host!r} could not be resolved ({error})") from error
    addresses = list(dict.fromkeys(str(place[0]) for *_, place in found))
    if not addresses:
        raise Unresolved(f"the name {host!r} leads to no address")
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
