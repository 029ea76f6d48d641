"""A line of a server as a message of the protocol, read as far as it can be."""

import json

from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCMessage
from pydantic import ValidationError

__all__ = ["message_of"]


def message_of(line: str) -> SessionMessage | None:
    """The message; None where the line holds none. Half a surrogate pair in it, as cut texts have, is replaced."""
    try:
        return SessionMessage(JSONRPCMessage.model_validate_json(line))
    except ValidationError:
        pass
    try:
        text = json.dumps(json.loads(line), ensure_ascii=False)
        whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return SessionMessage(JSONRPCMessage.model_validate_json(whole))
    except (ValueError, RecursionError):
        return None
