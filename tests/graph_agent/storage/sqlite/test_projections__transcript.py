import json
import sqlite3
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage

from graph_agent.calls import REPLACES, SHORTENED
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.projections import fold_messages
from tests.graph_agent.storage.sqlite.looking import rows


async def _fold(database: Database, *messages: BaseMessage) -> None:
    def fold(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT OR IGNORE INTO threads (thread_id, created_at, updated_at) VALUES ('t', '', '')")
        fold_messages(connection, ("t", "7", "now"), messages)

    await database.write(fold)


async def _bodies(database: Database) -> list[tuple[int, str, str, dict[str, Any]]]:
    found = await rows(database, "SELECT seq, message_id, role, body FROM transcript ORDER BY seq")
    return [(seq, message_id, role, json.loads(body)) for seq, message_id, role, body in found]


async def test_each_kind_of_message_becomes_a_row_of_its_role(database: Database) -> None:
    usage: Any = {"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}
    call: Any = {"name": "bash", "args": {"command": "ls"}, "id": "c", "type": "tool_call"}

    await _fold(
        database,
        SystemMessage("rules", id="s"),
        HumanMessage([{"type": "text", "text": "hi"}], id="h"),
        AIMessage("text", id="a", tool_calls=[call], usage_metadata=usage),
        ToolMessage("out", tool_call_id="c", id="r", name="bash", status="error"),
    )

    assert await _bodies(database) == [
        (1, "s", "system", {"content": "rules"}),
        (2, "h", "user", {"content": [{"type": "text", "text": "hi"}]}),
        (3, "a", "assistant", {"content": "text", "tool_calls": [call], "usage": usage}),
        (4, "r", "tool", {"content": "out", "tool_call_id": "c", "name": "bash", "status": "error"}),
    ]


async def test_a_message_written_again_replaces_its_body_and_keeps_its_place(database: Database) -> None:
    await _fold(database, HumanMessage("one", id="1"), HumanMessage("two", id="2"))

    await _fold(database, HumanMessage("one, better", id="1"))

    assert [(seq, body["content"]) for seq, _, _, body in await _bodies(database)] == [
        (1, "one, better"),
        (2, "two"),
    ]
    assert await rows(database, "SELECT turns FROM threads") == [(2,)]


async def test_a_message_taken_out_of_the_state_stays(database: Database) -> None:
    await _fold(database, HumanMessage("one", id="1"))

    await _fold(database, RemoveMessage(id="1"))

    assert [message_id for _, message_id, _, _ in await _bodies(database)] == ["1"]


async def test_a_message_that_was_shortened_in_the_state_stays_whole(database: Database) -> None:
    stub = ToolMessage("kept elsewhere", tool_call_id="c", id="1", response_metadata={SHORTENED: True})
    await _fold(database, ToolMessage("all of it", tool_call_id="c", id="1"))

    await _fold(database, stub, stub.model_copy(update={"id": "2"}))

    assert [body["content"] for *_, body in await _bodies(database)] == ["all of it", "kept elsewhere"]


async def test_a_summary_is_a_row_of_its_own_and_no_turn(database: Database) -> None:
    await _fold(database, HumanMessage("one", id="1"))

    await _fold(database, HumanMessage("so far", id="2", response_metadata={REPLACES: ["1"]}))

    assert [(role, body["content"]) for _, _, role, body in await _bodies(database)] == [
        ("user", "one"),
        ("summary", "so far"),
    ]
    assert await rows(database, "SELECT turns FROM threads") == [(1,)]


async def test_a_message_without_an_id_gets_one_from_its_place(database: Database) -> None:
    await _fold(database, HumanMessage("one"), HumanMessage("two"))
    await _fold(database, HumanMessage("one"), HumanMessage("two"))

    assert [message_id for _, message_id, _, _ in await _bodies(database)] == ["7:0", "7:1"]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("  fix\n the   bug ", "fix the bug"),
        ("x" * 80, "x" * 80),
        ("x" * 81, "x" * 79 + "…"),
        ("odd \ud800", "odd ?"),
    ],
)
async def test_the_first_message_gives_the_title(database: Database, text: str, title: str) -> None:
    await _fold(database, HumanMessage(text, id="1"), HumanMessage("later", id="2"))

    assert await rows(database, "SELECT title, turns FROM threads") == [(title, 2)]
