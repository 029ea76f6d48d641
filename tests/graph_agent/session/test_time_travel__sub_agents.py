from pathlib import Path

import pytest

from graph_agent.app.file_changes import thread_changes
from graph_agent.app.reader import read_database
from graph_agent.app.rewind import RewindOutcome, RewindRequest, rewind
from graph_agent.errors import UsageError
from graph_agent.session.session import Session
from graph_agent.session.turn_result import TurnResult
from tests.fakes.scripted_model import calls, text
from tests.scenarios.family import PARENT, Family, TaskModel, asked

_TASK = calls(("c1", "new_task", {"prompt": "ALPHA", "description": "first"}))


def _write(name: str, content: str) -> tuple[str, str, dict[str, str]]:
    return ("w1", "write_file", {"file_path": name, "content": content})


def _edit(name: str, old: str, new: str) -> tuple[str, str, dict[str, str]]:
    return ("e1", "edit_file", {"file_path": name, "old_string": old, "new_string": new})


async def _back(family: Family, place: str, *, is_undo: bool = False) -> RewindOutcome:
    return await rewind(family.database, RewindRequest(place, is_undo=is_undo), lambda _: True)


async def _approved(session: Session, rest: TurnResult) -> TurnResult:
    while rest.questions:
        for item in rest.questions:
            await session.decide(item.question, "approve" if item.question.kind == "approval" else "retry")
        rest = await session.proceed()
    return rest


def _files(family: Family) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(family.workspace.iterdir())}


async def test_files_that_sub_agents_changed_go_back_with_their_parent_and_come_again(tmp_path: Path) -> None:
    deeper = calls(("c1", "new_task", {"prompt": "BETA"}))
    model = TaskModel(
        {
            "ALPHA": [calls(_write("a.txt", "child\n")), deeper, text("alpha")],
            "BETA": [calls(_write("b.txt", "grandchild\n")), calls(_edit("a.txt", "child", "both")), text("beta")],
            "go": [text("yes"), _TASK, calls(_edit("a.txt", "both", "parent")), text("done")],
        }
    )
    family = Family(tmp_path, model, mode="bypassPermissions")
    async with family.life() as session:
        start = (await session.send("go")).checkpoint_id
        end = await session.send("work")
    after = _files(family)
    changed = {file.path: file.by_others for file in thread_changes(family.database, PARENT, None).files}

    done = await _back(family, start)
    before, listed = _files(family), thread_changes(family.database, PARENT, None).files
    undone = await _back(family, PARENT, is_undo=True)
    async with family.life() as session:
        rest = await session.start()

    assert (after, changed) == ({"a.txt": "parent\n", "b.txt": "grandchild\n"}, {"a.txt": "", "b.txt": ""})
    assert (done.is_done, done.plan.irreversible, done.plan.conflicts, before, listed) == (True, (), (), {}, ())
    assert (undone.is_done, _files(family), rest.status, rest.answer) == (True, after, end.status, end.answer)


async def test_a_call_that_is_made_anew_after_a_rewind_gets_a_sub_agent_that_begins_anew(tmp_path: Path) -> None:
    replies = [calls(_write("a.txt", "child\n")), text("alpha")]
    model = TaskModel({"ALPHA": [*replies, *replies], "go": [_TASK, text("done"), text("once more")]})
    family = Family(tmp_path, model)
    async with family.life() as session:
        asking = await session.send("go")
        await _approved(session, asking)
        with read_database(family.database) as reader:
            before_it = reader.history(PARENT)[-3].checkpoint_id

    await _back(family, before_it)
    async with family.life() as session:
        again = await session.continue_turn()
        second = await _approved(session, again)

    assert (asked(again), second.answer, _files(family)) == (
        [("first", "write_file")],
        "once more",
        {"a.txt": "child\n"},
    )
    assert (again.questions[0].thread_id, model.count("ALPHA")) == (family.child("c1", undone=2), 4)


async def test_rewound_to_where_a_sub_agent_asked_it_asks_again_and_what_was_before_stays(
    tmp_path: Path,
) -> None:
    replies = [calls(_write("a.txt", "one\n")), calls(_write("b.txt", "two\n")), text("alpha"), text("alpha again")]
    model = TaskModel({"ALPHA": replies, "go": [_TASK, text("then"), text("done")]})
    family = Family(tmp_path, model)
    async with family.life() as session:
        first = await session.send("go")
        await session.decide(first.questions[0].question, "approve")
        second = await session.proceed()
        await _approved(session, second)

    done = await _back(family, second.checkpoint_id)
    files = _files(family)
    async with family.life() as session:
        again = await session.start()
        at_head = await _back_while_held(family, again)
        await session.decide(again.questions[0].question, "reject")
        rest = await session.proceed()

    assert (done.is_done, files, at_head) == (True, {"a.txt": "one\n"}, "held")
    assert [(item.thread_id, item.call["summary"]) for item in again.questions] == [
        (family.child("c1"), second.questions[0].call["summary"])
    ]
    assert (rest.answer, _files(family), model.told("ALPHA")[-1][1][:8]) == ("done", files, "Not run:")


async def _back_while_held(family: Family, rest: TurnResult) -> str:
    try:
        await _back(family, rest.checkpoint_id)
    except Exception as error:  # noqa: BLE001 - its name is compared
        return "held" if type(error).__name__ == "ThreadHeld" else repr(error)
    return "done"


async def test_rewound_to_where_it_stands_nothing_of_a_sub_agent_at_work_is_undone(tmp_path: Path) -> None:
    replies = [calls(_write("a.txt", "one\n")), calls(_write("b.txt", "two\n")), text("alpha")]
    family = Family(tmp_path, TaskModel({"ALPHA": replies, "go": [_TASK, text("done")]}))
    async with family.life() as session:
        first = await session.send("go")
        await session.decide(first.questions[0].question, "approve")
        second = await session.proceed()

    seen = (await _back(family, second.checkpoint_id)).plan.rewind
    async with family.life() as session:
        rest = await _approved(session, await session.start())

    assert (seen.files, seen.calls, seen.sub_agents) == ((), (), ())
    assert (rest.answer, _files(family)) == ("done", {"a.txt": "one\n", "b.txt": "two\n"})


async def test_a_sub_agents_thread_is_not_rewound_alone(tmp_path: Path) -> None:
    family = Family(tmp_path, TaskModel({"ALPHA": [text("alpha")], "go": [_TASK, text("done")]}))
    async with family.life() as session:
        await session.send("go")
    with read_database(family.database) as reader:
        place = reader.history(family.child("c1"))[-1].checkpoint_id

    with pytest.raises(UsageError, match=rf"goes back with its parent: `graph-agent history {PARENT}`"):
        await _back(family, place)


async def test_what_a_sub_agent_asked_that_a_rewind_or_another_branch_left_behind_is_asked_no_more(
    tmp_path: Path,
) -> None:
    replies = [calls(_write("a.txt", "one\n"))]
    family = Family(tmp_path, TaskModel({"ALPHA": replies, "go": [text("yes"), _TASK, text("done")]}))
    async with family.life() as session:
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
    async with family.life(checkpoint=start):
        with read_database(family.database) as reader:
            elsewhere = reader.approvals()

    assert (len(waiting), rewound, elsewhere) == (1, ([], {"idle"}), [])
    assert [view.record["call_id"] for view in again] == [view.record["call_id"] for view in waiting]


@pytest.mark.sweep
async def test_rewound_to_any_checkpoint_and_back_a_family_is_where_it_was_and_from_there_it_plays_on(
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
    async with family.life() as session:
        await _approved(session, await session.send("go"))
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
        async with family.life() as session:
            rest = await session.start()
            rest = await session.continue_turn() if rest.status == "resumable" else rest
            assert (await _approved(session, rest)).status == "done"
        assert family.workspace.exists()

    assert set(map(frozenset, seen)) > {frozenset()}
