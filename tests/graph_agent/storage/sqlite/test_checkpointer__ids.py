"""The ids of checkpoints sort by the time that is in them."""

import time

import pytest
from langgraph.checkpoint.base.id import uuid6

from graph_agent.storage.sqlite.checkpointer import time_in

_BEFORE_1970 = 0x01B21DD213814000


def test_the_time_in_an_id_is_that_of_the_clock_and_one_that_leaves_no_room_counts_for_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("langgraph.checkpoint.base.id._last_v6_timestamp", None)
    now = time.time_ns() // 100 + _BEFORE_1970

    assert 0 <= time_in(str(uuid6(clock_seq=1))) - now < 10**9
    assert [time_in(odd) for odd in ("", "c1", "ffffffff-ffff-6fff-8000-000000000000")] == [0, 0, 0]
