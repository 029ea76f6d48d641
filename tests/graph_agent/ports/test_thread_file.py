import sqlite3
from typing import Any

import pytest

from graph_agent.ports.thread_file import TABLES, Column, ContentDigest, InvalidValue, decode_value, encode_value
from graph_agent.storage.sqlite.migrations import load_migrations

_LEFT_OUT = {
    "decisions": {"id", "outside_sandbox"},
    "threads": {"add_dirs", "agent", "model_choice", "usage"},
    # A message for the running turn is one for the next: an export has no turn that runs.
    # What was paid for it was paid here.
    "inbox": {"urgent", "early_tokens"},
    "journal": {"process_group", "process_started", "boot_id"},
}
_STAY = {"leases", "grants", "imported_checkpoints", "search_entries", "background_shells", "tasks"}


@pytest.mark.parametrize(
    ("column", "stored", "value"),
    [
        (Column("a"), "text\x00", "text\x00"),
        (Column("a", "number"), 7, 7),
        (Column("a", "bytes"), b"\x00\xff", "AP8="),
        (Column("a", "json"), '{"ä":[1,null]}', {"ä": [1, None]}),
        (Column("a", "json bytes"), '{"ä": 1}'.encode(), {"ä": 1}),
        (Column("a", "json", may_be_null=True), None, None),
    ],
)
def test_what_is_written_is_stored_again_as_it_was(column: Column, stored: Any, value: Any) -> None:
    assert (encode_value(column, stored), decode_value(column, value)) == (value, stored)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        (Column("a"), None),
        (Column("a"), 7),
        (Column("a"), "\ud800"),
        (Column("a", "number"), True),
        (Column("a", "number"), 1.0),
        (Column("a", "number"), 2**63),
        (Column("a", "bytes"), "AP8"),
        (Column("a", "bytes"), "ä"),
        (Column("a", "json"), "text"),
        (Column("a", "json"), {"a": "\udfff"}),
    ],
)
def test_a_value_of_another_kind_is_refused_with_the_name_of_its_column(column: Column, value: Any) -> None:
    with pytest.raises(InvalidValue, match=r"a (is|holds)"):
        decode_value(column, value)


def test_stored_text_that_is_no_json_is_refused() -> None:
    with pytest.raises(InvalidValue):
        encode_value(Column("a", "json"), "{")


def test_every_column_of_a_thread_is_exported_unless_it_belongs_to_the_machine_or_permits_something() -> None:
    database = sqlite3.connect(":memory:")
    for migration in load_migrations():
        database.executescript(migration.sql)
    names = [name for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    found = {name: {row[1] for row in database.execute(f"PRAGMA table_info({name})")} for name in names}
    database.close()

    kept = {
        name: columns - {"thread_id"} - _LEFT_OUT.get(name, set())
        for name, columns in found.items()
        if "thread_id" in columns and name not in _STAY
    }

    assert {table: {column.name for column in columns} for table, columns in TABLES.items()} == kept


def test_the_digest_depends_on_order_and_content_and_not_on_layout() -> None:
    def digest(*values: Any) -> str:
        made = ContentDigest()
        for value in values:
            made.add(value)
        return made.text()

    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    assert len({digest(), digest(1), digest(1, 2), digest(2, 1), digest(12)}) == 5
