import json

import pytest

from graph_agent.app.reader import read_database
from graph_agent.errors import DamagedDatabase
from graph_agent.ports import Intent, JournalRow
from tests.fakes.database_rows import START, Rows


def test_attempts_come_with_intent_and_process_and_without_undone_ones(rows: Rows) -> None:
    intent = {"path": "/w/a", "before_sha256": None, "after_sha256": "ff", "before_blob": None}
    rows.journal("interrupted", reverted=1)
    rows.journal("interrupted", attempt=2, intent=json.dumps(intent))
    rows.journal("executing", attempt=3, process_group=7, process_started="9", boot_id="b")

    with read_database(rows.path) as reader:
        found = reader.attempts("t1", "call_a")

    assert found == [
        JournalRow("call_a", 2, "life", "interrupted", START, intent=Intent("/w/a", None, "ff")),
        JournalRow(
            "call_a",
            3,
            "life",
            "executing",
            START,
            process_group=7,
            process_started="9",
            extra={"boot_id": "b"},
        ),
    ]


def test_an_intent_that_is_no_json_is_told_as_damage(rows: Rows) -> None:
    rows.journal("executing", intent="{")

    with read_database(rows.path) as reader, pytest.raises(DamagedDatabase, match="must hold JSON"):
        reader.attempts("t1", "call_a")
