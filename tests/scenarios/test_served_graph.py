"""The graph as a server of LangGraph's runs it: no context, raw messages, answers of whatever client."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from graph_agent.errors import ThreadHeld
from graph_agent.events import EventBus
from graph_agent.graph.build import GraphDependencies, build_graph
from graph_agent.graph.run_context import RunContext
from graph_agent.ports import SystemClock
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver, SqliteBarrier
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.journal import SqliteJournal
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.fakes.scripted_toolbox import ScriptedToolbox

CONFIG: Any = {"configurable": {"thread_id": "t"}}
ASKS = {"messages": [{"role": "user", "content": "go"}]}


@dataclass
class Served:
    """The graph, and what stands behind it."""

    database: Database
    model: ScriptedModel
    toolbox: ScriptedToolbox = field(default_factory=ScriptedToolbox)

    async def run(self, work: Any, **parts: Any) -> dict[str, Any]:
        clock = SystemClock()
        journal = SqliteJournal(self.database, FileBlobs(self.database.path.parent / "blobs"), clock)
        barrier = SqliteBarrier(self.database)
        wired = GraphDependencies(
            self.model, self.toolbox, journal, barrier, clock, EventBus(), lambda: "system", **parts
        )
        graph = build_graph(wired, CheckpointSaver(self.database))
        values: dict[str, Any] = await graph.ainvoke(work, CONFIG)
        return values


@asynccontextmanager
async def served(folder: Path, *replies: Any) -> AsyncIterator[Served]:
    async with await Database.open(folder / "agent.db") as database:
        yield Served(database, ScriptedModel(*replies))


def asked(values: dict[str, Any]) -> dict[str, Any]:
    question: dict[str, Any] = values["__interrupt__"][0].value
    return question


def approving(question: dict[str, Any], **changed: Any) -> dict[str, Any]:
    answers = {
        item["call_id"]: {
            "kind": "approve",
            "attempt": item["attempt"],
            "args_digest": item["args_digest"],
            "decided_by": "web",
        }
        for item in question["approve"]
    }
    return {"by": question["by"], "answers": answers, **changed}


async def test_an_answer_under_the_name_that_the_question_gives_runs_the_call(tmp_path: Path) -> None:
    async with served(tmp_path, calls(("c1", "write_a")), text("done")) as stage:
        question = asked(await stage.run(ASKS))
        values = await stage.run(Command(resume=approving(question)))

    assert question["by"] == RunContext().owner_token
    assert values["messages"][-1].text == "done"
    assert stage.toolbox.ran == [("c1", {})]
    assert (values["calls"]["c1"]["status"], values["calls"]["c1"]["decided_by"]) == ("success", "web")


async def test_an_answer_to_a_process_that_is_gone_runs_nothing_and_is_asked_about_again(tmp_path: Path) -> None:
    async with served(tmp_path, calls(("c1", "write_a"))) as stage:
        question = asked(await stage.run(ASKS))
        again = asked(await stage.run(Command(resume=approving(question, by="a token of before"))))

    assert stage.toolbox.ran == []
    assert [(item["call_id"], item["reason"]) for item in again["recover"]] == [("c1", "never_started")]


@pytest.mark.parametrize(
    "nonsense",
    [
        "yes",
        ["c1"],
        {"answers": "all"},
        {"answers": {"c1": "approve"}},
        {"answers": {"c1": {}}},
        {"answers": {"c1": {"kind": "approve"}}},
        {"answers": {"other": {"kind": "approve", "attempt": 1, "args_digest": ""}}},
    ],
)
async def test_whatever_a_client_sends_instead_of_an_answer_the_question_is_put_again(
    tmp_path: Path, nonsense: Any
) -> None:
    async with served(tmp_path, calls(("c1", "write_a")), text("done")) as stage:
        question = asked(await stage.run(ASKS))
        again = asked(await stage.run(Command(resume=nonsense)))
        values = await stage.run(Command(resume=approving(again)))

    assert again == question
    assert values["messages"][-1].text == "done"


@pytest.mark.parametrize(
    "edit", [{"arguments": "rm"}, {"arguments": {"x": 1}, "owner_token": RunContext().owner_token}]
)
async def test_no_edit_gets_past_the_policy_by_its_form(tmp_path: Path, edit: dict[str, Any]) -> None:
    async with served(tmp_path, calls(("c1", "write_a"))) as stage:
        question = asked(await stage.run(ASKS))
        stage.toolbox.denied_now = {"write_a"}
        item = question["approve"][0]
        answer = {"kind": "edit", "attempt": 1, "args_digest": item["args_digest"], **edit}
        again = asked(await stage.run(Command(resume={"by": question["by"], "answers": {"c1": answer}})))

    assert again == question
    assert stage.toolbox.ran == []


async def test_a_second_message_begins_a_turn_with_all_its_steps(tmp_path: Path) -> None:
    async with served(tmp_path, calls(("c1", "read_a")), text("one"), text("two")) as stage:
        first = await stage.run(ASKS)
        second = await stage.run(ASKS)

    assert [(values["turn"]["steps"], values["turn"]["outcome"]) for values in (first, second)] == [
        (2, "done"),
        (1, "done"),
    ]
    assert [message.type for message in second["messages"]] == ["human", "ai", "tool", "ai", "human", "ai"]


async def test_a_thread_that_another_process_has_is_left_alone(tmp_path: Path) -> None:
    async def refuse(thread_id: str) -> None:
        raise ThreadHeld(f"{thread_id} is held")

    async with served(tmp_path) as stage:
        with pytest.raises(ThreadHeld, match="t is held"):
            await stage.run(ASKS, ensure_lock=refuse)

    assert stage.model.requests == []
