"""A line of a server as a message of the protocol, read as far as it can be."""

import json
import re
from typing import Any

from mcp.shared.message import SessionMessage
from mcp.types import (
    ErrorData,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
)

__all__ = ["message_of", "refusal_of"]

_Kind = JSONRPCRequest | JSONRPCNotification | JSONRPCResponse | JSONRPCError
_MAY_BE_HALF = ("\\ud", "\\uD")
"""How an escaped half of a surrogate pair begins; in the bytes of a server there is no other."""
_ANSWERED = re.compile(rb'\s*\{[^{}]*?"id"\s*:\s*(\d{1,15})\s*,[^{}]*?"(?:result|error)"\s*:')
"""The beginning of an answer, and which request it answers."""
_ASIDE = -32_000
"""The protocol's code for what a side makes up by itself."""


def message_of(line: str) -> SessionMessage | None:
    """The message; None where the line holds none. Half a surrogate pair in it, as cut texts have, is replaced."""
    try:
        if not any(half in line for half in _MAY_BE_HALF):
            return SessionMessage(_read(json.loads(line)))
        text = json.dumps(json.loads(line), ensure_ascii=False)
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return SessionMessage(_read(json.loads(whole)))
    except (ValueError, RecursionError):
        return None


def _read(message: Any) -> JSONRPCMessage:
    """Read as what its keys say: to let the library try each kind takes seconds for a long list of tools."""
    if not isinstance(message, dict):
        raise ValueError("a message is an object")  # noqa: TRY004 - of a line, not of a caller
    if "method" in message:
        kind: type[_Kind] = JSONRPCRequest if message.get("id") is not None else JSONRPCNotification
    else:
        kind = JSONRPCError if isinstance(message.get("error"), dict) else JSONRPCResponse
    return JSONRPCMessage(kind.model_validate(message))


def refusal_of(beginning: bytes, why: str) -> SessionMessage | None:
    """An error in the place of an answer that is passed over, so that nobody waits; None: it was no answer."""
    answered = _ANSWERED.match(beginning)
    if answered is None:
        return None
    error = ErrorData(code=_ASIDE, message=why)
    return SessionMessage(JSONRPCMessage(JSONRPCError(jsonrpc="2.0", id=int(answered[1]), error=error)))
