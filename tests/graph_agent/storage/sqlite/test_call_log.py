import json
import sqlite3
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graph_agent.calls import NEW_MESSAGE
from graph_agent.storage import Connection
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION
from graph_agent.storage.sqlite.projections import Place, fold_calls
from graph_agent.storage.sqlite.schema import create_tables
from tests.graph_agent.storage.sqlite.looking import opened

_RECORD = {"call_id": "c", "tool_name": "bash", "arguments": {}, "status": "pending", "attempt": 1, "risk": "high"}


async def _fold(database: Database, *writes: dict[Any, Any]) -> None:
    def fold(connection: Connection) -> None:
        for number, write in enumerate(writes, 1):
            fold_calls(connection, Place("t", str(number), f"at {number}"), write)

    await database.write(fold)


_VALUE = st.none() | st.integers() | st.floats() | st.text(st.characters(), max_size=3) | st.lists(st.integers())


_CHANGE = st.dictionaries(
    st.sampled_from(["tool_name", "status", "attempt", "risk", "arguments", "call_id", 7]), _VALUE, max_size=6
)


@pytest.mark.slow
@given(st.lists(st.dictionaries(st.sampled_from(["c", "d", NEW_MESSAGE, 3]), _CHANGE | _VALUE), max_size=4))
def test_no_write_makes_the_call_log_fail(writes: list[dict[Any, Any]]) -> None:
    connection = sqlite3.connect(":memory:")
    create_tables(connection, SCHEMA_VERSION)

    for write in writes:
        fold_calls(connection, Place("t", "1", "now"), write)

    texts = connection.execute("SELECT record, json_valid(record) FROM call_log").fetchall()
    connection.close()
    assert [(isinstance(json.loads(text), dict), valid) for text, valid in texts] == [(True, 1)] * len(texts)


async def test_a_new_call_costs_the_database_as_much_late_as_early(database: Database) -> None:
    effort: list[None] = []

    async def of_one_more(call_id: str) -> int:
        effort.clear()
        await database.run(lambda _: opened(database).set_progress_handler(lambda: effort.append(None), 1))
        await _fold(database, {call_id: _RECORD})
        await database.run(lambda _: opened(database).set_progress_handler(None, 0))
        return len(effort)

    await _fold(database, {f"early {number}": _RECORD for number in range(10)})
    early = await of_one_more("eleventh")
    await _fold(database, {f"late {number}": _RECORD for number in range(1_000)})

    assert await of_one_more("last") <= 1.2 * early
