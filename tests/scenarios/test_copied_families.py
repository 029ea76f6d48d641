"""A thread with sub-agents that is forked or carried elsewhere, before, in and after their lives."""

import json
from pathlib import Path

import jsonschema
import pytest

from docs._generate.thread_schema import schema
from graph_agent.app.file_changes import thread_changes
from graph_agent.app.reader import read_database
from graph_agent.app.rewind import RewindRequest, rewind
from graph_agent.app.thread_import import import_thread
from graph_agent.app.threads import PruneOrder, delete, fork, prune
from graph_agent.errors import NothingYet, UnknownId, UsageError
from graph_agent.session.session import Session
from graph_agent.session.turn_result import TurnResult
from tests.fakes.scripted_model import calls, text
from tests.fakes.thread_files import as_history, export, reseal
from tests.scenarios.family import PARENT, Family, TaskModel, asked

_COPY = "copy"
_TASK = calls(("c1", "new_task", {"prompt": "ALPHA", "description": "first"}))
_DEEPER = calls(("c1", "new_task", {"prompt": "BETA", "description": "second"}))


def _append(letter: str) -> tuple[str, str, dict[str, str]]:
    return ("b1", "bash", {"command": f"echo {letter} >> log.txt"})


def _write(name: str) -> tuple[str, str, dict[str, str]]:
    return ("w1", "write_file", {"file_path": name, "content": f"{name}\n"})


@pytest.fixture
def family(tmp_path: Path) -> Family:
    alpha = [calls(_write("a.txt")), _DEEPER, calls(_append("a")), text("alpha"), text("alpha again")]
    beta = [calls(_append("b")), text("beta"), text("beta again")]
    return Family(tmp_path, TaskModel({"ALPHA": alpha, "BETA": beta, "go": [text("yes"), _TASK]}))


async def _to_the_end(session: Session, rest: TurnResult) -> TurnResult:
    while rest.questions:
        for item in rest.questions:
            await session.decide(item.question, "approve" if item.question.kind == "approval" else "done")
        rest = await session.proceed()
    return rest


def _kin(family: Family, thread_id: str) -> list[str]:
    with read_database(family.database) as reader:
        return sorted(thread.thread_id for thread in reader.family(thread_id))


async def test_forked_after_their_lives_the_copy_has_them_and_can_be_rewound_with_what_they_did(
    family: Family,
) -> None:
    async with family.open_session() as session:
        start = (await session.send("go")).checkpoint_id
        await _to_the_end(session, await session.send("work"))
    made = await fork(family.database, PARENT, thread_id=_COPY)
    with read_database(family.database) as reader:
        begin = reader.inspection(_COPY, start).state.checkpoint_id
    changed = [file.path for file in thread_changes(family.database, _COPY, None).files]
    done = await rewind(family.database, RewindRequest(f"{_COPY}:{begin}"), lambda _: True)

    child = family.child("c1", _COPY)
    with read_database(family.database) as reader:
        deep = next(thread for thread in reader.threads() if thread.parent_thread == child)
    assert (made.open_calls, _kin(family, _COPY)) == (0, sorted([_COPY, child, deep.thread_id]))
    assert (changed, done.is_done, family.read("a.txt")) == (["a.txt"], True, "")
    assert [call.tool_name for call in done.plan.irreversible] == ["bash", "bash"]


async def test_forked_before_their_lives_the_copy_has_none_of_them(family: Family) -> None:
    async with family.open_session() as session:
        start = (await session.send("go")).checkpoint_id
        await session.send("work")
    await fork(family.database, start, thread_id=_COPY)

    assert _kin(family, _COPY) == [_COPY]


async def test_forked_while_one_waits_both_go_on_by_themselves_and_nothing_that_ran_runs_again(
    family: Family,
) -> None:
    async with family.open_session() as session:
        await session.send("go")
        asking = await session.send("work")
        await session.decide(asking.questions[0].question, "approve")
        deep = await session.proceed()
    await fork(family.database, PARENT, thread_id=_COPY)

    async with family.open_session(_COPY) as session:
        copied = await session.start()
        of_copy = await _to_the_end(session, copied)
    with read_database(family.database) as reader:
        unmoved = [view.thread_id for view in reader.approvals()]
    async with family.open_session() as session:
        rest = await _to_the_end(session, await session.start())

    assert asked(deep) == asked(copied) == [("first > second", "bash")]
    assert unmoved == [deep.questions[0].thread_id]
    assert copied.questions[0].thread_id not in unmoved
    assert (of_copy.status, rest.status) == ("done", "done")
    # Each of the two was let do what it asked for; the file was written once, before.
    assert (family.read("log.txt").split(), family.read("a.txt")) == (["b", "a", "b"], "a.txt\n")


async def test_deleted_or_pruned_a_copy_takes_its_own_along_and_no_others(family: Family) -> None:
    async with family.open_session() as session:
        await session.send("go")
        await _to_the_end(session, await session.send("work"))
    before = _kin(family, PARENT)
    await fork(family.database, PARENT, thread_id=_COPY)

    pruned = await prune(family.database, PruneOrder(1, _COPY))
    deleted = await delete(family.database, [_COPY], lambda _: True)

    assert (len(pruned.threads), len(deleted.threads)) == (3, 3)
    assert (_kin(family, PARENT), before) == (before, before)


async def _carried(family: Family, folder: Path, as_id: str | None = None) -> tuple[Family, str]:
    """The parent with its sub-agents in another database, in the same workspace; and the file."""
    written = export(family.database, PARENT)
    file = folder / "thread.json"
    file.write_text(written)
    there = Family(folder, family.model)
    await import_thread(there.database, str(file), as_id=as_id, workspace=family.workspace)
    return there, written


async def test_exported_and_imported_a_family_is_the_same_and_another_id_gives_them_ids_of_their_own(
    family: Family, tmp_path: Path
) -> None:
    async with family.open_session() as session:
        await session.send("go")
        await _to_the_end(session, await session.send("work"))
    folders = [tmp_path / name for name in ("same", "other")]
    for folder in folders:
        folder.mkdir()

    same, written = await _carried(family, folders[0])
    other, _ = await _carried(family, folders[1], _COPY)

    document = json.loads(written)
    jsonschema.validate(document, json.loads(schema()))
    assert (document["version"], as_history(export(same.database, PARENT)) == as_history(written)) == (3, True)
    assert (_kin(same, PARENT), len(_kin(other, _COPY))) == (_kin(family, PARENT), 3)
    assert family.child("c1", _COPY) in _kin(other, _COPY)
    assert [file.path for file in thread_changes(other.database, _COPY, None).files] == ["a.txt"]


@pytest.mark.parametrize("as_id", [None, _COPY])
async def test_imported_while_a_sub_agent_waits_it_asks_there_and_goes_on_where_it_stood(
    family: Family, tmp_path: Path, as_id: str | None
) -> None:
    async with family.open_session() as session:
        await session.send("go")
        asking = await session.send("work")
        await session.decide(asking.questions[0].question, "approve")
        deep = await session.proceed()
    (tmp_path / "there").mkdir()
    there, _ = await _carried(family, tmp_path / "there", as_id)

    async with there.open_session(as_id or PARENT) as session:
        again = await session.start()
        rest = await _to_the_end(session, again)

    assert asked(again) == asked(deep) == [("first > second", "bash")]
    assert (rest.status, there.read("log.txt"), there.read("a.txt")) == ("done", "b\na\n", "")


async def test_a_rewind_of_a_family_is_history_where_it_was_imported(family: Family, tmp_path: Path) -> None:
    async with family.open_session() as session:
        start = (await session.send("go")).checkpoint_id
        await _to_the_end(session, await session.send("work"))
    await rewind(family.database, RewindRequest(start), lambda _: True)
    (tmp_path / "there").mkdir()
    there, _ = await _carried(family, tmp_path / "there", _COPY)

    with pytest.raises(UsageError, match="were imported from a file"):
        await rewind(there.database, RewindRequest(_COPY, is_undo=True), lambda _: True)

    assert (family.read("a.txt"), there.read("a.txt")) == ("", "")


@pytest.mark.parametrize("way", ["rewind", "parent", "call", "row"])
async def test_a_file_cannot_speak_of_threads_that_are_not_its_own(
    family: Family, tmp_path: Path, way: str
) -> None:
    async with family.open_session() as session:
        start = (await session.send("go")).checkpoint_id
        await _to_the_end(session, await session.send("work"))
    await rewind(family.database, RewindRequest(start), lambda _: True)
    document = json.loads(export(family.database, PARENT))
    rows = document["rows"]
    child = next(row for row in rows if row["table"] == "threads" and "sub_agent" in row)
    match way:
        case "rewind":
            plan = next(row for row in rows if row["table"] == "rewinds")["plan"]
            plan["sub_agents"][0][0] = "somebody else's"
        case "parent":
            child["parent_thread"] = "somebody else's"
        case "call":
            child["parent_call"] = "another"
        case _:
            next(row for row in rows if row["table"] == "journal")["sub_agent"] = "somebody else's"
    file = tmp_path / "crafted.json"
    file.write_text(reseal(document))

    with pytest.raises(UsageError, match="This file cannot be imported"):
        await import_thread(tmp_path / "there", str(file))
    with pytest.raises((NothingYet, UnknownId)), read_database(tmp_path / "there") as reader:
        reader.thread(PARENT)
