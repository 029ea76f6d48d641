"""The transcript: every message a thread ever held, in the order in which it came, as plain rows."""

import sqlite3
from collections.abc import Iterable
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage

from graph_agent.store.jsontext import json_text, storable

__all__ = ["Place", "fold_messages"]

TITLE_LENGTH = 80

_ROLES: tuple[tuple[type[BaseMessage], str], ...] = (
    (HumanMessage, "user"),
    (AIMessage, "assistant"),
    (ToolMessage, "tool"),
    (SystemMessage, "system"),
)
_INSERT = """
INSERT OR IGNORE INTO transcript (thread_id, seq, message_id, role, body, checkpoint_id, at)
SELECT :thread_id, coalesce(max(seq), 0) + 1, :message_id, :role, :body, :checkpoint_id, :at
FROM transcript WHERE thread_id = :thread_id
"""
_REPLACE = "UPDATE transcript SET body = :body WHERE thread_id = :thread_id AND message_id = :message_id"
_TURN = """
UPDATE threads SET turns = turns + 1, title = CASE title WHEN '' THEN :title ELSE title END
WHERE thread_id = :thread_id
"""


class Place(NamedTuple):
    """Where rows come from."""

    thread_id: str
    checkpoint_id: str
    at: str


def fold_messages(
    connection: sqlite3.Connection, place: tuple[str, str, str], messages: Iterable[BaseMessage]
) -> None:
    """Add what is new, replace the body of what came before; a message taken out of the state stays here."""
    where = Place(*place)
    for index, message in enumerate(messages):
        if isinstance(message, RemoveMessage):
            continue
        row = {
            **where._asdict(),
            "message_id": storable(str(message.id or f"{where.checkpoint_id}:{index}")),
            "role": next((role for kind, role in _ROLES if isinstance(message, kind)), storable(message.type)),
            "body": json_text(_body(message)),
        }
        if not connection.execute(_INSERT, row).rowcount:
            connection.execute(_REPLACE, row)
        elif row["role"] == "user":
            connection.execute(_TURN, {"thread_id": where.thread_id, "title": _title(message)})


def _body(message: BaseMessage) -> dict[str, Any]:
    extra = {
        "tool_calls": getattr(message, "tool_calls", None),
        "tool_call_id": getattr(message, "tool_call_id", None),
        "name": message.name,
        "status": getattr(message, "status", None),
        "usage": getattr(message, "usage_metadata", None),
    }
    return {"content": message.content, **{name: value for name, value in extra.items() if value}}


def _title(message: BaseMessage) -> str:
    words = " ".join(str(message.text).split())
    return storable(words if len(words) <= TITLE_LENGTH else f"{words[: TITLE_LENGTH - 1].rstrip()}…")
