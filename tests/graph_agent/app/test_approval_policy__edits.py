from collections.abc import Iterator
from pathlib import Path

import ormsgpack
import pytest

from graph_agent.app.approvals import RecordedAnswer, edit_approval
from graph_agent.errors import AnswerRefused, UnknownId
from graph_agent.ports import Answer, Question
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from tests.fakes.database_rows import Rows, record_of

_SHOUT = """
from pydantic import BaseModel
from tools.base import BaseTool, ToolResult

class ShoutArgs(BaseModel):
    text: str

class Shout(BaseTool):
    name = "shout"
    description = "Shouts."
    args_schema = ShoutArgs

    async def execute(self, *, text: str) -> ToolResult:
        return ToolResult(text.upper())
"""
_NOW = "2026-11-28T12:00:00.000Z"


class _FixedClock:
    def now(self) -> str:
        return _NOW


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Rows]:
    filled = Rows(tmp_path / "graph-agent.db")
    filled.thread(next_nodes=("human_approval",), workspace=str(tmp_path), checkpoint_id="c1")
    filled.call(record_of("awaiting_approval"))
    content = ormsgpack.packb({"channel_values": {"branch:to:human_approval": None}, "channel_versions": {}})
    insert = (
        "INSERT INTO checkpoints (thread_id, checkpoint_id, type, checkpoint) VALUES ('t1', 'c1', 'msgpack', ?)"
    )
    filled.execute(insert, content)
    yield filled
    filled.close()


async def _standing(asked: Rows) -> dict[str, Answer]:
    async with await Database.open(asked.path) as database:
        return await SqliteDecisions(database).find_answers("t1", [Question("approval", "call_a", 1, "d1")])


async def test_an_edit_stands_with_its_arguments_for_exactly_what_was_shown(asked: Rows) -> None:
    given = await edit_approval(asked.path, "call_a", {"command": "ls"}, by="cli pid 1", clock=_FixedClock())

    assert given == RecordedAnswer("call_a", "t1", "edit", accepted=True, by="cli pid 1", at=_NOW)
    assert await _standing(asked) == {"call_a": Answer("edit", "cli pid 1", _NOW, {"command": "ls"})}


async def test_arguments_that_the_tool_cannot_take_leave_the_question_open(asked: Rows) -> None:
    with pytest.raises(AnswerRefused, match="'call_a' still waits: "):
        await edit_approval(asked.path, "call_a", {"timeout": 5}, by="cli pid 1")

    assert await _standing(asked) == {}


async def test_a_call_that_does_not_exist_is_not_edited(asked: Rows) -> None:
    with pytest.raises(UnknownId):
        await edit_approval(asked.path, "call_x", {}, by="cli pid 1")


async def test_an_edit_of_a_plug_in_s_call_is_held_against_its_schema(
    asked: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "tools").mkdir(parents=True)
    (tmp_path / "home" / "tools" / "shout.py").write_text(_SHOUT)
    asked.call(record_of("awaiting_approval", "call_p", tool_name="shout"))

    with pytest.raises(AnswerRefused, match=r"'call_p' still waits: .*unknown argument txt"):
        await edit_approval(asked.path, "call_p", {"txt": "a"}, by="cli pid 1")
    given = await edit_approval(asked.path, "call_p", {"text": "a"}, by="cli pid 1")

    assert given.accepted
