import asyncio
import json
import subprocess
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
from tests.fakes.stepping_clock import NOW, FixedClock
from tests.fakes.waiting import is_running

_ME = "cli pid 1"


@pytest.fixture
def broken(rows: Rows, tmp_path: Path) -> Rows:
    rows.thread(next_nodes=("tool_execution",), workspace=str(tmp_path))
    rows.call(record_of("executing", kind="execute"))
    rows.journal("executing")
    return rows


async def _decide(
    broken: Rows, *decisions: Decision, thread: str | None = None, by: str = _ME, end_processes: bool = False
) -> list[RecordedAnswer]:
    return await decide_calls(
        broken.path, thread, decisions, by=by, end_processes=end_processes, clock=FixedClock()
    )


async def _answers(broken: Rows) -> dict[str, Answer]:
    async with await Database.open(broken.path) as database:
        return await SqliteDecisions(database).find_answers("t1", [Question("recovery", "call_a", 1, "d1")])


async def test_a_call_whose_process_is_dead_is_decided_before_anyone_asks(broken: Rows) -> None:
    given = await _decide(broken, Decision("done", "call_a", "built"))

    assert given == [RecordedAnswer("call_a", "t1", "done", accepted=True, by=_ME, at=NOW)]
    assert await _answers(broken) == {"call_a": Answer("done", _ME, NOW, reason="built")}


async def test_an_interrupted_call_is_shown_with_its_output_and_what_the_files_say(
    broken: Rows, tmp_path: Path
) -> None:
    FileBlobs(blob_dir(broken.path)).spool("t1", "call_a", 1).write_text("half\n")
    target, text = tmp_path / "a.txt", "after\n"
    target.write_text(text)
    intent = {"path": str(target), "before_sha256": None, "after_sha256": sha256(text.encode()).hexdigest()}
    arguments = {"file_path": "a.txt", "content": text}
    broken.call(record_of("executing", "call_w", tool_name="write_file", kind="write", arguments=arguments))
    broken.journal("executing", call_id="call_w", intent=json.dumps(intent))

    command, write = await interrupted_calls(broken.path, "t1")

    record = command.view.record
    assert (command.name, record["status"], record["stored_status"]) == ("call_a", "interrupted", "executing")
    assert (command.found.question.reason, command.found.partial_output) == ("outcome_unknown", "half")
    assert [one.found.finding_verdict for one in (command, write)] == ["unknown", "already_applied"]


async def test_all_decides_what_is_not_named_and_not_decided(broken: Rows) -> None:
    for call_id in ("call_b", "call_c"):
        broken.call(record_of("interrupted", call_id, reason="never_started"))
    broken.decision("retry", "recovery", call_id="call_c")

    given = await _decide(broken, Decision("cancel", "all"), Decision("retry", "call_b"), thread="t1")

    assert {one.call_id: (one.kind, one.accepted) for one in given} == {
        "call_b": ("retry", True),
        "call_a": ("cancel", True),
    }


async def test_the_first_decision_wins_and_a_later_one_names_it(broken: Rows) -> None:
    await _decide(broken, Decision("cancel", "call_a"))

    [late] = await _decide(broken, Decision("retry", "call_a"), by="cli pid 2")

    assert late == RecordedAnswer("call_a", "t1", "cancel", accepted=False, by=_ME, at=NOW)


@pytest.mark.parametrize(("status", "attempt"), [("cancelled", 1), ("pending", 2)])
async def test_a_decision_after_the_first_was_applied_names_whose_that_was(
    broken: Rows, status: str, attempt: int
) -> None:
    broken.call(record_of(status, "call_b", attempt=attempt))
    broken.decision("retry", "recovery", call_id="call_b", applied_at=NOW)

    [late] = await _decide(broken, Decision("done", "call_b"), thread="t1", by="late")

    assert late == RecordedAnswer("call_b", "t1", "retry", accepted=False, by="cli pid 7", at=START)


async def test_of_decisions_made_at_once_exactly_one_is_accepted(broken: Rows) -> None:
    given = await asyncio.gather(
        *(_decide(broken, Decision("cancel", "call_a"), by=f"cli pid {number}") for number in range(8))
    )

    assert sum(one.accepted for [one] in given) == 1


def _start_process(broken: Rows) -> "subprocess.Popen[bytes]":
    process = subprocess.Popen(["sleep", "60"], start_new_session=True)
    columns = (process.pid, process_started(process.pid), boot_id())
    broken.execute("UPDATE journal SET process_group = ?, process_started = ?, boot_id = ?", *columns)
    return process


@pytest.mark.parametrize("is_asked", [True, False])
async def test_processes_of_a_cancelled_call_end_only_if_that_is_asked_for(broken: Rows, is_asked: bool) -> None:
    with _start_process(broken) as left:
        [given] = await _decide(broken, Decision("cancel", "call_a"), end_processes=is_asked)
        is_left = is_running(left.pid)
        left.kill()

    assert (given.accepted, is_left) == (True, not is_asked)


async def test_a_call_that_still_runs_is_retried_only_once_it_was_ended(broken: Rows) -> None:
    with _start_process(broken) as left:
        [shown] = await interrupted_calls(broken.path, None)

        with pytest.raises(AnswerRefused, match=rf"pid {left.pid}.*--end-processes"):
            await _decide(broken, Decision("retry", "call_a"))
        refused = await _answers(broken)
        [given] = await _decide(broken, Decision("retry", "call_a"), end_processes=True)
        is_left = is_running(left.pid)

    assert (shown.found.processes, refused, given.accepted, is_left) == ((left.pid,), {}, True, False)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("success", r"its status is success\. .*`graph-agent recover`"),
        ("awaiting_approval", r"its status is awaiting_approval\. .*`graph-agent approvals`"),
    ],
)
async def test_a_call_that_is_not_interrupted_is_not_decided(broken: Rows, status: str, words: str) -> None:
    broken.call(record_of(status, "call_b"))

    with pytest.raises(AnswerRefused, match=words):
        await _decide(broken, Decision("cancel", "call_b"))


async def test_a_call_that_a_living_process_runs_is_not_decided(broken: Rows) -> None:
    broken.lease()

    with pytest.raises(AnswerRefused, match="The process that holds its thread is running it"):
        await _decide(broken, Decision("cancel", "call_a"))
    assert await interrupted_calls(broken.path, None) == []


async def test_a_call_is_decided_once_in_one_command_and_has_to_exist(broken: Rows) -> None:
    with pytest.raises(AnswerRefused, match="Two options decide about call"):
        await _decide(broken, Decision("cancel", "call_a"), Decision("retry", "t1:call_a"))
    with pytest.raises(UnknownId):
        await _decide(broken, Decision("cancel", "call_z"), thread="t1")
    assert await _answers(broken) == {}
