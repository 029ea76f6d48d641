from pathlib import Path
from typing import Any

import ormsgpack
import pytest

from graph_agent.app.approvals import RecordedAnswer, allow_always
from graph_agent.app.reader import read_database
from graph_agent.errors import AnswerRefused
from graph_agent.ports import AlwaysAllow, Grant
from tests.fakes.database_rows import Rows, record_of

_NOW = "2026-11-28T12:00:00.000Z"


class _FixedClock:
    def now(self) -> str:
        return _NOW


def _asked(rows: Rows, folder: Path, arguments: dict[str, Any]) -> Rows:
    rows.thread(next_nodes=("human_approval",), workspace=str(folder), checkpoint_id="c1")
    rows.call(record_of("awaiting_approval", arguments=arguments))
    content = ormsgpack.packb({"channel_values": {"branch:to:human_approval": None}, "channel_versions": {}})
    insert = (
        "INSERT INTO checkpoints (thread_id, checkpoint_id, type, checkpoint) VALUES ('t1', 'c1', 'msgpack', ?)"
    )
    rows.execute(insert, content)
    return rows


def _grants(rows: Rows) -> list[Grant]:
    with read_database(rows.path) as reader:
        return reader.grants()


async def test_a_call_is_approved_and_its_like_allowed_in_one_step(rows: Rows, tmp_path: Path) -> None:
    _asked(rows, tmp_path, {"command": "git status && git diff"})

    given, always = await allow_always(rows.path, "call_a", "user", by="cli pid 1", clock=_FixedClock())

    rules = ("bash(git status)", "bash(git diff)")
    assert given == RecordedAnswer("call_a", "t1", "approve", accepted=True, by="cli pid 1", at=_NOW)
    assert always == AlwaysAllow("user", rules)
    assert _grants(rows) == [
        Grant("user", rules, "default", "t1", str(tmp_path), "call_a", "cli pid 1", _NOW, id=1)
    ]


async def test_a_call_of_which_no_rule_can_be_made_stays_open(rows: Rows, tmp_path: Path) -> None:
    _asked(rows, tmp_path, {"command": "bash -c ls"})

    with pytest.raises(AnswerRefused, match="'call_a' cannot be allowed always, it still waits: bash runs"):
        await allow_always(rows.path, "call_a", "thread", by="cli pid 1")

    with read_database(rows.path) as reader:
        assert (reader.approvals()[0].is_waiting, reader.grants()) == (True, [])


async def test_whoever_was_first_is_told_and_no_rule_is_stored(rows: Rows, tmp_path: Path) -> None:
    _asked(rows, tmp_path, {"command": "ls"})
    rows.decision("reject")

    given, always = await allow_always(rows.path, "call_a", "thread", by="cli pid 1")

    assert (given.kind, given.accepted, always.rules, _grants(rows)) == ("reject", False, (), [])
