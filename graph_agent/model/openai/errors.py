"""Classifies what went wrong with a request: one line for the user without keys, and whether a retry can help."""

import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Literal

import openai

from graph_agent.config.model_choice import display_url
from graph_agent.errors import ModelError
from tools.proxies import ProxyUnusable, proxy_for

__all__ = [
    "CONTENT_FILTER",
    "TRANSIENT",
    "BrokenReply",
    "EmptyReply",
    "Failure",
    "FailureKind",
    "ModelUnavailable",
    "NoMessage",
    "ReplyError",
    "ServerError",
    "StalledReply",
    "Target",
    "UnknownProtocol",
    "classify_error",
    "parse_retry_after",
]


class ReplyError(Exception):
    """Base of the faults that this package finds in a reply; never leaves the package."""


class BrokenReply(ReplyError):
    """The reply ended before it was complete, or cannot be read."""


class StalledReply(BrokenReply):
    """No part of the reply came for too long, though the connection is open; the message says how long."""


class EmptyReply(ReplyError):
    """The reply is complete and has neither text nor calls."""


class NoMessage(EmptyReply):
    """The response is complete and holds no message at all."""


class UnknownProtocol(ReplyError):
    """Something answered that does not speak the OpenAI protocol."""


class ServerError(ReplyError):
    """An error object within a reply that began well."""

    def __init__(self, body: Any) -> None:
        super().__init__(str(body))
        self.body = body


class ModelUnavailable(ModelError):
    """This model could not answer, after all retries; another one might."""


FailureKind = Literal["final", "too_long", "busy", "broken", "unreachable", "empty"]

TRANSIENT = frozenset(("busy", "broken", "unreachable", "empty"))
"""Kinds that may succeed a little later, or at another model."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One request that failed."""

    kind: FailureKind
    """final, too_long: the same request cannot succeed."""
    message: str
    """What happened and what to do, in one line."""
    status: int | None = None
    server_message: str = ""
    """The server's own words, in lower case, for recognising what it does not support."""
    retry_after_s: float | None = None
    """How long the server asks us to wait."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go, as the user may see it."""

    url: str
    model: str
    has_key: bool
    secrets: Sequence[str] = ()
    """Texts to remove from every message."""
    set_by: Mapping[str, str] = field(default_factory=dict)
    """What sets the address, the key and the name: `base_url`, `api_key`, `name`; empty for the default address."""

    def check(self, *keys: str, more: str = "") -> str:
        """The advice to check what sets these; empty where nothing does."""
        names = [name for key in keys if (name := self.set_by.get(key, ""))]
        return f": check {' and '.join(names)}{more if 'base_url' in keys and names else ''}" if names else ""


_KEY = re.compile(r"\bsk-[^\s\"',;]+")
_MAX_SHOWN = 300
_PAGE = re.compile(r"<(?:!doctype|html|head|body)\b", re.IGNORECASE)
_TAGS = re.compile(r"<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>", re.DOTALL | re.IGNORECASE)
_TOO_LONG = re.compile(
    r"context_length_exceeded|context[ _](?:window|length|size|limit)|(?:prompt|input) is too long|too many tokens"
    r"|maximum (?:number of )?(?:input )?tokens|reduce the length of the messages|context the overflows"
    r"|`inputs` (?:tokens \+ `max_new_tokens` must be|must have less than)"
)
"""How providers say that a request is longer than the model takes; in the middle of a stream there is no status."""
_QUOTA = re.compile(r"insufficient_quota|exceeded your current quota|billing|insufficient (?:balance|credits)")
_BAD_KEY = re.compile(r"api[ _]key (?:is )?(?:not valid|invalid|expired)|(?:invalid|incorrect)[ _]api[ _]key")
"""How providers reject a key with another status than 401."""
CONTENT_FILTER = re.compile(
    r"content[ _-]?(?:filter|management|policy|moderation)|responsible[ _]?ai|data_?inspection|moderation"
    r"|safety (?:system|filter|settings)|inappropriate content|sensitive content|violat\w+ [^.]{0,40}polic"
)
"""How providers say that a filter stopped the text of a request."""
_RETRYABLE = frozenset((408, 409, 425, 429))
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
"""The status of an error code that comes without one, in the middle of a stream."""


def classify_error(error: openai.APIError | ReplyError, target: Target) -> Failure:
    """The failure behind an exception."""
    match error:
        case openai.APIStatusError():
            text = _error_text(error.body if error.body is not None else error.message)
            return _classify_status(error.status_code, text, target, error.response.headers)
        case openai.APITimeoutError():
            return Failure("busy", f"{target.url} did not answer in time.")
        case openai.APIConnectionError():
            return _classify_connection_error(error, target)
        case _:
            return _classify_reply_error(error, target)


def _classify_reply_error(error: openai.APIError | ReplyError, target: Target) -> Failure:
    match error:
        case ServerError(body=body):
            return _classify_status(_status_in(body), _error_text(body), target, {})
        case StalledReply():
            hint = "increase timeout_s under [model] to wait longer"
            return Failure("busy", f"{target.url} sent no part of a reply for {error}; {hint}.")
        case NoMessage():
            return Failure("empty", f"{target.url} answered without a message ({error}).")
        case EmptyReply():
            return Failure("empty", f"The model returned an empty reply ({error}).")
        case UnknownProtocol():
            hint = target.check("base_url", more=", which usually ends in /v1")
            return Failure("final", f"{target.url} does not speak the OpenAI protocol ({error}){hint}.")
        case _:
            return Failure("broken", f"The reply of {target.url} was cut off ({_clean(str(error), target)}).")


def _classify_status(status: int, text: str, target: Target, headers: Mapping[str, str]) -> Failure:
    shown = f"{status}: {_clean(text, target)}" if text else str(status)
    lower = text.lower()
    kind: FailureKind = "final"
    wait = None
    if status == _TOO_LARGE or (status != 429 and _TOO_LONG.search(lower)):
        kind = "too_long"
        hint = "start a new thread or use a larger model"
        message = f"The conversation is too long for {target.model} ({shown}): {hint}."
    elif status == 402 or (status in (403, 429) and _QUOTA.search(lower)):
        message = (
            f"The account at {target.url} has no quota left ({shown}): check it, or set another OPENAI_API_KEY."
        )
    elif status in _RETRYABLE or (status >= 500 and status != _NOT_IMPLEMENTED):
        kind, wait = "busy", parse_retry_after(headers)
        message = f"{target.url} cannot serve the request now ({shown})."
    else:
        message = _final_message(status, shown, target)
    return Failure(kind, message, status, lower, wait)


def _final_message(status: int, shown: str, target: Target) -> str:
    match status:
        case 401 if not target.has_key:
            return f"{target.url} requires a key ({shown}): set OPENAI_API_KEY."
        case _ if status == 401 or _BAD_KEY.search(shown.lower()):
            return f"{target.url} rejected the key ({shown}){target.check('api_key', 'base_url')}."
        case 400 | 403 if CONTENT_FILTER.search(shown.lower()):
            return f"The content filter of {target.url} rejected the request ({status}). Rephrase your message."
        case 403:
            return f"{target.url} denied access to {target.model!r} ({shown}){target.check('api_key', 'name')}."
        case 404:
            hint = target.check("name", "base_url", more=", which usually ends in /v1")
            return f"{target.url} has no model {target.model!r} or no such path ({shown}){hint}."
        case _:
            return f"{target.url} rejected the request ({shown})."


def _classify_connection_error(error: openai.APIConnectionError, target: Target) -> Failure:
    causes: list[BaseException] = [error]
    while cause := causes[-1].__cause__ or causes[-1].__context__:
        causes.append(cause)
    names = {type(cause).__name__ for cause in causes}
    text = "; ".join(dict.fromkeys(str(cause) for cause in causes[1:] if str(cause))) or str(error)
    shown = _clean(text, target)
    if "CERTIFICATE_VERIFY_FAILED" in text:
        hint = "name the right certificates with SSL_CERT_FILE, or with ca_file under [model]"
        return Failure("final", f"The certificate of {target.url} is not trusted ({shown}): {hint}.")
    if "TooManyRedirects" in names:
        return Failure("final", f"{target.url} redirects in a loop{target.check('base_url')}.")
    if "UnsupportedProtocol" in names:
        return Failure("final", f"{target.url} redirects elsewhere ({shown}){target.check('base_url')}.")
    if "ConnectError" in names or any(isinstance(cause, socket.gaierror) for cause in causes):
        address = target.set_by.get("base_url", "")
        hint = f"is the server running, and is {address} right?" if address else "is this machine online?"
        return Failure(
            "unreachable", f"Cannot connect to {target.url} ({shown}){_format_proxy(target.url)}: {hint}"
        )
    return Failure("broken", f"The connection to {target.url} was lost ({shown}).")


def _format_proxy(url: str) -> str:
    with suppress(ProxyUnusable):
        if proxy := proxy_for(url):
            return f" through the proxy {display_url(proxy)}"
    return ""


def _error_text(body: Any) -> str:
    if isinstance(body, list) and len(body) == 1:
        return _error_text(body[0])
    inner = (body.get("error") or body) if isinstance(body, Mapping) else body
    if not isinstance(inner, Mapping):
        return str(inner)
    message = inner.get("message") or inner.get("detail") or ""
    if isinstance(message, list):
        # A validating server lists what is wrong with each field.
        entries = [entry for entry in message if isinstance(entry, Mapping)]
        message = "; ".join(
            f"{'.'.join(map(str, entry.get('loc') or ()))}: {entry.get('msg')}" for entry in entries
        )
    code = str(inner.get("code") or inner.get("type") or "")
    return f"{message} [{code}]" if message and code else str(message) or code


def _status_in(body: Any) -> int:
    values = [body.get(name) for name in ("code", "status", "type")] if isinstance(body, Mapping) else []
    for value in values:
        number = int(value) if isinstance(value, int | str) and _STATUS.fullmatch(str(value)) else None
        status = number if number is not None else _STATUS_OF_CODE.get(str(value))
        if status is not None and 400 <= status < 600:
            return status
    return 500


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that a server asks us to wait, given as a number or as a date; None where it does not say."""
    value = headers.get("retry-after", "")
    with suppress(ValueError):
        return max(0.0, float(headers.get("retry-after-ms", "")) / 1000)
    with suppress(ValueError):
        return max(0.0, float(value))
    try:
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError):
        return None


def _clean(text: str, target: Target) -> str:
    """One printable line without secrets and without the markup of a web page."""
    for secret in target.secrets:
        text = text.replace(secret, "…")
    if _PAGE.search(text):
        text = _TAGS.sub(" ", text)
    line = " ".join(_KEY.sub("sk-…", text).split())
    line = "".join(char if char.isprintable() else "?" for char in line)
    return line if len(line) <= _MAX_SHOWN else line[:_MAX_SHOWN] + "…"
