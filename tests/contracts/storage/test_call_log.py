import json
from typing import Any

from graph_agent.calls import NEW_MESSAGE
from graph_agent.storage import Connection
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.projections import Place, fold_calls, restart_from
from tests.graph_agent.storage.sqlite.looking import rows

_RECORD = {"call_id": "c", "tool_name": "bash", "arguments": {}, "status": "pending", "attempt": 1, "risk": "high"}


async def _fold(database: Database, *writes: dict[Any, Any]) -> None:
    def fold(connection: Connection) -> None:
        for number, write in enumerate(writes, 1):
            fold_calls(connection, Place("t", str(number), f"at {number}"), write)

    await database.write(fold)


async def _call_log(database: Database) -> list[tuple[Any, ...]]:
    return await rows(database, "SELECT seq, call_id, status, risk, checkpoint_id FROM call_log ORDER BY seq")


async def _records(database: Database) -> list[dict[str, Any]]:
    return [json.loads(text) for (text,) in await rows(database, "SELECT record FROM call_log ORDER BY seq")]


async def test_a_change_is_merged_into_the_record_and_keeps_its_position(database: Database) -> None:
    await _fold(database, {"c": _RECORD, "d": _RECORD}, {"c": {"status": "executing", "owner_token": "run"}})

    assert await _call_log(database) == [(1, "c", "executing", "high", "2"), (2, "d", "pending", "high", "1")]
    assert (await _records(database))[0] == {**_RECORD, "status": "executing", "owner_token": "run"}


async def test_calls_of_an_earlier_message_stay(database: Database) -> None:
    await _fold(database, {"c": {**_RECORD, "status": "success"}}, {NEW_MESSAGE: {}, "d": _RECORD})

    assert [row[1:3] for row in await _call_log(database)] == [("c", "success"), ("d", "pending")]


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

    assert await _call_log(database) == []


async def test_a_branch_may_open_a_finished_call_again(database: Database) -> None:
    await _fold(
        database, {"c": {**_RECORD, "status": "cancelled"}}, {"c": {**_RECORD, "status": "awaiting_approval"}}
    )

    assert [row[2] for row in await _call_log(database)] == ["awaiting_approval"]


async def test_folding_the_same_write_again_changes_nothing(database: Database) -> None:
    await _fold(database, {"c": _RECORD})
    before = await _call_log(database)

    await _fold(database, {"c": _RECORD})

    assert await _call_log(database) == before


async def test_a_new_message_keeps_nothing_of_a_call_that_had_its_id_on_another_branch(database: Database) -> None:
    ran = {**_RECORD, "status": "success", "attempt": 2, "result": "done"}
    await _fold(database, {NEW_MESSAGE: {}, "c": ran}, {NEW_MESSAGE: {}, "c": _RECORD})

    assert await _records(database) == [_RECORD]


async def test_a_resumed_state_has_its_own_records_and_open_calls_elsewhere_are_abandoned(
    database: Database,
) -> None:
    whole = {**_RECORD, "result": None, "error_msg": None}
    await _fold(database, {NEW_MESSAGE: {}, "c": {**whole, "attempt": 2}, "d": whole})
    odd = [None, {"c": {"status": ["x"]}}, {"c": {"attempt": "2"}}]

    await database.write(
        lambda connection: restart_from(connection, Place("t", "9", "now"), [{NEW_MESSAGE: {}, "c": whole}, *odd])
    )

    found = await rows(database, "SELECT call_id, record, abandoned, checkpoint_id FROM call_log ORDER BY seq")
    assert [(call_id, json.loads(record), *rest) for call_id, record, *rest in found] == [
        ("c", whole, 0, "9"),
        ("d", whole, 1, "1"),
    ]
