import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from graph_agent.calls import FINAL
from graph_agent.config.paths import blob_dir
from graph_agent.errors import DamagedDatabase, UnknownId
from graph_agent.inspect import Reader, ToolStatistics
from graph_agent.inspect.calls import CallView, effective_record, thread_status, view_attempts
from graph_agent.ports import Intent, JournalRow, Outcome, RowStatus, SystemClock
from graph_agent.ports.background import boot_id, process_started
from graph_agent.ports.read_store import Attempt, StandingAnswer, StoredAnswer
from graph_agent.storage import open_read_store
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.journal import INLINE_BYTES, SqliteJournal
from tests.fakes.database_rows import START, Rows, record_of
from tests.graph_agent.storage.sqlite.looking import execute

_OUTCOME = {"status": "error", "output": "partly", "error": "exit code 2"}
_ANSWER = StandingAnswer("approve", "", "cli pid 7", START, None)


def test_calls_come_newest_thread_first_and_in_each_as_the_model_asked(rows: Rows, reader: Reader) -> None:
    rows.thread("old", updated_at="1")
    rows.thread("new", updated_at="2")
    for thread_id in ("old", "new"):
        rows.call(record_of("success", "call_z"), thread_id)
        rows.call(record_of("success", "call_a"), thread_id)

    order = [(view.thread_id, view.record["call_id"]) for view in reader.calls()]
    of_old = [view.record["call_id"] for view in reader.calls("old")]
    shared = reader.shared_call_ids()

    assert order == [("new", "call_z"), ("new", "call_a"), ("old", "call_z"), ("old", "call_a")]
    assert of_old == ["call_z", "call_a"]
    assert shared == {"call_z", "call_a"}


def test_the_newest_finished_attempt_that_is_not_reverted_is_the_result(rows: Rows, reader: Reader) -> None:
    rows.thread(next_nodes=("tool_execution",))
    rows.call(record_of("executing", attempt=3))
    rows.journal("interrupted", attempt=1)
    rows.journal("error", _OUTCOME, attempt=2)
    rows.journal("success", {"output": "undone"}, attempt=3, reverted=1)

    assert reader.call("t1", "call_a") == CallView(
        "t1",
        record_of(
            "error",
            attempt=3,
            result="partly",
            error_msg="exit code 2",
            started_at=START,
            ended_at=START,
            started=True,
            stored_status="executing",
        ),
    )


@pytest.mark.parametrize(
    ("columns", "answer"),
    [
        ({}, _ANSWER),
        ({"superseded_at": START}, None),
        ({"attempt": 2}, None),
        ({"args_digest": "other"}, None),
        ({"question": "recovery"}, None),
    ],
)
def test_only_an_answer_to_this_very_question_stands(
    rows: Rows, reader: Reader, columns: dict[str, Any], answer: StandingAnswer | None
) -> None:
    rows.thread(next_nodes=("human_approval",))
    rows.call(record_of("awaiting_approval"))
    rows.decision("approve", **columns)

    approvals = reader.approvals()

    assert approvals == [CallView("t1", record_of("awaiting_approval"), answer)]
    assert approvals[0].is_waiting is (answer is None)


def test_an_approval_of_an_idle_thread_is_not_pending(rows: Rows, reader: Reader) -> None:
    rows.thread(next_nodes=())
    rows.call(record_of("awaiting_approval"))

    assert reader.approvals() == []


def test_an_incomplete_record_has_the_fields_that_readers_rely_on(rows: Rows, reader: Reader) -> None:
    rows.thread()
    rows.execute(
        "INSERT INTO call_log (thread_id, call_id, seq, tool_name, status, record, checkpoint_id, updated_at)"
        """ VALUES ('t1', 'call_a', 1, 'bash', 'error', '{"status": "error", "tool_name": "bash"}', 'c', 'then')"""
    )

    assert reader.call("t1", "call_a").record == {
        "call_id": "call_a",
        "tool_name": "bash",
        "arguments": {},
        "status": "error",
        "result": None,
        "error_msg": None,
    }


def test_a_call_that_is_not_there_is_told(rows: Rows, reader: Reader) -> None:
    with pytest.raises(UnknownId, match="Thread 't1' has no call 'call_a'"):
        reader.call("t1", "call_a")


def test_a_column_that_is_not_json_is_named_as_damage(rows: Rows, reader: Reader) -> None:
    rows.thread()
    rows.call(record_of("success"))
    rows.execute("UPDATE call_log SET record = '{'")

    with pytest.raises(DamagedDatabase, match="must hold JSON"):
        reader.calls()


def test_attempts_come_with_intent_and_process_and_without_undone_ones(rows: Rows, reader: Reader) -> None:
    intent = {"path": "/w/a", "before_sha256": None, "after_sha256": "ff", "before_blob": None}
    rows.journal("interrupted", reverted=1)
    rows.journal("interrupted", attempt=2, intent=json.dumps(intent))
    rows.journal("executing", attempt=3, process_group=7, process_started="9", boot_id="b")

    assert reader.attempts("t1", "call_a") == [
        JournalRow("call_a", 2, "run 1", "interrupted", START, intent=Intent("/w/a", None, "ff")),
        JournalRow(
            "call_a",
            3,
            "run 1",
            "executing",
            START,
            process_group=7,
            process_started="9",
            extra={"boot_id": "b"},
        ),
    ]


def test_an_intent_that_is_no_json_is_told_as_damage(rows: Rows, reader: Reader) -> None:
    rows.journal("executing", intent="{")

    with pytest.raises(DamagedDatabase, match="must hold JSON"):
        reader.attempts("t1", "call_a")


async def _record(path: Path, output: str) -> Outcome:
    outcome = Outcome("success", output, metadata={"exit_code": 0})
    async with await Database.open(path) as database:
        journal = SqliteJournal(database, FileBlobs(blob_dir(path)), SystemClock())
        await journal.claim("t1", "call_a", 1, "run", None)
        await journal.finish("t1", "call_a", 1, "run", outcome)
    return outcome


def _read(path: Path) -> object:
    store = open_read_store(path)
    [call] = store.evidence("t1", {"call_a": {"status": "executing"}})
    store.close()
    return call.attempts[0].outcome


@pytest.mark.parametrize("output", ["ok", "x" * (INLINE_BYTES + 1)])
async def test_small_and_large_outcomes_are_read_as_the_journal_recorded_them(tmp_path: Path, output: str) -> None:
    outcome = await _record(tmp_path / "db", output)

    assert _read(tmp_path / "db") == asdict(outcome)


async def test_an_outcome_whose_file_is_gone_damaged_or_swapped_is_empty(tmp_path: Path) -> None:
    await _record(tmp_path / "db", "x" * (INLINE_BYTES + 1))
    [file] = [path for path in (blob_dir(tmp_path / "db") / "objects").rglob("*") if path.is_file()]
    file.chmod(0o600)

    for content in (b"torn", FileBlobs(tmp_path).put(b"{}").encode(), None):
        file.unlink() if content is None else file.write_bytes(content)
        assert _read(tmp_path / "db") == {}


async def test_a_reference_cannot_lead_out_of_the_folder(tmp_path: Path) -> None:
    await _record(tmp_path / "db", "ok")
    async with await Database.open(tmp_path / "db") as database:
        statement = """UPDATE journal SET outcome = '{"blob": "blob:sha256:../../etc/passwd"}'"""
        await execute(database, statement)

    assert _read(tmp_path / "db") == {}


_CLAIMED = Attempt(1, "executing", None, None)
_DONE = Attempt(1, "success", "then", {"status": "success", "output": "built", "error": None})
_ANSWER_EFFECTIVE = StandingAnswer("approve", "", "cli pid 7", "then", None)


def _interrupted(status: str, reason: str, *, started: bool, **more: str) -> dict[str, Any]:
    return {"status": "interrupted", "stored_status": status, "reason": reason, "started": started, **more}


_NOT_STARTED = Attempt(1, "not_started", None, None)
_DATED = replace(_CLAIMED, started_at="now")
_UNKNOWN = _interrupted("executing", "outcome_unknown", started=True)
_FINISHED = {"status": "success", "result": "built", "error_msg": None, "ended_at": "then", "started": True}


@pytest.mark.parametrize(
    ("record", "attempts", "is_held", "changed"),
    [
        (record_of("executing"), (_CLAIMED,), True, {}),
        (record_of("executing"), (_CLAIMED,), False, _UNKNOWN),
        (record_of("executing"), (_DATED,), False, {**_UNKNOWN, "started_at": "now"}),
        (record_of("executing"), (), False, _interrupted("executing", "never_started", started=False)),
        (record_of("executing"), (_NOT_STARTED,), False, _interrupted("executing", "never_started", started=False)),
        (
            record_of("pending", approved_at="then", started=False),
            (),
            False,
            _interrupted("pending", "never_started", started=False),
        ),
        (record_of("pending", approved_at="then"), (), True, {}),
        (record_of("pending", approved_at="then", requires_input=True, risk="low"), (), False, {}),
        (record_of("pending"), (), False, {}),
        (record_of("awaiting_approval"), (), False, {}),
        (record_of("interrupted"), (_DONE,), False, {**_FINISHED, "stored_status": "interrupted"}),
    ],
)
def test_a_reader_shows_the_status_that_the_next_run_would_give(
    record: dict[str, Any], attempts: tuple[Attempt, ...], is_held: bool, changed: dict[str, Any]
) -> None:
    assert effective_record(record, attempts, is_held=is_held) == {**record, **changed}


@pytest.mark.parametrize("status", sorted(FINAL))
def test_a_final_record_is_shown_as_it_is_stored(status: str) -> None:
    record = record_of(status)

    assert effective_record(record, (_DONE,), is_held=False) == record


_WAITING = CallView("t1", record_of("awaiting_approval"))
_BROKEN = CallView("t1", record_of("interrupted"))
_ANSWERED = CallView("t1", record_of("awaiting_approval"), _ANSWER_EFFECTIVE)


@pytest.mark.parametrize(
    ("calls", "is_idle", "is_held", "status"),
    [
        ([_WAITING, _BROKEN], False, True, "interrupted"),
        ([_WAITING], False, True, "waiting"),
        ([_ANSWERED], False, True, "running"),
        ([_ANSWERED], False, False, "waiting"),
        ([CallView("t1", record_of("interrupted"), _ANSWER_EFFECTIVE)], False, False, "interrupted"),
        ([CallView("t1", record_of("pending"))], False, False, "resumable"),
        ([_BROKEN], True, False, "idle"),
    ],
)
def test_interrupted_calls_come_before_approvals_and_both_before_the_living_process(
    calls: list[CallView], is_idle: bool, is_held: bool, status: str
) -> None:
    assert thread_status(calls, is_idle=is_idle, is_held=is_held) == status


_ADD = """
INSERT INTO background_shells (thread_id, call_id, attempt, command, folder, started_at) VALUES (?, ?, 1, ?, '/', ?)
"""


def _shell(rows: Rows, call: str, thread: str = "t1", **journal: Any) -> None:
    here: dict[str, Any] = {"process_started": process_started(os.getpid()), "boot_id": boot_id()}
    rows.journal("success", thread_id=thread, call_id=call, process_group=os.getpid(), **(here | journal))
    rows.execute(_ADD, thread, call, f"run {call}", START)


def test_what_runs_is_told_and_what_has_ended_or_only_has_its_number_is_not(rows: Rows, reader: Reader) -> None:
    for thread in ("t1", "t2"):
        rows.thread(thread)
    _shell(rows, "a")
    _shell(rows, "b", process_started="1")
    _shell(rows, "c", boot_id="before")
    _shell(rows, "d", "t2")
    _shell(rows, "e")
    rows.execute("UPDATE background_shells SET ended_at = started_at WHERE call_id = 'e'")

    of_one, of_all = reader.shells("t1"), reader.shells()

    told = [(shell.shell_id, shell.command, shell.pid) for shell in of_one]
    assert told == [("sh1", "run a", os.getpid())]
    assert [(shell.thread_id, shell.shell_id) for shell in of_all] == [("t1", "sh1"), ("t2", "sh4")]


@pytest.fixture
def logged(rows: Rows) -> Rows:
    for thread_id in ("t1", "t2"):
        rows.thread(thread_id)
        rows.call(record_of("success"), thread_id)
    rows.call(record_of("success", "call_b", tool_name="ls"))
    return rows


def test_attempts_of_all_threads_are_counted_by_tool(logged: Rows, reader: Reader) -> None:
    logged.journal("interrupted", started_at=START, ended_at="2026-11-28T10:00:09.000Z")
    logged.journal("success", {}, attempt=2, started_at=START, ended_at="2026-11-28T10:00:01.500Z")
    logged.journal("error", {}, thread_id="t2", started_at=START, ended_at="2026-11-28T10:00:00.500Z")
    logged.journal("not_started", call_id="call_b")
    logged.journal("executing", call_id="call_b", attempt=2)

    assert reader.statistics() == [
        ToolStatistics("bash", 3, 1, 1, 1, 2.0, 1.0, 1.5),
        ToolStatistics("ls", 1, 0, 0, 1, 0, None, None),
    ]


def test_p95_leaves_out_the_slowest_of_twenty(logged: Rows, reader: Reader) -> None:
    for number in range(1, 21):
        logged.journal("success", {}, attempt=number, ended_at=f"2026-11-28T10:00:{number:02}.000Z")

    [statistics] = reader.statistics()

    assert (statistics.executions, statistics.p95_s, statistics.total_s) == (20, 19.0, 210.0)


def test_a_clock_that_was_put_back_makes_no_negative_time(logged: Rows, reader: Reader) -> None:
    logged.journal("success", {}, ended_at="2026-11-28T09:00:00.000Z")

    assert [item.total_s for item in reader.statistics()] == [0.0]


def _answer(question: str, attempt: int, kind: str) -> StoredAnswer:
    return StoredAnswer(question, attempt, "d", StandingAnswer(kind, "", "me", f"at {attempt}", None))


@pytest.mark.parametrize(
    ("rows", "is_held", "statuses"),
    [
        ([], False, ["never_started"]),
        (["not_started"], False, ["never_started"]),
        (["executing"], True, ["running"]),
        (["executing"], False, ["outcome_unknown"]),
        (["interrupted", "executing"], True, ["outcome_unknown", "running"]),
        (["interrupted", "error"], True, ["outcome_unknown", "error"]),
        (["executing", "success"], False, ["outcome_unknown", "success"]),
    ],
)
def test_every_attempt_says_how_it_ended_and_keeps_its_own_answers(
    rows: list[RowStatus], is_held: bool, statuses: list[str]
) -> None:
    journal = [JournalRow("c", number, "run", status, "then") for number, status in enumerate(rows, 1)]
    answers = [_answer("approval", 1, "approve"), _answer("recovery", 1, "retry")]

    views = view_attempts(journal, answers, is_held=is_held)

    assert [view.status for view in views] == statuses
    assert [(view.approval, view.recovery) for view in views] == [
        (answers[0].answer, answers[1].answer),
        *[(None, None)] * (len(views) - 1),
    ]
