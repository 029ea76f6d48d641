"""The graph as a server of LangGraph's runs it: no context, raw messages, answers of whatever client."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessageChunk
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command

from graph_agent.errors import ThreadHeld, UsageError
from graph_agent.events import Event, EventBus, WarningIssued
from graph_agent.graph import edges
from graph_agent.graph.build import GraphDependencies, build_graph
from graph_agent.graph.human_approval import questions_in
from graph_agent.graph.run_context import RunContext
from graph_agent.ports import Answer, SystemClock
from graph_agent.storage.blobs import FileBlobs
from graph_agent.storage.sqlite.checkpointer import CheckpointSaver, SqliteBarrier
from graph_agent.storage.sqlite.database import Database
from graph_agent.storage.sqlite.decisions import SqliteDecisions
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

    def graph(self, saver: Any, events: list[Event] | None = None, **parts: Any) -> Any:
        clock, bus = SystemClock(), EventBus()
        if events is not None:
            bus.subscribe(lambda _, event: events.append(event))
        journal = SqliteJournal(self.database, FileBlobs(self.database.path.parent / "blobs"), clock)
        barrier = SqliteBarrier(self.database)
        wired = GraphDependencies(self.model, self.toolbox, journal, barrier, clock, bus, lambda: "system", **parts)
        return build_graph(wired, saver)

    async def run(self, work: Any, **parts: Any) -> dict[str, Any]:
        values: dict[str, Any] = await self.graph(CheckpointSaver(self.database), **parts).ainvoke(work, CONFIG)
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


@pytest.mark.parametrize(
    "left", [("reasoning", "called"), ("tool_routing", "marked"), ("tool_execution", "settled")]
)
async def test_where_control_goes_is_decided_again_after_that_failed_and_the_call_runs_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: tuple[str, str]
) -> None:
    asked_again = [calls(("c1", "read_a"))] if left[0] == "reasoning" else []
    async with served(tmp_path, calls(("c1", "read_a")), *asked_again, text("done")) as stage:
        with monkeypatch.context() as patch:
            patch.setattr(edges, "TARGETS", {key: to for key, to in edges.TARGETS.items() if key != left})
            with pytest.raises(KeyError):
                await stage.run(ASKS)
        values = await stage.run(None)

    assert [call_id for call_id, _ in stage.toolbox.ran] == ["c1"]
    assert values["messages"][-1].text == "done"


async def test_an_answer_to_a_process_that_is_gone_runs_nothing_and_is_asked_about_again(tmp_path: Path) -> None:
    async with served(tmp_path, calls(("c1", "write_a"))) as stage:
        question = asked(await stage.run(ASKS))
        again = asked(await stage.run(Command(resume=approving(question, by="a token of before"))))

    assert stage.toolbox.ran == []
    assert [(item["call_id"], item["reason"]) for item in again["recover"]] == [("c1", "never_started")]


@pytest.mark.parametrize("context", [{}, {"mode": "bypassPermissions", "owner_token": "theirs", "stop": True}])
async def test_a_context_that_a_client_sends_changes_neither_the_question_nor_who_asks(
    tmp_path: Path, context: dict[str, Any]
) -> None:
    async with served(tmp_path, calls(("c1", "write_a")), text("done")) as stage:
        without = asked(await stage.run(ASKS))
        config: Any = {"configurable": {"thread_id": "another"}}
        stage.model = ScriptedModel(calls(("c1", "write_a")), text("done"))
        graph = stage.graph(InMemorySaver())
        question = asked(await graph.ainvoke(ASKS, config, context=context))
        ended = await graph.ainvoke(Command(resume=[{"type": "approve"}]), config, context=context)

    assert question == without
    assert ended["messages"][-1].text == "done"


@pytest.mark.parametrize(
    "nonsense",
    [
        True,
        "yes",
        {"answers": {}},
        {"answers": "all"},
        {"answers": {"c1": "approve"}},
        {"answers": {"c1": {}}},
        {"answers": {"c1": {"kind": "approve"}}},
        {"answers": {"c1": {"kind": "retry", "attempt": 1, "args_digest": "a wrong one"}}},
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

    error = again.pop("error")
    assert again == question
    assert '{"decisions": [{"type": "approve"}]}' in error
    assert f'"args_digest": "{question["approve"][0]["args_digest"]}"' in error
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


@pytest.mark.parametrize(
    ("decisions", "said"),
    [
        (["c1"], "Decision 1: 'c1' has no valid type"),
        ([{"type": "maybe"}], "approve, edit, reject, respond"),
        ([{"type": "edit"}], '"edited_action"'),
        ([{"type": "respond"}], "type 'respond' is not allowed for call 'c1'; allowed: approve, edit, reject"),
        ([], "Questions: 1; decisions: 0."),
        ([{"type": "approve"}] * 2, "Questions: 1; decisions: 2."),
    ],
)
async def test_decisions_that_cannot_be_used_are_refused_with_the_reason(
    tmp_path: Path, decisions: list[Any], said: str
) -> None:
    async with served(tmp_path, calls(("c1", "write_a")), text("done")) as stage:
        await stage.run(ASKS)
        again = asked(await stage.run(Command(resume={"decisions": decisions})))
        values = await stage.run(Command(resume=[{"type": "approve"}]))

    assert said in again["error"]
    assert stage.toolbox.ran == [("c1", {})]
    assert values["messages"][-1].text == "done"


async def test_a_front_end_of_langchain_shows_the_questions_and_its_decisions_answer_them(tmp_path: Path) -> None:
    wanted = calls(*((f"c{number}", "write_a", {"n": number}) for number in range(4)))
    async with served(tmp_path, wanted, text("done")) as stage:
        question = asked(await stage.run(ASKS))
        decisions = [
            {"type": "approve"},
            {"type": "reject", "message": "not now"},
            {"type": "edit", "edited_action": {"name": "write_a", "args": {"n": 7}}},
            {"type": "approve"},
        ]
        values = await stage.run(Command(resume={"decisions": decisions}))

    assert question["action_requests"][1] == {"name": "write_a", "args": {"n": 1}, "description": "it writes"}
    assert question["review_configs"][1] == {
        "action_name": "write_a",
        "allowed_decisions": ["approve", "edit", "reject"],
    }
    shown = question["approve"][1]
    assert (shown["tool_name"], shown["arguments"], shown["risk"]) == ("write_a", {"n": 1}, "medium")
    assert shown["allowed_answers"] == ["approve", "edit", "reject"]
    assert stage.toolbox.ran == [("c0", {"n": 0}), ("c2", {"n": 7}), ("c3", {"n": 3})]
    assert (values["calls"]["c1"]["status"], values["calls"]["c1"]["reason"]) == ("cancelled", "not now")


@asynccontextmanager
async def _saver(kind: str, folder: Path) -> AsyncIterator[Any]:
    if kind == "sqlite":
        async with AsyncSqliteSaver.from_conn_string(str(folder / "langgraph.db")) as saver:
            yield saver
    else:
        yield InMemorySaver() if kind == "memory" else None


@pytest.mark.parametrize(
    ("kind", "durability", "noted"),
    [
        ("memory", "sync", ""),
        ("memory", "async", ""),
        ("sqlite", "sync", ""),
        ("sqlite", "async", ""),
        ("sqlite", "exit", 'durability="exit" saves checkpoints only at the end'),
        ("none", None, "the graph has no checkpointer"),
    ],
)
async def test_calls_run_at_once_on_every_saver_and_a_run_without_proof_says_so_once(
    tmp_path: Path, kind: str, durability: Any, noted: str
) -> None:
    script = (calls(("c1", "read_a")), calls(("c2", "read_a")), text("done"))
    async with served(tmp_path, *script) as stage, _saver(kind, tmp_path) as saver:
        events: list[Event] = []
        graph = stage.graph(saver, events)
        began = time.monotonic()
        values = await graph.ainvoke(ASKS, CONFIG, durability=durability)
        took = time.monotonic() - began

    assert stage.toolbox.ran == [("c1", {}), ("c2", {})]
    assert (values["messages"][-1].text, took < 4) == ("done", True)
    warnings = [event.text for event in events if isinstance(event, WarningIssued)]
    assert [noted in text for text in warnings] == ([True] if noted else [])


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_question_outlives_the_graph_on_other_savers_too(tmp_path: Path, kind: str) -> None:
    async with served(tmp_path, calls(("c1", "write_a")), text("done")) as stage, _saver(kind, tmp_path) as saver:
        asked_first = asked(await stage.graph(saver).ainvoke(ASKS, CONFIG))
        values = await stage.graph(saver).ainvoke(Command(resume=[{"type": "approve"}]), CONFIG)

    assert [item["call_id"] for item in asked_first["approve"]] == ["c1"]
    assert (stage.toolbox.ran, values["messages"][-1].text) == ([("c1", {})], "done")


class _Outer(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]


@pytest.mark.parametrize("kind", ["memory", "sqlite", "own"])
async def test_as_parts_of_another_graph_several_ask_at_once_and_each_answer_reaches_its_own(
    tmp_path: Path, kind: str
) -> None:
    script = (calls(("c1", "write_a")), calls(("c1", "write_b")), text("one"), text("two"))
    async with served(tmp_path, *script) as stage, _saver(kind, tmp_path) as other:
        saver = CheckpointSaver(stage.database) if kind == "own" else other
        outer = StateGraph(_Outer)
        for name in ("first", "second"):
            outer.add_node(name, stage.graph(None))
            outer.add_edge(START, name)
        graph = outer.compile(checkpointer=saver)
        values: dict[str, Any] = await graph.ainvoke(_Outer(messages=ASKS["messages"]), CONFIG)
        answers = {one.id: {"decisions": [{"type": "approve"}]} for one in values["__interrupt__"]}
        ended = await graph.ainvoke(Command(resume=answers), CONFIG)

    assert (len(answers), len(stage.toolbox.ran)) == (2, 2)
    assert sorted(message.text for message in ended["messages"] if message.type == "ai")[-2:] == ["one", "two"]


@pytest.mark.parametrize("first", ["elsewhere", "client"])
async def test_the_first_answer_counts_wherever_it_was_given(tmp_path: Path, first: str) -> None:
    async with served(tmp_path, calls(("c1", "write_a")), text("done")) as stage:
        decisions = SqliteDecisions(stage.database)
        question = asked(await stage.run(ASKS, decisions=decisions))
        [here] = questions_in(question)
        elsewhere = Answer("reject", "cli", "2026-01-01T00:00:00.000Z", reason="no")
        if first == "elsewhere":
            await decisions.insert("t", here, elsewhere)
        values = await stage.run(Command(resume=approving(question)), decisions=decisions)
        standing = await decisions.insert("t", here, elsewhere)

    call = values["calls"]["c1"]
    expected = ("cancelled", "cli", "reject", []) if first == "elsewhere" else ("success", "web", "approve", ["c1"])
    assert (call["status"], call["decided_by"], standing.kind, [one[0] for one in stage.toolbox.ran]) == expected


async def test_an_answer_from_another_process_is_taken_by_the_next_run_without_input(tmp_path: Path) -> None:
    async with served(tmp_path, calls(("c1", "write_a"), ("c2", "write_b")), text("done")) as stage:
        decisions = SqliteDecisions(stage.database)
        question = asked(await stage.run(ASKS, decisions=decisions))
        one, other = questions_in(question)
        await decisions.insert("t", one, Answer("approve", "cli", "2026-01-01T00:00:00.000Z"))
        left = asked(await stage.run(None, decisions=decisions))
        await decisions.insert("t", other, Answer("edit", "cli", "2026-01-01T00:00:00.000Z", {"n": 1}))
        stage.toolbox.denied_now = {"write_b"}
        again = asked(await stage.run(None, decisions=decisions))
        stage.toolbox.denied_now = set()
        values = await stage.run(Command(resume=[{"type": "approve"}]), decisions=decisions)

    assert [item["call_id"] for item in left["approve"]] == [item["call_id"] for item in again["approve"]] == ["c2"]
    assert [one[0] for one in stage.toolbox.ran] == ["c1", "c2"]
    assert values["messages"][-1].text == "done"


async def test_tokens_events_and_calls_are_streamed(tmp_path: Path) -> None:
    async with served(tmp_path, calls(("c1", "read_a", {"x": 1})), text("it is done")) as stage:
        graph = stage.graph(InMemorySaver())
        parts = [part async for part in graph.astream(ASKS, CONFIG, stream_mode=["messages", "custom"])]
        other: Any = {"configurable": {"thread_id": "u"}}
        stage.model = ScriptedModel(calls(("c1", "read_a", {"x": 1})), text("it is done"))
        seen = [event async for event in stage.graph(InMemorySaver()).astream_events(ASKS, other, version="v2")]

    tokens = [part[0] for mode, part in parts if mode == "messages" and isinstance(part[0], AIMessageChunk)]
    assert [token.text for token in tokens] == ["it is done"]
    customs = [part["type"] for mode, part in parts if mode == "custom" and part["type"].startswith("tool_")]
    assert customs == ["tool_call", "tool_call_started", "tool_result"]
    kinds = [(event["event"], event["name"]) for event in seen]
    for expected in (
        ("on_chat_model_start", "scripted"),
        ("on_chat_model_stream", "scripted"),
        ("on_chat_model_end", "scripted"),
        ("on_tool_start", "read_a"),
        ("on_tool_end", "read_a"),
    ):
        assert expected in kinds


async def test_a_run_without_a_thread_id_is_refused_with_the_way_to_give_one(tmp_path: Path) -> None:
    async with served(tmp_path, text("done")) as stage:
        with pytest.raises(UsageError, match="thread id"):
            await stage.graph(None).ainvoke(ASKS)


async def test_a_synchronous_run_fails_at_once_and_names_the_asynchronous_call(tmp_path: Path) -> None:
    async with served(tmp_path, text("done")) as stage:
        with pytest.raises(TypeError, match="ainvoke"):
            stage.graph(InMemorySaver()).invoke(ASKS, CONFIG)


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
