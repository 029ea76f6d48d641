"""A thread with sub-agents that is forked: before, in and after their lives, and what becomes of both."""

from pathlib import Path

import pytest

from graph_agent.app.changes import changes_of
from graph_agent.app.deleting import delete
from graph_agent.app.forking import fork
from graph_agent.app.pruning import PruneOrder, prune
from graph_agent.app.rewinding import Order, rewind
from graph_agent.inspect import Reader
from graph_agent.session.api import Rest
from graph_agent.session.session import Session
from tests.fakes.scripted_model import calls, text
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


async def _to_the_end(session: Session, rest: Rest) -> Rest:
    while rest.questions:
        for item in rest.questions:
            await session.decide(item.question, "approve" if item.question.kind == "approval" else "done")
        rest = await session.proceed()
    return rest


def _kin(family: Family, thread_id: str) -> list[str]:
    with Reader.open(family.database) as reader:
        return sorted(thread.thread_id for thread in reader.family(thread_id))


async def test_forked_after_their_lives_the_copy_has_them_and_can_be_rewound_with_what_they_did(
    family: Family,
) -> None:
    async with family.life() as session:
        start = (await session.send("go")).checkpoint_id
        await _to_the_end(session, await session.send("work"))
    made = await fork(family.database, PARENT, thread_id=_COPY)
    with Reader.open(family.database) as reader:
        begin = reader.inspection(_COPY, start).state.checkpoint_id
    changed = [file.path for file in changes_of(family.database, _COPY, None).files]
    done = await rewind(family.database, Order(f"{_COPY}:{begin}"), lambda _: True)

    child = family.child("c1", _COPY)
    with Reader.open(family.database) as reader:
        deep = next(thread for thread in reader.threads() if thread.parent_thread == child)
    assert (made.open_calls, _kin(family, _COPY)) == (0, sorted([_COPY, child, deep.thread_id]))
    assert (changed, done.is_done, family.read("a.txt")) == (["a.txt"], True, "")
    assert [call.tool_name for call in done.survey.lasting] == ["bash", "bash"]


async def test_forked_before_their_lives_the_copy_has_none_of_them(family: Family) -> None:
    async with family.life() as session:
        start = (await session.send("go")).checkpoint_id
        await session.send("work")
    await fork(family.database, start, thread_id=_COPY)

    assert _kin(family, _COPY) == [_COPY]


async def test_forked_while_one_waits_both_go_on_by_themselves_and_nothing_that_ran_runs_again(
    family: Family,
) -> None:
    async with family.life() as session:
        await session.send("go")
        asking = await session.send("work")
        await session.decide(asking.questions[0].question, "approve")
        deep = await session.proceed()
    await fork(family.database, PARENT, thread_id=_COPY)

    async with family.life(_COPY) as session:
        copied = await session.start()
        of_copy = await _to_the_end(session, copied)
    with Reader.open(family.database) as reader:
        unmoved = [view.thread_id for view in reader.approvals()]
    async with family.life() as session:
        rest = await _to_the_end(session, await session.start())

    assert asked(deep) == asked(copied) == [("first > second", "bash")]
    assert unmoved == [deep.questions[0].thread_id]
    assert copied.questions[0].thread_id not in unmoved
    assert (of_copy.status, rest.status) == ("done", "done")
    # Each of the two was let do what it asked for; the file was written once, before.
    assert (family.read("log.txt").split(), family.read("a.txt")) == (["b", "a", "b"], "a.txt\n")


async def test_deleted_or_pruned_a_copy_takes_its_own_along_and_no_others(family: Family) -> None:
    async with family.life() as session:
        await session.send("go")
        await _to_the_end(session, await session.send("work"))
    before = _kin(family, PARENT)
    await fork(family.database, PARENT, thread_id=_COPY)

    pruned = await prune(family.database, PruneOrder(1, _COPY))
    deleted = await delete(family.database, [_COPY], lambda _: True)

    assert (len(pruned.threads), len(deleted.threads)) == (3, 3)
    assert (_kin(family, PARENT), before) == (before, before)
