from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.database_rows import Rows


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    filled = Rows(tmp_path / "graph-agent.db")
    yield filled
    filled.close()
