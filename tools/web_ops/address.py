"""A web address, parsed once: what is judged is what is asked, so that no two readings of it can differ."""

import re
from dataclasses import dataclass

import httpx

__all__ = ["Address", "BadAddress", "parse_address"]

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
