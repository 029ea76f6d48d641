import json
import sqlite3
from typing import Any

from graph_agent.calls import NEW_MESSAGE
from graph_agent.store.database import Database
from graph_agent.store.ledger import fold_calls
from tests.graph_agent.store.looking import rows

_RECORD = {"call_id": "c", "tool_name": "bash", "arguments": {}, "status": "pending", "attempt": 1, "risk": "high"}


async def _fold(database: Database, *writes: dict[Any, Any]) -> None:
    def fold(connection: sqlite3.Connection) -> None:
        for number, write in enumerate(writes, 1):
            fold_calls(connection, ("t", str(number), f"at {number}"), write)

    await database.write(fold)


async def _ledger(database: Database) -> list[tuple[Any, ...]]:
    return await rows(database, "SELECT seq, call_id, status, risk, checkpoint_id FROM ledger ORDER BY seq")


async def _records(database: Database) -> list[dict[str, Any]]:
    return [json.loads(text) for (text,) in await rows(database, "SELECT record FROM ledger ORDER BY seq")]


async def test_a_change_is_laid_over_the_record_and_keeps_its_place(database: Database) -> None:
    await _fold(database, {"c": _RECORD, "d": _RECORD}, {"c": {"status": "executing", "run_token": "life"}})

    assert await _ledger(database) == [(1, "c", "executing", "high", "2"), (2, "d", "pending", "high", "1")]
    assert (await _records(database))[0] == {**_RECORD, "status": "executing", "run_token": "life"}


async def test_calls_of_an_earlier_message_stay(database: Database) -> None:
    await _fold(database, {"c": {**_RECORD, "status": "success"}}, {NEW_MESSAGE: {}, "d": _RECORD})

    assert [row[1:3] for row in await _ledger(database)] == [("c", "success"), ("d", "pending")]


async def test_a_lower_attempt_never_overwrites_a_higher_one(database: Database) -> None:
    await _fold(
        database,
        {"c": {**_RECORD, "attempt": 2}},
        {"c": {"status": "error", "attempt": 1}},
        {"c": {"reason": "kept"}},
    )

    assert await _records(database) == [{**_RECORD, "attempt": 2, "reason": "kept"}]


async def test_a_partial_record_of_an_unknown_call_is_passed_over(database: Database) -> None:
    await _fold(database, {"c": {"status": "success"}})

    assert await _ledger(database) == []


async def test_a_branch_may_open_a_finished_call_again(database: Database) -> None:
    await _fold(
        database, {"c": {**_RECORD, "status": "cancelled"}}, {"c": {**_RECORD, "status": "awaiting_approval"}}
    )

    assert [row[2] for row in await _ledger(database)] == ["awaiting_approval"]


async def test_folding_the_same_write_again_changes_nothing(database: Database) -> None:
    await _fold(database, {"c": _RECORD})
    before = await _ledger(database)

    await _fold(database, {"c": _RECORD})

    assert await _ledger(database) == before
