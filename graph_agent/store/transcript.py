"""The transcript: every message a thread ever held, on any branch, in the order in which it came, as plain rows.

It is whole where the state holds the live window only: a compaction adds its summary here and takes nothing away.
"""

import sqlite3
from collections.abc import Iterable
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage

from graph_agent.calls import REPLACES, SHORTENED
from graph_agent.store.branches import VISIBLE
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
INSERT INTO transcript (thread_id, seq, branch, message_id, role, body, checkpoint_id, at)
SELECT :thread_id, coalesce(max(seq), 0) + 1, (SELECT branch FROM threads WHERE thread_id = :thread_id),
    :message_id, :role, :body, :checkpoint_id, :at
FROM transcript WHERE thread_id = :thread_id
"""
# By the branches first, in each by the id: else a new message is sought among all that the thread ever held.
_SHOWN = f"""
{VISIBLE} SELECT max(t.seq) FROM line CROSS JOIN transcript t ON t.branch = line.branch AND t.seq <= line.upto
WHERE t.thread_id = :thread_id AND t.message_id = :message_id
"""  # noqa: S608 - names only
_REPLACE = f"UPDATE transcript SET body = :body WHERE thread_id = :thread_id AND seq = ({_SHOWN})"  # noqa: S608 - names only
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
    """Add what is new on the thread's branch, replace the body of what it shows already.

    A message taken out of the state stays here, and one that was shortened there stays whole. The same id may stand
    on two branches with different bodies.
    """
    where = Place(*place)
    for index, message in enumerate(messages):
        if isinstance(message, RemoveMessage):
            continue
        row = {
            **where._asdict(),
            "message_id": storable(str(message.id or f"{where.checkpoint_id}:{index}")),
            "role": _role(message),
            "body": json_text(_body(message)),
        }
        if _stands(connection, row, message):
            continue
        connection.execute(_INSERT, row)
        if row["role"] == "user":
            connection.execute(_TURN, {"thread_id": where.thread_id, "title": _title(message)})


def _stands(connection: sqlite3.Connection, row: dict[str, Any], message: BaseMessage) -> bool:
    """Whether the branch shows the message already; its body is brought up to what it is now."""
    if message.response_metadata.get(SHORTENED):
        return connection.execute(_SHOWN, row).fetchone()[0] is not None
    return connection.execute(_REPLACE, row).rowcount == 1


def _role(message: BaseMessage) -> str:
    if REPLACES in message.response_metadata:
        return "summary"
    return next((role for kind, role in _ROLES if isinstance(message, kind)), storable(message.type))


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
