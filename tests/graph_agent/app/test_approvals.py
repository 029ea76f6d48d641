import asyncio
import re
import sqlite3
from pathlib import Path
from typing import Any

import ormsgpack
import pytest

from graph_agent.app.approvals import (
    RecordedAnswer,
    answer_always,
    answer_approval,
    edit_approval,
    find_waiting_call,
    record_answer,
    revoke_grant,
)
from graph_agent.app.reader import read_database
from graph_agent.app.recovery import Decision, decide_calls
from graph_agent.calls import args_digest
from graph_agent.errors import AnswerRefused, NothingYet, QuestionChanged, UnknownId
from graph_agent.ports import (
    AlwaysRules,
    Answer,
    Grant,
    GrantEffect,
    GrantScope,
    Question,
    QuestionKind,
    RuleChoice,
    Scope,
)
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from tests.fakes.database_rows import Rows, record_of
from tests.fakes.stepping_clock import NOW, FixedClock

_ME = "cli pid 1"
_QUESTION = Question("approval", "call_a", 1, "d1")
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


@pytest.fixture
def asked(rows: Rows, tmp_path: Path) -> Rows:
    rows.thread(next_nodes=("human_approval",), workspace=str(tmp_path), checkpoint_id="c1")
    rows.call(record_of("awaiting_approval"))
    content = ormsgpack.packb(
        {
            "v": 1,
            "id": "c1",
            "ts": "2026-01-01T00:00:00+00:00",
            "channel_values": {"branch:to:human_approval": None},
            "channel_versions": {},
            "versions_seen": {},
        }
    )
    insert = (
        "INSERT INTO checkpoints (thread_id, checkpoint_id, type, checkpoint, metadata)"
        """ VALUES ('t1', 'c1', 'msgpack', ?, '{"source": "loop", "step": 1}')"""
    )
    rows.execute(insert, content)
    return rows


def _runs(asked: Rows, command: str) -> None:
    asked.execute("UPDATE call_log SET record = json_set(record, '$.arguments.command', ?)", command)


async def _answers(asked: Rows, question: Question = _QUESTION) -> dict[str, Answer]:
    async with await Database.open(asked.path) as database:
        return await SqliteDecisions(database).find_answers("t1", [question])


def _grants(asked: Rows) -> list[Grant]:
    with read_database(asked.path) as reader:
        return reader.grants()


async def test_an_approval_is_recorded_for_exactly_what_was_shown(asked: Rows) -> None:
    answered = await answer_approval(asked.path, "call_a", "approve", by=_ME, clock=FixedClock())

    assert answered == RecordedAnswer("call_a", "t1", "approve", accepted=True, by=_ME, at=NOW)
    assert await _answers(asked) == {"call_a": Answer("approve", _ME, NOW)}


async def test_the_first_answer_wins_and_a_later_one_names_who_was_first(asked: Rows) -> None:
    first = await answer_approval(asked.path, "t1:call_a", "reject", by=_ME, reason="no", clock=FixedClock())

    second = await answer_approval(asked.path, "call_a", "approve", by="cli pid 2")

    assert first.accepted
    assert second == RecordedAnswer("call_a", "t1", "reject", accepted=False, by=_ME, at=NOW)
    with read_database(asked.path) as reader:
        [view] = reader.approvals()
    assert view.answer is not None
    assert (view.answer.reason, view.is_waiting) == ("no", False)


async def test_of_answers_given_at_once_exactly_one_is_accepted(asked: Rows) -> None:
    given = await asyncio.gather(
        *(answer_approval(asked.path, "call_a", "approve", by=f"cli pid {number}") for number in range(8))
    )

    assert sum(answered.accepted for answered in given) == 1
    assert len({(answered.by, answered.at) for answered in given}) == 1


@pytest.mark.parametrize("kind", ["approval", "recovery"])
async def test_no_answer_is_recorded_to_a_question_that_changes_while_it_is_given(
    asked: Rows, kind: QuestionKind
) -> None:
    if kind == "recovery":
        asked.execute(
            "UPDATE call_log SET status = 'executing', record = json_set(record, '$.status', 'executing')"
        )
    shown = Question(kind, "call_a", 1, "d1")
    asked.execute("BEGIN IMMEDIATE")  # The process that holds the thread is about to write.
    giving = asyncio.create_task(
        record_answer(asked.path, "call_a", Answer("approve", _ME, NOW), shown=shown)
        if kind == "approval"
        else decide_calls(asked.path, None, [Decision("retry", "call_a", shown=shown)], by=_ME)
    )
    await asyncio.sleep(0.3)  # By now it has read the question, and waits to write the answer.
    asked.execute("UPDATE call_log SET record = json_set(record, '$.args_digest', 'd2')")
    asked.execute("COMMIT")

    with pytest.raises(QuestionChanged, match="'call_a' asks something else now"):
        await giving

    assert sqlite3.connect(asked.path).execute("SELECT count(*) FROM decisions").fetchall() == [(0,)]


@pytest.mark.parametrize("status", ["success", "interrupted"])
async def test_an_answer_that_the_graph_has_applied_is_named(asked: Rows, status: str) -> None:
    asked.execute("UPDATE call_log SET status = ?, record = json_set(record, '$.status', ?)", status, status)
    asked.decision("approve", applied_at=NOW)

    answered = await answer_approval(asked.path, "call_a", "reject", by=_ME)

    assert (answered.accepted, answered.kind, answered.by) == (False, "approve", "cli pid 7")


async def test_a_record_without_a_digest_is_bound_by_the_digest_of_its_arguments(asked: Rows) -> None:
    record = record_of("awaiting_approval", "call_b")
    del record["args_digest"]
    asked.call(record)

    await answer_approval(asked.path, "call_b", "approve", by=_ME)

    question = Question("approval", "call_b", 1, args_digest("call_b", "bash", 1, {"command": "make"}))
    assert set(await _answers(asked, question)) == {"call_b"}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("success", r"its status is success\. .*`graph-agent approvals list`"),
        ("interrupted", r"its status is interrupted\. .*`graph-agent recover t1`"),
    ],
)
async def test_a_call_nobody_asks_about_is_refused(asked: Rows, status: str, words: str) -> None:
    asked.call(record_of(status, "call_b"))

    with pytest.raises(AnswerRefused, match=words):
        await answer_approval(asked.path, "call_b", "approve", by=_ME)


async def test_a_question_of_an_abandoned_branch_cannot_be_answered(asked: Rows) -> None:
    asked.execute("UPDATE threads SET next_nodes = '[]'")
    asked.execute("DELETE FROM checkpoints")

    with pytest.raises(AnswerRefused, match="on an abandoned branch"):
        await answer_approval(asked.path, "call_a", "approve", by=_ME)


async def test_of_several_calls_with_one_id_only_one_that_waits_alone_is_meant(asked: Rows) -> None:
    asked.thread("t2", next_nodes=("human_approval",))
    asked.call(record_of("awaiting_approval"), thread_id="t2")
    with pytest.raises(UnknownId, match="t1:call_a"):
        await answer_approval(asked.path, "call_a", "approve", by=_ME)

    await answer_approval(asked.path, "t2:call_a", "reject", by=_ME)
    answered = await answer_approval(asked.path, "call_a", "approve", by=_ME)

    assert (answered.thread_id, answered.accepted) == ("t1", True)


async def test_unknown_ids_and_missing_databases_create_nothing(asked: Rows) -> None:
    nowhere = asked.path.with_name("none.db")

    with pytest.raises(UnknownId, match="No call matches"):
        await answer_approval(asked.path, "call_x", "approve", by=_ME)
    with pytest.raises(UnknownId):
        await edit_approval(asked.path, "call_x", {}, by=_ME)
    with pytest.raises(NothingYet):
        await answer_approval(nowhere, "call_a", "approve", by=_ME)
    with pytest.raises(NothingYet):
        await revoke_grant(nowhere, "1", by=_ME)

    assert not nowhere.exists()


async def test_an_edit_is_recorded_with_its_arguments(asked: Rows) -> None:
    given = await edit_approval(asked.path, "call_a", {"command": "ls"}, by=_ME, clock=FixedClock())

    assert given == RecordedAnswer("call_a", "t1", "edit", accepted=True, by=_ME, at=NOW)
    assert await _answers(asked) == {"call_a": Answer("edit", _ME, NOW, {"command": "ls"})}


async def test_arguments_that_the_tool_cannot_take_leave_the_question_open(
    asked: Rows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    (tmp_path / "home" / "tools").mkdir(parents=True)
    (tmp_path / "home" / "tools" / "shout.py").write_text(_SHOUT)
    asked.call(record_of("awaiting_approval", "call_p", tool_name="shout"))

    with pytest.raises(AnswerRefused, match="'call_a' is still pending; the edited arguments"):
        await edit_approval(asked.path, "call_a", {"timeout": 5}, by=_ME)
    with pytest.raises(AnswerRefused, match=r"'call_p' is still pending; .*unknown argument txt"):
        await edit_approval(asked.path, "call_p", {"txt": "a"}, by=_ME)

    assert await _answers(asked) == {}
    assert (await edit_approval(asked.path, "call_p", {"text": "a"}, by=_ME)).accepted


async def test_a_call_is_approved_and_its_like_allowed_in_one_step(asked: Rows, tmp_path: Path) -> None:
    _runs(asked, "git status && git diff")

    given, always, coverage = await answer_always(
        asked.path, "call_a", ("allow", "user", "exact"), by=_ME, clock=FixedClock()
    )

    rules = ("bash(git status)", "bash(git diff)")
    assert given == RecordedAnswer("call_a", "t1", "approve", accepted=True, by=_ME, at=NOW)
    assert always == AlwaysRules("user", rules)
    assert coverage == "This allows exactly these words in the top folder of the workspace, and nothing else."
    assert _grants(asked) == [Grant("user", rules, "default", "t1", str(tmp_path), "call_a", _ME, NOW, id=1)]


async def test_a_call_is_approved_and_all_with_the_same_beginning_allowed_in_one_step(
    asked: Rows, tmp_path: Path
) -> None:
    _runs(asked, "git status -s && rm -r out")

    given, always, coverage = await answer_always(
        asked.path, "call_a", ("allow", "project", "prefix"), by=_ME, clock=FixedClock()
    )

    rules, prefixes = ("bash(git status *)", "bash(rm -r out)"), ("bash(git status *)",)
    assert (given.accepted, always) == (True, AlwaysRules("project", rules, prefixes=prefixes))
    assert "git status with any arguments" in coverage
    assert "exactly as written: rm -r out" in coverage
    where = ("default", "t1", str(tmp_path), "call_a", _ME, NOW)
    assert _grants(asked) == [Grant("project", rules, *where, id=1, prefixes=prefixes)]


@pytest.mark.parametrize(
    ("command", "rule", "said"),
    [
        ("rm -r out", "prefix", "Its exact rule, --rule exact: bash(rm -r out)"),
        ("git add *.py", "exact", "Its prefix rule, --rule prefix: bash(git add *)"),
        ("sudo ls", "prefix", "cannot be always allowed"),
    ],
)
async def test_a_rule_that_there_is_none_of_names_the_other(
    asked: Rows, command: str, rule: RuleChoice, said: str
) -> None:
    _runs(asked, command)

    with pytest.raises(AnswerRefused, match=re.escape(said)):
        await answer_always(asked.path, "call_a", ("allow", "thread", rule), by=_ME)

    assert (await _answers(asked), _grants(asked)) == ({}, [])


@pytest.mark.parametrize(
    ("command", "rule", "stored", "prefixes"),
    [
        ("rm -r out", "exact", "bash(rm -r out)", ()),
        ("rm -r out", "prefix", "bash(rm *)", ("bash(rm *)",)),
        ("git push -f", "prefix", "bash(git push *)", ("bash(git push *)",)),
    ],
)
async def test_a_call_is_rejected_and_its_like_denied_in_one_step(
    asked: Rows, tmp_path: Path, command: str, rule: RuleChoice, stored: str, prefixes: tuple[str, ...]
) -> None:
    _runs(asked, command)

    choice: tuple[GrantEffect, GrantScope, RuleChoice] = ("deny", "project", rule)
    given, always, _ = await answer_always(asked.path, "call_a", choice, "no", by=_ME, clock=FixedClock())

    assert given == RecordedAnswer("call_a", "t1", "reject", accepted=True, by=_ME, at=NOW)
    assert always == AlwaysRules("project", (stored,), prefixes=prefixes, effect="deny")
    where = ("default", "t1", str(tmp_path), "call_a", _ME, NOW)
    assert _grants(asked) == [Grant("project", (stored,), *where, effect="deny", id=1, prefixes=prefixes)]
    assert (await _answers(asked))["call_a"].reason == f"always denied in this project: {stored}. no"


async def test_a_call_of_which_no_rule_can_be_made_stays_open(asked: Rows) -> None:
    _runs(asked, "sudo ls")

    with pytest.raises(AnswerRefused, match="'call_a' cannot be always allowed and is still pending"):
        await answer_always(asked.path, "call_a", ("allow", "thread", "exact"), by=_ME)

    assert (await _answers(asked), _grants(asked)) == ({}, [])


async def test_no_permission_is_stored_if_another_answer_was_first(asked: Rows) -> None:
    asked.decision("reject")

    given, always, _ = await answer_always(asked.path, "call_a", ("allow", "thread", "exact"), by=_ME)

    assert (given.kind, given.accepted, always.rules, _grants(asked)) == ("reject", False, (), [])


def test_a_call_is_found_by_its_id_with_its_thread_also_if_it_does_not_wait(rows: Rows) -> None:
    for thread_id in ("t1", "t2"):
        rows.thread(thread_id, workspace="/w", mode="acceptEdits")
        rows.call(record_of("success"), thread_id)

    found = find_waiting_call(rows.path, "t2:call_a")

    assert (found.name, found.view, found.workspace) == ("t2:call_a", None, Path("/w"))
    assert found.scope == Scope("t2", "acceptEdits")
    for text in ("call_a", "call_x"):
        with pytest.raises(UnknownId):
            find_waiting_call(rows.path, text)


async def test_a_permission_is_revoked_once(rows: Rows) -> None:
    rows.grant("bash(ls)")
    rows.grant("bash(rm x)")

    revoked = await revoke_grant(rows.path, "2", by=_ME)

    assert (revoked.rules, [grant.id for grant in _grants(rows)]) == (("bash(rm x)",), [1])
    with pytest.raises(UnknownId, match="Saved permissions: 1"):
        await revoke_grant(rows.path, "2", by=_ME)


@pytest.mark.parametrize("text", ["", "0", "x", "01", "1; DROP TABLE grants"])
async def test_an_id_that_no_permission_has_revokes_nothing(rows: Rows, text: Any) -> None:
    rows.grant("bash(ls)")

    with pytest.raises(UnknownId):
        await revoke_grant(rows.path, text, by=_ME)

    assert len(_grants(rows)) == 1
