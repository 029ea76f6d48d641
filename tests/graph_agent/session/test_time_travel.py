import sqlite3
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from graph_agent.app.file_changes import thread_changes
from graph_agent.app.reader import read_database
from graph_agent.app.rewind import RewindOutcome, RewindRequest, rewind
from graph_agent.errors import UsageError
from graph_agent.events import WarningIssued
from graph_agent.ports import Outcome, Rewind, SystemClock
from graph_agent.session.time_travel import JournalFacts, load_journal_facts
from graph_agent.session.turn_result import TurnResult
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.journal import SqliteJournal
from graph_agent.storage.sqlite.rewinds import SqliteRewinds
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.scenarios.family import PARENT, Family, TaskModel, asked
from tests.scenarios.stage import THREAD, Stage, finish_questions


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[SqliteJournal]:
    async with await Database.open(tmp_path / "a.db") as database:
        yield SqliteJournal(database, FileBlobs(tmp_path / "blobs"), SystemClock())


def state(records: Mapping[str, str], *asked: str) -> dict[str, Any]:
    calls: list[Any] = [{"id": call_id, "name": "bash", "args": {}} for call_id in asked]
    return {
        "calls": {call_id: {"call_id": call_id, "status": status} for call_id, status in records.items()},
        "messages": [AIMessage("", tool_calls=calls)],
    }


async def test_the_journal_tells_which_open_calls_have_a_result_or_may_have_had_an_effect(
    journal: SqliteJournal,
) -> None:
    for call_id in ("finished", "broken", "spared", "over"):
        await journal.claim("t", call_id, 1, "owner", None)
    await journal.finish("t", "finished", 1, "owner", Outcome("error", "out"))
    await journal.finish("t", "over", 1, "owner", Outcome("success", "out"))
    await journal.record_interruption("t", "spared", 1, "owner", "not_started")
    records = {"over": "success", "broken": "awaiting_approval", "spared": "pending", "new": "pending"}

    found = await load_journal_facts("t", state(records, "over", "broken", "spared", "new", "finished"), journal)

    assert found == JournalFacts(frozenset({"finished"}), frozenset({"finished", "broken"}))
    assert await load_journal_facts("t", {}, journal) == JournalFacts()


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "agent.db", ScriptedModel())


def query(stage: Stage, statement: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(stage.database, isolation_level=None)
    found = connection.execute(statement).fetchall()
    connection.close()
    return found


def journal_rows(stage: Stage) -> list[tuple[object, ...]]:
    return query(stage, "SELECT call_id, attempt, status, reverted FROM journal ORDER BY call_id, attempt")


def shown(stage: Stage) -> list[str]:
    with read_database(stage.database) as reader:
        return [str(entry.body["content"]) for entry in reader.transcript(THREAD) if entry.role == "user"]


async def go_to(stage: Stage, text: str, *, is_undo: bool = False) -> RewindOutcome:
    query(stage, f"UPDATE threads SET workspace = '{stage.database.parent}'")  # noqa: S608 - a path of pytest's
    return await rewind(stage.database, RewindRequest(text, is_undo=is_undo, is_forced=True), lambda _: True)


async def test_a_call_after_a_rewind_is_a_new_attempt_that_needs_its_own_approval(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a")), text("one"), text("two"))
    async with stage.open_session() as session:
        asking = await session.send("go")
        await finish_questions(session, asking)

    await go_to(stage, asking.checkpoint_id)
    async with stage.open_session() as session:
        again = await session.start()
        await session.decide(again.questions[0].question, "approve")
        rest = await session.proceed()

    assert [item.question.kind for item in again.questions] == ["approval"]
    assert (rest.status, [call_id for call_id, _ in stage.toolbox.ran]) == ("done", ["w", "w"])
    assert journal_rows(stage) == [("w", 1, "success", 1), ("w", 2, "success", 0)]


@pytest.mark.slow
async def test_a_rewind_to_any_checkpoint_can_be_continued_and_undone(stage: Stage) -> None:
    stage.model = ScriptedModel(
        calls(("a", "write_a"), ("b", "read_b")), text("one"), calls(("c", "write_c")), text("two")
    )
    async with stage.open_session() as session:
        await finish_questions(session, await session.send("t1"))
        await finish_questions(session, await session.send("t2"))
    ran = len(stage.toolbox.ran)

    for (place,) in query(stage, "SELECT checkpoint_id FROM checkpoints ORDER BY checkpoint_id"):
        await go_to(stage, str(place))
        await go_to(stage, THREAD, is_undo=True)
        assert shown(stage) == ["t1", "t2"]
        async with stage.open_session() as session:
            assert (await session.start()).status == "done"
    assert len(stage.toolbox.ran) == ran

    for (place,) in query(stage, "SELECT checkpoint_id FROM checkpoints ORDER BY checkpoint_id LIMIT 20")[::3]:
        await go_to(stage, str(place))
        stage.model = ScriptedModel()
        async with stage.open_session() as session:
            rest = await finish_questions(session, await session.start())
        assert rest.status == "done"
    settled = query(stage, "SELECT status FROM journal WHERE reverted = 0")
    assert {status for (status,) in settled} <= {"success"}


async def test_a_reverted_command_is_not_reported_as_never_run(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("x", "fail_a"), ("w", "write_a")), text("one"), text("two"))
    async with stage.open_session() as session:
        asking = await session.send("go")
        await finish_questions(session, asking)
    query(stage, "UPDATE journal SET intent = NULL")

    await go_to(stage, asking.checkpoint_id)
    async with stage.open_session() as session:
        rest = await session.start()
        for item in rest.questions:
            await session.decide(item.question, "reject")
        await session.proceed()

    told = [answer for kind, answer in stage.model.sent() if kind == "tool"]
    assert told[-1].startswith("Not run again: it may already have had an effect")


async def test_a_rewind_from_a_pruned_checkpoint_cannot_be_undone_and_changes_nothing(stage: Stage) -> None:
    stage.model = ScriptedModel(text("one"), text("two"))
    async with stage.open_session() as session:
        first = await session.send("t1")
        await session.send("t2")
    await go_to(stage, first.checkpoint_id)
    query(stage, "DELETE FROM checkpoints WHERE checkpoint_id = (SELECT head FROM rewinds)")

    with pytest.raises(UsageError, match="was pruned; it cannot be undone"):
        await go_to(stage, THREAD, is_undo=True)

    assert shown(stage) == ["t1"]
    assert query(stage, "SELECT status FROM rewinds") == [("done",)]


async def test_a_recorded_rewind_to_a_checkpoint_that_is_gone_does_not_lock_the_thread(stage: Stage) -> None:
    stage.model = ScriptedModel(text("one"), text("two"))
    async with stage.open_session() as session:
        await session.send("t1")
    query(
        stage,
        "INSERT INTO rewinds (thread_id, checkpoint_id, head, scope, plan, status, at) SELECT thread_id, 'gone', "
        """checkpoint_id, 'both', '{"files": [], "calls": [], "reverts": null}', 'planned', '' FROM threads""",
    )

    async with stage.open_session() as session:
        await session.send("t2")

    assert shown(stage) == ["t1", "t2"]
    assert query(stage, "SELECT status FROM rewinds") == [("done",)]
    warned = [event.text for event in stage.events if isinstance(event, WarningIssued)]
    assert f"the conversation of {THREAD} stays as it is: checkpoint gone is gone" in warned[0]


async def test_a_call_that_ran_before_a_rewind_has_an_unknown_outcome(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a")), text("one"))
    async with stage.open_session() as session:
        asking = await session.send("go")
        await session.decide(asking.questions[0].question, "approve")
        await session.proceed()
    query(stage, "UPDATE journal SET intent = NULL")
    with read_database(stage.database) as reader:
        [marked] = [
            str(place)
            for (place,) in query(stage, "SELECT checkpoint_id FROM checkpoints")
            if reader.inspection(THREAD, str(place)).state.next == ("tool_execution",)
        ]

    await go_to(stage, marked)
    async with stage.open_session() as session:
        rest = await session.start()

    [item] = rest.questions
    assert (item.question.kind, item.question.reason) == ("recovery", "outcome_unknown")


async def test_an_interrupted_rewind_is_finished_by_the_next_run(stage: Stage) -> None:
    stage.model = ScriptedModel(text("one"), text("two"))
    async with stage.open_session() as session:
        first = await session.send("t1")
        second = await session.send("t2")
    async with await Database.open(stage.database) as database:
        noted = Rewind(THREAD, first.checkpoint_id, second.checkpoint_id, "both")
        await SqliteRewinds(database, SystemClock()).plan(noted)

    async with stage.open_session() as session:
        await session.start()

    warnings = [event.text for event in stage.events if isinstance(event, WarningIssued)]
    assert shown(stage) == ["t1"]
    assert warnings == [f"An interrupted rewind to checkpoint {first.checkpoint_id} was finished now"]
    assert query(stage, "SELECT status FROM rewinds") == [("done",)]


_TASK = calls(("c1", "new_task", {"prompt": "ALPHA", "description": "first"}))


def _write(name: str, content: str) -> tuple[str, str, dict[str, str]]:
    return ("w1", "write_file", {"file_path": name, "content": content})


def _edit(name: str, old: str, new: str) -> tuple[str, str, dict[str, str]]:
    return ("e1", "edit_file", {"file_path": name, "old_string": old, "new_string": new})


async def _back(family: Family, place: str, *, is_undo: bool = False) -> RewindOutcome:
    return await rewind(family.database, RewindRequest(place, is_undo=is_undo), lambda _: True)


def _files(family: Family) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(family.workspace.iterdir())}


async def test_files_that_sub_agents_changed_are_restored_with_their_parent_and_by_an_undo(tmp_path: Path) -> None:
    deeper = calls(("c1", "new_task", {"prompt": "BETA"}))
    model = TaskModel(
        {
            "ALPHA": [calls(_write("a.txt", "child\n")), deeper, text("alpha")],
            "BETA": [calls(_write("b.txt", "grandchild\n")), calls(_edit("a.txt", "child", "both")), text("beta")],
            "go": [text("yes"), _TASK, calls(_edit("a.txt", "both", "parent")), text("done")],
        }
    )
    family = Family(tmp_path, model, mode="bypassPermissions")
    async with family.open_session() as session:
        start = (await session.send("go")).checkpoint_id
        end = await session.send("work")
    after = _files(family)
    changed = {file.path: file.by_others for file in thread_changes(family.database, PARENT, None).files}

    done = await _back(family, start)
    before, listed = _files(family), thread_changes(family.database, PARENT, None).files
    undone = await _back(family, PARENT, is_undo=True)
    async with family.open_session() as session:
        rest = await session.start()

    assert (after, changed) == ({"a.txt": "parent\n", "b.txt": "grandchild\n"}, {"a.txt": "", "b.txt": ""})
    assert (done.is_done, done.plan.irreversible, done.plan.conflicts, before, listed) == (True, (), (), {}, ())
    assert (undone.is_done, _files(family), rest.status, rest.answer) == (True, after, end.status, end.answer)


async def test_a_call_after_a_rewind_gets_a_new_sub_agent(tmp_path: Path) -> None:
    replies = [calls(_write("a.txt", "child\n")), text("alpha")]
    model = TaskModel({"ALPHA": [*replies, *replies], "go": [_TASK, text("done"), text("once more")]})
    family = Family(tmp_path, model)
    async with family.open_session() as session:
        asking = await session.send("go")
        await finish_questions(session, asking)
        with read_database(family.database) as reader:
            before_it = reader.history(PARENT)[-3].checkpoint_id

    await _back(family, before_it)
    async with family.open_session() as session:
        again = await session.continue_turn()
        second = await finish_questions(session, again)

    assert (asked(again), second.answer) == ([("first", "write_file")], "once more")
    assert _files(family) == {"a.txt": "child\n"}
    assert (again.questions[0].thread_id, model.count("ALPHA")) == (family.child("c1", undone=2), 4)


async def test_a_sub_agent_asks_again_after_a_rewind_to_its_question(
    tmp_path: Path,
) -> None:
    replies = [calls(_write("a.txt", "one\n")), calls(_write("b.txt", "two\n")), text("alpha"), text("alpha again")]
    model = TaskModel({"ALPHA": replies, "go": [_TASK, text("then"), text("done")]})
    family = Family(tmp_path, model)
    async with family.open_session() as session:
        first = await session.send("go")
        await session.decide(first.questions[0].question, "approve")
        second = await session.proceed()
        await finish_questions(session, second)

    done = await _back(family, second.checkpoint_id)
    files = _files(family)
    async with family.open_session() as session:
        again = await session.start()
        at_head = await _back_while_held(family, again)
        await session.decide(again.questions[0].question, "reject")
        rest = await session.proceed()

    assert (done.is_done, files, at_head) == (True, {"a.txt": "one\n"}, "held")
    assert [(item.thread_id, item.call["summary"]) for item in again.questions] == [
        (family.child("c1"), second.questions[0].call["summary"])
    ]
    assert (rest.answer, _files(family), model.sent("ALPHA")[-1][1][:8]) == ("done", files, "Not run:")


async def _back_while_held(family: Family, rest: TurnResult) -> str:
    try:
        await _back(family, rest.checkpoint_id)
    except Exception as error:  # noqa: BLE001 - its name is compared
        return "held" if type(error).__name__ == "ThreadHeld" else repr(error)
    return "done"


async def test_a_rewind_to_the_head_reverts_nothing_of_a_working_sub_agent(tmp_path: Path) -> None:
    replies = [calls(_write("a.txt", "one\n")), calls(_write("b.txt", "two\n")), text("alpha")]
    family = Family(tmp_path, TaskModel({"ALPHA": replies, "go": [_TASK, text("done")]}))
    async with family.open_session() as session:
        first = await session.send("go")
        await session.decide(first.questions[0].question, "approve")
        second = await session.proceed()

    seen = (await _back(family, second.checkpoint_id)).plan.rewind
    async with family.open_session() as session:
        rest = await finish_questions(session, await session.start())

    assert (seen.files, seen.calls, seen.sub_agents) == ((), (), ())
    assert (rest.answer, _files(family)) == ("done", {"a.txt": "one\n", "b.txt": "two\n"})


async def test_a_rewind_to_a_branch_that_was_left_moves_its_sub_agents_there_too(tmp_path: Path) -> None:
    model = TaskModel(
        {
            "ALPHA": [calls(("c1", "new_task", {"prompt": "BETA"})), text("alpha")],
            "BETA": [text("beta")],
            "go": [text("yes"), _TASK, text("done")],
        }
    )
    family = Family(tmp_path, model)
    async with family.open_session() as session:
        start = (await session.send("go")).checkpoint_id
        end = (await session.send("work")).checkpoint_id
    finished = _answers(family)

    await _back(family, start)
    at_start = _answers(family)
    await _back(family, end)
    again = _answers(family)
    await _back(family, PARENT, is_undo=True)

    assert sorted(finished.values()) == ["alpha", "beta", "done"]
    assert sorted(at_start.values()) == ["", "", "yes"]
    assert (again, _answers(family)) == (finished, at_start)


def _answers(family: Family) -> dict[str, str]:
    """What each thread of the family said last."""
    with read_database(family.database) as reader:
        said = {
            thread.thread_id: [
                entry.body["content"] for entry in reader.transcript(thread.thread_id) if entry.role == "assistant"
            ]
            for thread in reader.threads()
        }
    return {thread_id: str(lines[-1]) if lines else "" for thread_id, lines in said.items()}


async def test_a_sub_agents_thread_is_not_rewound_alone(tmp_path: Path) -> None:
    family = Family(tmp_path, TaskModel({"ALPHA": [text("alpha")], "go": [_TASK, text("done")]}))
    async with family.open_session() as session:
        await session.send("go")
    with read_database(family.database) as reader:
        place = reader.history(family.child("c1"))[-1].checkpoint_id

    with pytest.raises(UsageError, match=rf"is rewound with its parent.*graph-agent history {PARENT}"):
        await _back(family, place)


async def test_questions_of_sub_agents_on_abandoned_branches_are_closed(
    tmp_path: Path,
) -> None:
    replies = [calls(_write("a.txt", "one\n"))]
    family = Family(tmp_path, TaskModel({"ALPHA": replies, "go": [text("yes"), _TASK, text("done")]}))
    async with family.open_session() as session:
        start = (await session.send("go")).checkpoint_id
        await session.send("work")
    with read_database(family.database) as reader:
        waiting = reader.approvals()

    await _back(family, start)
    with read_database(family.database) as reader:
        rewound = (reader.approvals(), {thread.status for thread in reader.family(PARENT)})
    await _back(family, PARENT, is_undo=True)
    with read_database(family.database) as reader:
        again = reader.approvals()
    async with family.open_session(checkpoint=start):
        with read_database(family.database) as reader:
            elsewhere = reader.approvals()

    assert (len(waiting), rewound, elsewhere) == (1, ([], {"idle"}), [])
    assert [view.record["call_id"] for view in again] == [view.record["call_id"] for view in waiting]


@pytest.mark.sweep
async def test_a_rewind_of_parent_and_sub_agents_to_any_checkpoint_can_be_continued_and_undone(
    tmp_path: Path,
) -> None:
    deeper = calls(("c1", "new_task", {"prompt": "BETA"}))
    model = TaskModel(
        {
            "ALPHA": [calls(_write("a.txt", "child\n")), deeper, text("alpha")],
            "BETA": [calls(_write("b.txt", "grandchild\n")), text("beta")],
            "go": [_TASK, calls(_write("c.txt", "parent\n")), text("done")],
        }
    )
    family = Family(tmp_path, model)
    async with family.open_session() as session:
        await finish_questions(session, await session.send("go"))
    with read_database(family.database) as reader:
        places = [entry.checkpoint_id for entry in reader.history(PARENT)]
        threads = {thread.thread_id: (thread.status, thread.turns) for thread in reader.threads()}
    after = _files(family)

    for place in places:
        await _back(family, place)
        await _back(family, PARENT, is_undo=True)
        with read_database(family.database) as reader:
            assert {thread.thread_id: (thread.status, thread.turns) for thread in reader.threads()} == threads
            assert (reader.approvals(), _files(family)) == ([], after)
    seen = []
    for place in places[1::4]:
        await _back(family, place)
        seen.append(_files(family))
        async with family.open_session() as session:
            rest = await session.start()
            rest = await session.continue_turn() if rest.status == "resumable" else rest
            assert (await finish_questions(session, rest)).status == "done"
        assert family.workspace.exists()

    assert set(map(frozenset, seen)) > {frozenset()}
