"""A reader of the rows that a test puts into a database."""

from collections.abc import Iterator

import pytest

from graph_agent.app.reader import read_database
from graph_agent.inspect import Reader
from tests.fakes.database_rows import Rows

__all__ = ["reader"]


@pytest.fixture
def reader(rows: Rows) -> Iterator[Reader]:
    with read_database(rows.path) as reader:
        yield reader
