import sqlite3
from contextlib import closing
from itertools import pairwise

from graph_agent.storage.legacy_names import TABLES
from graph_agent.storage.sqlite.migrations import SCHEMA_VERSION
from graph_agent.storage.sqlite.schema import create_tables, table_names, tables_of_version
from graph_agent.storage.sqlite.search_index import update_search_index


def test_a_later_version_has_the_tables_of_an_earlier_one_and_more() -> None:
    outlines = [
        {TABLES.get(table, table) for table in tables_of_version(version)}
        for version in range(1, SCHEMA_VERSION + 1)
    ]

    assert all(earlier <= later for earlier, later in pairwise(outlines))
    assert outlines[-1] == tables_of_version(SCHEMA_VERSION)
    assert {"checkpoints", "journal"} <= outlines[0] < outlines[-1]


def test_the_index_of_words_is_no_table_of_anybody() -> None:
    with closing(sqlite3.connect(":memory:")) as database:
        create_tables(database, SCHEMA_VERSION)
        update_search_index(database)

        assert table_names(database) == tables_of_version(SCHEMA_VERSION)
