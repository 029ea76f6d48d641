"""What went wrong with one request, in one line for the user, and whether asking again can help.

Knows the client library's exceptions; no line ever holds a key.
"""

import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import openai

from graph_agent.config.model_choice import display_url
from graph_agent.errors import ModelError

__all__ = [
    "PASSING",
    "BrokenReply",
    "EmptyReply",
    "Failure",
    "FailureKind",
    "NotAnApi",
    "Place",
    "ReplyFailed",
    "ServerSaid",
    "SilentReply",
    "Unavailable",
    "diagnose",
    "retry_after",
]


class ReplyFailed(Exception):
    """Base of what this layer itself finds wrong with an answer; never leaves the layer."""


class BrokenReply(ReplyFailed):
    """The answer ended before it was whole, or cannot be read."""


class SilentReply(BrokenReply):
    """Nothing of the answer came for too long, though the connection stands; says for how long."""


class EmptyReply(ReplyFailed):
    """The answer is whole and holds neither text nor calls."""


class NotAnApi(ReplyFailed):
    """Something answered that does not speak this protocol."""


class ServerSaid(ReplyFailed):
    """An error object within an answer that began well."""

    def __init__(self, body: Any) -> None:
        super().__init__(str(body))
        self.body = body


class Unavailable(ModelError):
    """This model could not answer, however often it was asked; another one might."""


FailureKind = Literal["final", "too_long", "busy", "broken", "unreachable", "empty"]

PASSING = frozenset(("busy", "broken", "unreachable", "empty"))
"""What may be otherwise a little later, or elsewhere."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One request that failed."""

    kind: FailureKind
    """final, too_long: asking the same again cannot help."""
    line: str
    """What happened and what to do, in one line."""
    status: int | None = None
    said: str = ""
    """The server's own words, in lower case, for recognising what it cannot do."""
    retry_after_s: float | None = None
    """How long the server wants us to wait."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where requests go, as the user may see it."""

    url: str
    model: str
    has_key: bool
    secrets: Sequence[str] = ()
    """What must be cut out of every line."""


_SK = re.compile(r"\bsk-[^\s\"',;]+")
_MAX_SAID = 300
_PAGE = re.compile(r"<(?:!doctype|html|head|body)\b", re.IGNORECASE)
_TAGS = re.compile(r"<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_CONTEXT = re.compile(
    r"context_length_exceeded|context[ _](?:window|length|size|limit)|(?:prompt|input) is too long|too many tokens"
    r"|maximum (?:number of )?(?:input )?tokens|reduce the length of the messages|context the overflows"
    r"|`inputs` (?:tokens \+ `max_new_tokens` must be|must have less than)"
)
"""How providers say that a request is longer than the model takes; in the middle of a stream there is no status."""
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing|insufficient (?:balance|credits)")
_BAD_KEY = re.compile(r"api[ _]key (?:is )?(?:not valid|invalid|expired)|(?:invalid|incorrect)[ _]api[ _]key")
"""How providers refuse a key with another status than the one there is for it."""
_WAIT_AND_RETRY = frozenset((408, 409, 425, 429))
_NOT_IMPLEMENTED = 501
_TOO_LARGE = 413
_STATUS = re.compile(r"[1-9][0-9]{2}")
_STATUS_OF_CODE = {
    "authentication_error": 401,
    "insufficient_quota": 429,
    "invalid_api_key": 401,
    "invalid_request_error": 400,
    "model_not_found": 404,
    "not_found_error": 404,
    "permission_error": 403,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
}
"""What a code means that comes without a status, in the middle of a stream."""


def diagnose(error: openai.APIError | ReplyFailed, place: Place) -> Failure:
    """The failure behind an exception."""
    match error:
        case openai.APIStatusError():
            said = _said(error.body if error.body is not None else error.message)
            return _refused(error.status_code, said, place, error.response.headers)
        case openai.APITimeoutError():
            return Failure("busy", f"{place.url} did not answer in time.")
        case openai.APIConnectionError():
            return _no_connection(error, place)
        case _:
            return _unusable(error, place)


def _unusable(error: openai.APIError | ReplyFailed, place: Place) -> Failure:
    match error:
        case ServerSaid(body=body):
            return _refused(_status_in(body), _said(body), place, {})
        case SilentReply():
            hint = "at most signs of life; timeout_s under [model] allows longer"
            return Failure("busy", f"{place.url} sent no part of a reply for {error}, {hint}.")
        case EmptyReply():
            return Failure("empty", f"The model gave an empty reply ({error}).")
        case NotAnApi():
            hint = "check GRAPH_AGENT_BASE_URL, which usually ends in /v1"
            return Failure("final", f"{place.url} does not speak the OpenAI protocol ({error}): {hint}.")
        case _:
            return Failure("broken", f"The reply of {place.url} broke off ({_clean(str(error), place)}).")


def _refused(status: int, said: str, place: Place, headers: Mapping[str, str]) -> Failure:
    shown = f"{status}: {_clean(said, place)}" if said else str(status)
    lower = said.lower()
    kind: FailureKind = "final"
    wait = None
    if status == _TOO_LARGE or (status != 429 and _CONTEXT.search(lower)):
        kind = "too_long"
        line = (
            f"The conversation is too long for {place.model} ({shown}): start a new thread or use a larger model."
        )
    elif status == 402 or (status in (403, 429) and _QUOTA.search(lower)):
        line = f"The account at {place.url} has no quota left ({shown}): check it, or set another OPENAI_API_KEY."
    elif status in _WAIT_AND_RETRY or (status >= 500 and status != _NOT_IMPLEMENTED):
        kind, wait = "busy", retry_after(headers)
        line = f"{place.url} cannot serve the request now ({shown})."
    else:
        line = _final_line(status, shown, place)
    return Failure(kind, line, status, lower, wait)


def _final_line(status: int, shown: str, place: Place) -> str:
    match status:
        case 401 if not place.has_key:
            return f"{place.url} wants a key ({shown}): set OPENAI_API_KEY."
        case _ if status == 401 or _BAD_KEY.search(shown.lower()):
            return f"{place.url} refused the key ({shown}): check OPENAI_API_KEY and GRAPH_AGENT_BASE_URL."
        case 403:
            hint = "check OPENAI_API_KEY and GRAPH_AGENT_MODEL"
            return f"{place.url} refused access to {place.model!r} ({shown}): {hint}."
        case 404:
            hint = "check GRAPH_AGENT_MODEL, and GRAPH_AGENT_BASE_URL, which usually ends in /v1"
            return f"{place.url} does not know the model {place.model!r} or has no such path ({shown}): {hint}."
        case _:
            return f"{place.url} refused the request ({shown})."


def _no_connection(error: openai.APIConnectionError, place: Place) -> Failure:
    causes = list(_chain(error))
    words = "; ".join(dict.fromkeys(str(cause) for cause in causes[1:] if str(cause))) or str(error)
    shown = _clean(words, place)
    if "CERTIFICATE_VERIFY_FAILED" in words:
        hint = "name the right certificates with SSL_CERT_FILE, or with ca_file under [model]"
        return Failure("final", f"The certificate of {place.url} is not trusted ({shown}): {hint}.")
    if any(type(cause).__name__ == "TooManyRedirects" for cause in causes):
        return Failure("final", f"{place.url} sends requests round in a circle: check GRAPH_AGENT_BASE_URL.")
    if any(type(cause).__name__ == "UnsupportedProtocol" for cause in causes):
        return Failure("final", f"{place.url} sends requests elsewhere ({shown}): check GRAPH_AGENT_BASE_URL.")
    if any(type(cause).__name__ == "ConnectError" or isinstance(cause, socket.gaierror) for cause in causes):
        hint = "is the server running, and is GRAPH_AGENT_BASE_URL right?"
        return Failure("unreachable", f"Cannot connect to {place.url} ({shown}){_proxy_for(place.url)}: {hint}")
    return Failure("broken", f"The connection to {place.url} broke off ({shown}).")


def _proxy_for(url: str) -> str:
    """Which proxy is in between, as the HTTP library takes it from the environment."""
    parts, proxies = urlsplit(url), getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or not parts.hostname or proxy_bypass(parts.hostname):
        return ""
    return f" through the proxy {display_url(proxy)}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _said(body: Any) -> str:
    if isinstance(body, list) and len(body) == 1:
        return _said(body[0])
    inner = (body.get("error") or body) if isinstance(body, Mapping) else body
    if not isinstance(inner, Mapping):
        return str(inner)
    told = inner.get("message") or inner.get("detail") or ""
    parts = [_in_words(told), str(inner.get("code") or inner.get("type") or "")]
    return " ".join(f"[{part}]" if number and parts[0] else part for number, part in enumerate(parts) if part)


def _in_words(told: Any) -> str:
    """A message; the list that a validating server sends as one says of each field what is wrong with it."""
    if not isinstance(told, list):
        return str(told)
    entries = [entry for entry in told if isinstance(entry, Mapping)]
    places = [".".join(map(str, entry.get("loc") or ())) for entry in entries]
    return "; ".join(f"{place}: {entry.get('msg')}" for place, entry in zip(places, entries, strict=True))


def _status_in(body: Any) -> int:
    told = [body.get(name) for name in ("code", "status", "type")] if isinstance(body, Mapping) else []
    for value in told:
        number = int(value) if isinstance(value, int | str) and _STATUS.fullmatch(str(value)) else None
        status = number if number is not None else _STATUS_OF_CODE.get(str(value))
        if status is not None and 400 <= status < 600:
            return status
    return 500


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks us to wait, given as a number or as a date; None where it does not say."""
    value = headers.get("retry-after", "")
    with suppress(ValueError):
        return max(0.0, float(headers.get("retry-after-ms", "")) / 1000)
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _clean(text: str, place: Place) -> str:
    for secret in place.secrets:
        text = text.replace(secret, "…")
    if _PAGE.search(text):
        text = _TAGS.sub(" ", text)
    line = " ".join(_SK.sub("sk-…", text).split())
    line = "".join(char if char.isprintable() else "?" for char in line)
    return line if len(line) <= _MAX_SAID else line[:_MAX_SAID] + "…"
