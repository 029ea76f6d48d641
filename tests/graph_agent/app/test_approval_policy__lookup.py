from pathlib import Path

import pytest

from graph_agent.app.approvals import find_waiting_call
from graph_agent.errors import UnknownId
from graph_agent.ports import Scope
from tests.fakes.database_rows import Rows, record_of


@pytest.fixture
def asked(rows: Rows) -> Rows:
    for thread_id in ("t1", "t2"):
        rows.thread(thread_id, workspace="/w", mode="acceptEdits")
        rows.call(record_of("success"), thread_id)
    return rows


def test_a_call_that_does_not_wait_is_told_as_such(asked: Rows) -> None:
    found = find_waiting_call(asked.path, "t2:call_a")

    assert (found.name, found.view, found.workspace) == ("t2:call_a", None, Path("/w"))
    assert found.scope == Scope("t2", "acceptEdits")


@pytest.mark.parametrize("text", ["call_a", "call_x"])
def test_an_id_that_names_none_or_several_is_refused(asked: Rows, text: str) -> None:
    with pytest.raises(UnknownId):
        find_waiting_call(asked.path, text)
