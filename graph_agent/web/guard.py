"""Who may use the pages: checks every request before a page sees it, and sets the headers of every response.

A random token in the first address becomes a cookie that no other site can send along. The Host header keeps out
names that were pointed at this machine, Origin and a token in each form keep out forms of other pages, and the
content security policy lets a page run only our own files.
"""

import hashlib
import hmac
import ipaddress
import secrets
import socket
from collections.abc import Iterable
from urllib.parse import parse_qs, quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Access", "Guard", "is_loopback", "same_secret"]

_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    # Not no-referrer: with it browsers send Origin: null along with our own forms.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
_METHODS = ("GET", "HEAD", "POST")
_PUBLIC = "/static/"
"""Style sheet and scripts hold no data; without them the refusals could not be shown as pages."""


class Access:
    """The secrets of one server process, and the names it may be reached by.

    Args:
        bound: the address it listens at.
        names: further host names, such as that of a proxy.
    """

    def __init__(self, bound: str, names: Iterable[str] = (), *, port: int = 0) -> None:
        self._key = secrets.token_bytes(32)
        self.token = self._derived("address")
        self.cookie = self._derived("cookie")
        self.csrf = self._derived("form")
        self.cookie_name = f"graph_agent_{port}"
        """Cookies are shared by all ports of a host: two servers must not sign each other out."""
        self._is_remote = not is_loopback(bound)
        local = ("localhost", "127.0.0.1", "::1", bound.casefold())
        own = (socket.gethostname().casefold(),) if self._is_remote else ()
        self._names = frozenset((*local, *own, *(name.casefold() for name in names)))

    def _derived(self, purpose: str) -> str:
        return hmac.new(self._key, purpose.encode(), hashlib.sha256).hexdigest()[:43]

    def is_known_host(self, host: str) -> bool:
        """Whether a Host header names this server, at any port: a tunnel may use another one.

        A name that somebody pointed at this address is refused. An address itself cannot be pointed anywhere, so
        where the server listens to the network, any is accepted.
        """
        try:
            name = urlsplit(f"//{host}").hostname or ""
            _ = urlsplit(f"//{host}").port
        except ValueError:
            return False
        if not host or "@" in host or "/" in host:
            return False
        if name.casefold() in self._names:
            return True
        return self._is_remote and _is_address(name)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches the address."""
    if host == "localhost":
        return True
    return _is_address(host) and ipaddress.ip_address(host).is_loopback


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def same_secret(given: str, expected: str) -> bool:
    """Whether they are equal, in a time that says nothing about where they differ."""
    return hmac.compare_digest(given.encode(errors="replace"), expected.encode())


class Guard:
    """ASGI middleware around all pages."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a refused request here, pass on every other one."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)  # Start and end of the server; there are no web sockets.
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers) or self._entrance(scope, headers)
        await (refusal or self._app)(scope, receive, send_with_headers)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        """Why nobody at all may send such a request; None if they may."""
        host = headers.getlist("host")
        if len(host) != 1 or not self._access.is_known_host(host[0]):
            return _refused(
                421,
                "This server does not answer to that name. Open the address that graph-agent web printed, or start "
                "it with --allow-host NAME.",
            )
        if scope["method"] not in _METHODS:
            return _refused(405, "Only GET and POST are understood.", allow=", ".join(_METHODS))
        if scope["method"] == "POST" and not self._is_own_form(headers, host[0]):
            return _refused(403, "This form was sent by a page of another site. Nothing was changed.")
        if scope["method"] != "POST" and self._is_embedded(headers):
            return _refused(403, "Pages of other sites may link to this one, but not read or embed it.")
        return None

    @staticmethod
    def _is_own_form(headers: Headers, host: str) -> bool:
        """Whether a form comes from one of our pages: browsers name the page's origin with every form."""
        origins = headers.getlist("origin")
        try:
            return len(origins) == 1 and urlsplit(origins[0]).netloc.casefold() == host.casefold() != ""
        except ValueError:
            return False

    @staticmethod
    def _is_embedded(headers: Headers) -> bool:
        """Whether another site's page, not the person, asks: browsers say so."""
        is_foreign = headers.get("sec-fetch-site", "none") in ("cross-site", "same-site")
        return is_foreign and headers.get("sec-fetch-mode") != "navigate"

    def _entrance(self, scope: Scope, headers: Headers) -> Response | None:
        """Exchange the token of the first address for the cookie; None for a browser that has the cookie."""
        access, path = self._access, scope["path"]
        if path.startswith(_PUBLIC):
            return None
        query = scope["query_string"].decode("latin-1")
        given = parse_qs(query, max_num_fields=20).get("token") if query.count("&") < 20 else None
        if given is not None and scope["method"] == "GET":
            if not same_secret(given[0], access.token):
                return _refused(403, _EXPIRED)
            response = RedirectResponse(f"/{quote(path.lstrip('/'))}", 303)  # Two slashes would name a host.
            response.set_cookie(access.cookie_name, access.cookie, httponly=True, samesite="strict", path="/")
            return response
        cookies = cookie_parser("; ".join(headers.getlist("cookie")))
        if same_secret(cookies.get(access.cookie_name, ""), access.cookie):
            return None
        return _refused(403, _EXPIRED)


_EXPIRED = (
    "This browser is not signed in, or the server has been restarted since. Open the address that graph-agent "
    "web printed last."
)


def _refused(status: int, text: str, **headers: str) -> Response:
    return PlainTextResponse(f"{text}\n", status, headers)
