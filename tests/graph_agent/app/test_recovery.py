import asyncio
import json
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from graph_agent.app.approvals import RecordedAnswer
from graph_agent.app.recovery import Decision, decide_calls, interrupted_calls
from graph_agent.config.paths import blob_dir
from graph_agent.errors import AnswerRefused, UnknownId
from graph_agent.ports import Answer, Question
from graph_agent.ports.background import boot_id, process_started
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions
from tests.fakes.database_rows import START, Rows, record_of
from tests.fakes.waiting import is_running

_NOW = "2026-11-28T12:00:00.000Z"


class _FixedClock:
    def now(self) -> str:
        return _NOW


@pytest.fixture
def rows(tmp_path: Path) -> Iterator[Rows]:
    filled = Rows(tmp_path / "graph-agent.db")
    filled.thread(next_nodes=("tool_execution",), workspace=str(tmp_path))
    filled.call(record_of("executing", kind="execute"))
    filled.journal("executing")
    yield filled
    filled.close()


def _left_running() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(["sleep", "60"], start_new_session=True)


async def _standing(rows: Rows, question: Question) -> dict[str, Answer]:
    async with await Database.open(rows.path) as database:
        return await SqliteDecisions(database).find_answers("t1", [question])


async def test_a_call_whose_process_is_dead_is_decided_before_anyone_asks(rows: Rows) -> None:
    given = await decide_calls(
        rows.path, None, [Decision("done", "call_a", "built")], by="cli pid 1", clock=_FixedClock()
    )

    assert given == [RecordedAnswer("call_a", "t1", "done", accepted=True, by="cli pid 1", at=_NOW)]
    assert await _standing(rows, Question("recovery", "call_a", 1, "d1")) == {
        "call_a": Answer("done", "cli pid 1", _NOW, reason="built")
    }


async def test_what_is_known_of_a_call_is_shown_with_its_output(rows: Rows) -> None:
    FileBlobs(blob_dir(rows.path)).spool("t1", "call_a", 1).write_text("half\n")

    [call] = await interrupted_calls(rows.path, "t1")

    assert (call.name, call.view.record["status"], call.view.record["stored_status"]) == (
        "call_a",
        "interrupted",
        "executing",
    )
    assert (call.found.question.reason, call.found.partial_output) == ("outcome_unknown", "half")


async def test_what_the_files_say_about_a_write_is_shown(rows: Rows, tmp_path: Path) -> None:
    target, text = tmp_path / "a.txt", "after\n"
    target.write_text(text)
    intent = {"path": str(target), "before_sha256": None, "after_sha256": sha256(text.encode()).hexdigest()}
    arguments = {"file_path": "a.txt", "content": text}
    rows.call(record_of("executing", "call_w", tool_name="write_file", kind="write", arguments=arguments))
    rows.journal("executing", call_id="call_w", intent=json.dumps(intent))

    found = {call.name: call.found.finding_verdict for call in await interrupted_calls(rows.path, None)}

    assert found == {"call_a": "unknown", "call_w": "already_applied"}


async def test_all_decides_what_is_not_named_and_not_decided(rows: Rows) -> None:
    for call_id in ("call_b", "call_c"):
        rows.call(record_of("interrupted", call_id, reason="never_started"))
    rows.decision("retry", "recovery", call_id="call_c")

    given = await decide_calls(
        rows.path, "t1", [Decision("cancel", "all"), Decision("retry", "call_b")], by="cli pid 1"
    )

    assert {one.call_id: (one.kind, one.accepted) for one in given} == {
        "call_b": ("retry", True),
        "call_a": ("cancel", True),
    }


async def test_the_first_decision_wins_and_a_later_one_is_told(rows: Rows) -> None:
    await decide_calls(rows.path, None, [Decision("cancel", "call_a")], by="cli pid 1", clock=_FixedClock())

    [late] = await decide_calls(rows.path, None, [Decision("retry", "call_a")], by="cli pid 2")

    assert late == RecordedAnswer("call_a", "t1", "cancel", accepted=False, by="cli pid 1", at=_NOW)


@pytest.mark.parametrize(("status", "attempt"), [("cancelled", 1), ("pending", 2)])
async def test_a_decision_that_comes_after_the_first_was_taken_in_is_told_whose_that_was(
    rows: Rows, status: str, attempt: int
) -> None:
    rows.call(record_of(status, "call_b", attempt=attempt))
    rows.decision("retry", "recovery", call_id="call_b", applied_at=_NOW)

    [late] = await decide_calls(rows.path, "t1", [Decision("done", "call_b")], by="late")

    assert late == RecordedAnswer("call_b", "t1", "retry", accepted=False, by="cli pid 7", at=START)


async def test_of_decisions_made_at_once_exactly_one_is_accepted(rows: Rows) -> None:
    given = await asyncio.gather(
        *(decide_calls(rows.path, None, [Decision("cancel", "call_a")], by=f"cli pid {n}") for n in range(8))
    )

    assert sum(one.accepted for [one] in given) == 1


def _note_process(rows: Rows, pid: int) -> None:
    columns = (pid, process_started(pid), boot_id())
    rows.execute("UPDATE journal SET process_group = ?, process_started = ?, boot_id = ?", *columns)


@pytest.mark.parametrize("is_asked", [True, False])
async def test_what_a_cancelled_call_left_running_ends_where_that_is_asked_for(rows: Rows, is_asked: bool) -> None:
    with _left_running() as left:
        _note_process(rows, left.pid)
        [given] = await decide_calls(
            rows.path, None, [Decision("cancel", "call_a")], by="cli pid 1", end_processes=is_asked
        )
        is_left = is_running(left.pid)
        left.kill()

    assert (given.accepted, is_left) == (True, not is_asked)


async def test_a_call_that_still_runs_is_retried_only_once_it_was_ended(rows: Rows) -> None:
    with _left_running() as left:
        _note_process(rows, left.pid)
        [shown] = await interrupted_calls(rows.path, None)

        with pytest.raises(AnswerRefused, match=rf"pid {left.pid}.*--end-processes"):
            await decide_calls(rows.path, None, [Decision("retry", "call_a")], by="cli pid 1")
        refused = await _standing(rows, Question("recovery", "call_a", 1, "d1"))
        [given] = await decide_calls(
            rows.path, None, [Decision("retry", "call_a")], by="cli pid 1", end_processes=True
        )
        is_left = is_running(left.pid)

    assert (shown.found.processes, refused, given.accepted, is_left) == ((left.pid,), {}, True, False)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("success", "it is success; `graph-agent recover`"),
        ("awaiting_approval", "it is awaiting_approval; it waits for an approval"),
    ],
)
async def test_a_call_that_is_not_interrupted_is_not_decided(rows: Rows, status: str, words: str) -> None:
    rows.call(record_of(status, "call_b"))

    with pytest.raises(AnswerRefused, match=words):
        await decide_calls(rows.path, None, [Decision("cancel", "call_b")], by="cli pid 1")


async def test_a_call_that_a_living_process_runs_is_not_decided(rows: Rows) -> None:
    rows.lease()

    with pytest.raises(AnswerRefused, match="the process that holds its thread is running it"):
        await decide_calls(rows.path, None, [Decision("cancel", "call_a")], by="cli pid 1")
    assert await interrupted_calls(rows.path, None) == []


async def test_one_call_is_decided_once_in_one_command(rows: Rows) -> None:
    twice = [Decision("cancel", "call_a"), Decision("retry", "t1:call_a")]

    with pytest.raises(AnswerRefused, match="decided on twice"):
        await decide_calls(rows.path, None, twice, by="cli pid 1")
    with pytest.raises(UnknownId):
        await decide_calls(rows.path, "t1", [Decision("cancel", "call_z")], by="cli pid 1")
