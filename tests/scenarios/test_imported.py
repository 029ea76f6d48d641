import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from graph_agent.app.reader import read_database
from graph_agent.app.thread_import import import_thread
from graph_agent.app.threads import fork
from graph_agent.errors import UsageError
from graph_agent.ports import PreparedCall, Scope
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.fakes.scripted_toolbox import ScriptedToolbox
from tests.fakes.thread_files import export, reseal
from tests.scenarios.stage import THREAD, Stage


class AsksAlways(ScriptedToolbox):
    """The rules of a place where nothing runs without being asked about."""

    async def prepare(
        self, tool_name: str, arguments: Mapping[str, Any], scope: Scope, call_id: str = "", attempt: int = 1
    ) -> PreparedCall:
        return PreparedCall(
            tool_name, dict(arguments), "ask", "everything is asked here", "late rule", "high", "execute"
        )


async def taken_in(source: Stage, folder: Path, toolbox: ScriptedToolbox, *dropped: str) -> Stage:
    """The thread of a stage on another one, without the rows of some tables."""
    document = json.loads(export(source.database, THREAD))
    document["rows"] = [row for row in document["rows"] if row["table"] not in dropped]
    file = folder / "thread.json"
    file.write_text(reseal(document))
    target = Stage(folder / "other" / "agent.db", ScriptedModel(text("went on")), toolbox)
    await import_thread(target.database, str(file))
    return target


def checkpoint_with(stage: Stage, status: str) -> str:
    """The oldest checkpoint in which a call has this status."""
    with read_database(stage.database) as reader:
        found = [
            entry.checkpoint_id
            for entry in reader.history(THREAD)
            if any(
                call["status"] == status
                for call in (
                    reader.inspection(THREAD, entry.checkpoint_id).state.values.get("calls") or {}
                ).values()
            )
        ]
    return found[-1]


async def test_an_open_question_of_a_file_is_asked_again_by_the_rules_here(tmp_path: Path) -> None:
    source = Stage(tmp_path / "agent.db", ScriptedModel(calls(("c1", "write_a"))))
    async with source.open_session() as session:
        await session.start()
        rest = await session.send("go")
        await session.decide(rest.questions[0].question, "approve")
    target = await taken_in(source, tmp_path, AsksAlways())

    async with target.open_session() as session:
        rest = await session.start()
        [asked] = rest.questions
        ran_before = list(target.toolbox.ran)
        await session.decide(asked.question, "approve")
        rest = await session.proceed()

    assert (asked.question.kind, asked.question.reason) == ("approval", "everything is asked here")
    assert asked.call["risk"] == "high"
    assert (ran_before, target.toolbox.ran, rest.answer) == ([], [("c1", {})], "went on")


@pytest.mark.parametrize("dropped", [(), ("journal",), ("journal", "decisions")])
async def test_a_call_that_ran_when_its_thread_was_exported_never_runs_by_itself(
    tmp_path: Path, dropped: tuple[str, ...]
) -> None:
    source = Stage(tmp_path / "agent.db", ScriptedModel(calls(("c1", "slow_a"))))
    async with source.open_session() as session:
        await session.start()
        rest = await session.send("go")
        await session.decide(rest.questions[0].question, "approve")
        going_on = asyncio.create_task(session.proceed())
        await source.toolbox.entered.wait()
        target = await taken_in(source, tmp_path, ScriptedToolbox(), *dropped)
        await session.stop()
        await going_on

    async with target.open_session() as session:
        rest = await session.start()
        kinds = [item.question.kind for item in rest.questions]
        ran = list(target.toolbox.ran)
        if not dropped:
            await session.decide(rest.questions[0].question, "approve")
            rest = await session.proceed()

    assert (kinds, ran) == (["approval"], [])
    if not dropped:
        # Whoever let it run left a row in the journal: it may have had its effect.
        assert [(item.question.kind, item.question.reason) for item in rest.questions] == [
            ("recovery", "outcome_unknown")
        ]
        assert target.toolbox.ran == []


@pytest.mark.parametrize("way", ["resume", "fork"])
async def test_what_a_file_says_was_allowed_is_asked_here_from_older_checkpoints_too(
    tmp_path: Path, way: str
) -> None:
    source = Stage(tmp_path / "agent.db", ScriptedModel(calls(("c1", "read_a")), text("done")))
    async with source.open_session() as session:
        await session.start()
        await session.send("go")
    target = await taken_in(source, tmp_path, AsksAlways(), "journal")
    place = checkpoint_with(target, "executing")
    if way == "fork":
        await fork(target.database, place, thread_id="forked")

    is_fork = way == "fork"
    async with target.open_session(
        thread="forked" if is_fork else THREAD, checkpoint=None if is_fork else place
    ) as session:
        rest = await session.start()

    assert [item.question.kind for item in rest.questions] == ["approval"]
    assert target.toolbox.ran == []


async def test_a_thread_at_rest_goes_on_as_if_it_had_always_been_here(tmp_path: Path) -> None:
    source = Stage(tmp_path / "agent.db", ScriptedModel(calls(("c1", "read_a")), text("done")))
    async with source.open_session() as session:
        await session.start()
        await session.send("go")
    target = await taken_in(source, tmp_path, ScriptedToolbox())
    file = export(target.database, THREAD)

    async with target.open_session() as session:
        assert (await session.start()).status == "done"
        assert export(target.database, THREAD) == file
        rest = await session.send("more")

    assert (rest.answer, target.toolbox.ran) == ("went on", [])


async def test_open_calls_whose_beginning_the_file_does_not_hold_are_refused(tmp_path: Path) -> None:
    source = Stage(tmp_path / "agent.db", ScriptedModel(calls(("c1", "write_a"))))
    async with source.open_session() as session:
        await session.start()
        rest = await session.send("go")
    document = json.loads(export(source.database, THREAD))
    for row in document["rows"]:
        if row["table"] == "checkpoints" and row["checkpoint_id"] == rest.checkpoint_id:
            row["parent_checkpoint_id"] = rest.checkpoint_id[:-1] + "x"
    (tmp_path / "file").write_text(reseal(document))

    with pytest.raises(UsageError, match=f"{rest.checkpoint_id} is not whole: its parent .*x is missing"):
        await import_thread(tmp_path / "other" / "agent.db", str(tmp_path / "file"))
