import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from graph_agent.app.reader import read_database
from graph_agent.app.recovery import Decision, decide_calls, interrupted_calls
from graph_agent.app.threads import delete
from graph_agent.config.paths import memory_file
from graph_agent.errors import ModelError
from graph_agent.session.session import Session
from graph_agent.session.subagents import usage_of
from graph_agent.session.turn_result import TurnResult
from tests.fakes.scripted_model import calls, text
from tests.scenarios.family import PARENT, Family, TaskModel, asked

_TASK = calls(("c1", "new_task", {"prompt": "ALPHA", "description": "first"}))
_BOTH = calls(
    ("c1", "new_task", {"prompt": "ALPHA", "description": "first"}), ("c2", "new_task", {"prompt": "BETA"})
)


def _append(letter: str) -> tuple[str, str, dict[str, str]]:
    return ("c1", "bash", {"command": f"echo {letter} >> log.txt"})


async def test_a_sub_agent_has_its_own_thread_and_its_last_message_is_the_result(tmp_path: Path) -> None:
    model = TaskModel({"ALPHA": [calls(("c1", "ls", {})), text("nothing here")], "go": [_TASK, text("done")]})
    family = Family(tmp_path, model)

    async with family.open_session() as session:
        rest = await session.send("go")

    system, task, *_ = model.sent("ALPHA")
    assert (rest.status, rest.answer, rest.usage["requests"]) == ("done", "done", 4)
    assert model.sent("go")[-1] == ("tool", "nothing here")
    assert (system, task[1].endswith("Task: first\n\nALPHA")) == (model.sent("go")[0], True)
    assert (family.statuses(), family.statuses(family.child("c1"))) == (
        {"new_task 1": "success"},
        {"ls 1": "success"},
    )


async def test_a_sub_agent_gets_the_system_prompt_of_its_parents_thread(tmp_path: Path) -> None:
    model = TaskModel({"ALPHA": [text("nothing")], "go": [text("hello"), _TASK, text("done")]})
    async with Family(tmp_path, model).open_session() as session:
        await session.send("go")
        memory = memory_file(os.environ)
        memory.parent.mkdir(parents=True, exist_ok=True)
        memory.write_text("Said later.")
        await session.send("look into it")

    assert model.sent("ALPHA")[0] == model.sent("go")[0]
    assert "Said later." not in model.sent("ALPHA")[0][1]


async def test_questions_of_two_sub_agents_are_asked_by_their_parent_also_in_the_next_run(tmp_path: Path) -> None:
    model = TaskModel(
        {
            "ALPHA": [calls(_append("a")), text("alpha")],
            "BETA": [calls(_append("b")), text("beta")],
            "go": [_BOTH, text("done")],
        }
    )
    family = Family(tmp_path, model)

    async with family.open_session() as session:
        first = await session.send("go")
    async with family.open_session() as session:
        second = await session.start()
        for item in second.questions:
            await session.decide(item.question, "approve")
        rest = await session.proceed()

    assert asked(first) == asked(second) == [("first", "bash"), ("BETA", "bash")]
    assert [item.thread_id for item in second.questions] == [family.child("c1"), family.child("c2")]
    assert (rest.status, sorted(family.read("log.txt").split())) == ("done", ["a", "b"])
    assert [told for kind, told in model.sent("go") if kind == "tool"] == ["alpha", "beta"]
    assert (model.count("ALPHA"), model.count("BETA"), model.count("go")) == (2, 2, 2)


async def test_stopping_the_parent_stops_its_sub_agents_and_both_threads_can_continue(tmp_path: Path) -> None:
    model = TaskModel({"ALPHA": [calls(_append("a"))], "go": [_TASK, text("again")]})
    family = Family(tmp_path, model)

    async with family.open_session() as session:
        await session.send("go")
        stopped = await session.stop()
        rest = await session.send("and now")
    async with family.open_session(family.child("c1")) as session:
        child = await session.send("ALPHA once more")

    assert (stopped.status, rest.answer, child.answer) == ("stopped", "again", "ALPHA has ended")
    assert (family.read("log.txt"), family.statuses(family.child("c1"))) == ("", {"bash 1": "cancelled"})


async def test_a_model_error_of_a_sub_agent_pauses_the_parent_and_a_retry_continues(tmp_path: Path) -> None:
    model = TaskModel({"ALPHA": [ModelError("it is down"), text("alpha")], "go": [_TASK, text("done")]})
    family = Family(tmp_path, model)

    async with family.open_session() as session:
        failed = await session.send("go")
        rest = await session.continue_turn()

    assert (failed.status, failed.error, rest.status) == ("model_error", "it is down", "done")
    assert (family.statuses(), model.sent("go")[-1]) == ({"new_task 2": "success"}, ("tool", "alpha"))


async def test_a_sub_agent_gets_the_tools_and_steps_of_its_task(
    tmp_path: Path,
) -> None:
    task = ("c1", "new_task", {"prompt": "ALPHA", "tools": ["ls"], "max_steps": 1})
    model = TaskModel({"ALPHA": [calls(("c1", "ls", {}))], "go": [calls(task), text("done")]})
    family = Family(tmp_path, model, settings={"max_task_depth": 1})

    async with family.open_session() as session:
        await session.send("go")

    offered = [
        {item["function"]["name"] for item in request.tools} for word, request in model.requests if word == "ALPHA"
    ]
    told = model.sent("go")[-1][1]
    assert (offered, family.child("c1") in told) == ([{"ls"}], True)


async def test_deeper_than_the_limit_no_sub_agent_is_offered(tmp_path: Path) -> None:
    model = TaskModel({"ALPHA": [text("alpha")], "go": [_TASK, text("done")]})
    family = Family(tmp_path, model, settings={"max_task_depth": 1})

    async with family.open_session() as session:
        await session.send("go")

    names = {
        word: "new_task" in {item["function"]["name"] for item in request.tools} for word, request in model.requests
    }
    assert names == {"go": True, "ALPHA": False}


async def test_in_mode_dont_ask_a_sub_agent_is_denied_what_needs_approval(tmp_path: Path) -> None:
    model = TaskModel({"ALPHA": [calls(_append("a")), text("alpha")], "go": [_TASK, text("done")]})
    family = Family(tmp_path, model, mode="dontAsk")

    async with family.open_session() as session:
        rest = await session.send("go")

    assert (rest.status, family.read("log.txt")) == ("done", "")
    assert family.statuses(family.child("c1", PARENT)) == {"bash 1": "cancelled"}


async def test_the_usage_of_a_stopped_sub_agent_counts_for_its_parent(tmp_path: Path) -> None:
    model = TaskModel({"ALPHA": [calls(_append("a"))], "go": [_TASK]})
    family = Family(tmp_path, model)

    async with family.open_session() as session:
        await session.send("go")
        stopped = await session.stop()

    assert (stopped.status, stopped.usage["requests"], stopped.thread_usage["requests"]) == ("stopped", 2, 2)


async def test_a_waiting_sub_agent_is_listed_and_deleted_with_its_parent(tmp_path: Path) -> None:
    model = TaskModel({"ALPHA": [calls(_append("a"))], "go": [_TASK, text("done")]})
    family = Family(tmp_path, model)
    async with family.open_session() as session:
        await session.send("go")

    with read_database(family.database) as reader:
        listed = {
            thread.thread_id: (thread.parent_call, thread.status, thread.pending_approvals)
            for thread in reader.threads()
        }
        inspected = reader.inspection(PARENT).status
    deleted = await delete(family.database, [PARENT], lambda _: True)

    child = family.child("c1")
    assert listed == {PARENT: (None, "waiting", 1), child: ("c1", "waiting", 1)}
    assert inspected == "waiting"
    assert {thread.thread_id for thread in deleted.threads} == {PARENT, child}


async def test_an_interrupted_call_of_a_sub_agent_is_decided_with_its_parent(tmp_path: Path) -> None:
    command = {"command": "echo a >> log.txt; sleep 30"}
    model = TaskModel({"ALPHA": [calls(("c1", "bash", command)), text("alpha")], "go": [_TASK, text("done")]})
    family = Family(tmp_path, model, mode="bypassPermissions")

    async with family.open_session() as session:
        turn = asyncio.create_task(session.send("go"))
        while not family.read("log.txt"):  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.05)
        turn.cancel()
        await asyncio.wait({turn})
    [resumable] = await interrupted_calls(family.database, PARENT)
    call_id = resumable.view.record["call_id"]
    [decided] = await decide_calls(family.database, PARENT, [Decision("done", call_id, "it was kept")], by="me")
    with read_database(family.database) as reader:
        owners = {reader.top_thread(thread_id) for thread_id in (PARENT, decided.thread_id)}
    async with family.open_session() as session:
        rest = await session.start()

    assert {resumable.view.thread_id, decided.thread_id} == {family.child("c1")}
    assert owners == {PARENT}
    assert (rest.status, rest.answer, family.read("log.txt")) == ("done", "done", "a\n")


async def test_questions_of_a_nested_sub_agent_are_asked_at_the_top_also_in_the_next_run(tmp_path: Path) -> None:
    deeper = calls(("c1", "new_task", {"prompt": "BETA", "description": "second"}))
    model = TaskModel(
        {
            "ALPHA": [deeper, calls(_append("a")), text("alpha")],
            "BETA": [calls(_append("b")), text("beta")],
            "go": [_TASK, text("done")],
        }
    )
    family = Family(tmp_path, model)

    async with family.open_session() as session:
        first = await session.send("go")
    with read_database(family.database) as reader:
        listed = (reader.thread(PARENT).pending_approvals, [view.thread_id for view in reader.approvals()])
        owner = reader.top_thread(listed[1][0])
    async with family.open_session() as session:
        second = await session.start()
        await session.decide(second.questions[0].question, "approve")
        third = await session.proceed()
        await session.decide(third.questions[0].question, "approve")
        rest = await session.proceed()

    assert asked(first) == asked(second) == [("first > second", "bash")]
    assert (listed, owner) == ((1, [second.questions[0].thread_id]), PARENT)
    assert (asked(third), rest.answer, family.read("log.txt")) == ([("first", "bash")], "done", "b\na\n")
    assert (model.count("ALPHA"), model.count("BETA"), model.count("go")) == (3, 2, 2)


_LS = calls(("l1", "ls", {}))


def _used(message: AIMessage, tokens: int = 10_000) -> AIMessage:
    usage = {"input_tokens": tokens, "output_tokens": 0, "total_tokens": tokens}
    return message.model_copy(update={"usage_metadata": usage})


def _family(folder: Path, replies: dict[str, list[AIMessage]], **settings: Any) -> Family:
    model = TaskModel({word: [_used(message) for message in given] for word, given in replies.items()})
    return Family(folder, model, settings=settings)


async def _continue_at_limits(session: Session, rest: TurnResult) -> tuple[TurnResult, int]:
    """Continue at each limit; returns the last result and the number of limits."""
    limits = 0
    while rest.status == "limit":
        limits += 1
        rest = await session.continue_turn()
    return rest, limits


async def test_parallel_sub_agents_share_the_steps_of_their_parent(tmp_path: Path) -> None:
    work = {"ALPHA": [*[_LS] * 5, text("alpha")], "BETA": [*[_LS] * 5, text("beta")]}
    family = _family(tmp_path, {**work, "go": [_BOTH, text("done")]})

    async with family.open_session(max_steps=7) as session:
        limit = await session.send("go")
        asked = len(family.model.requests)
        rest, more = await _continue_at_limits(session, limit)

    assert (limit.status, limit.budget, asked) == ("limit", "max_steps", 7)
    assert "the limit set by max_steps" in str(limit.error)
    assert (rest.status, rest.answer, more <= 2, len(family.model.requests)) == ("done", "done", True, 14)
    assert [told for kind, told in family.model.sent("go") if kind == "tool"] == ["alpha", "beta"]


async def test_parallel_sub_agents_share_the_tokens_of_the_turn_also_in_the_next_run(tmp_path: Path) -> None:
    work = {"ALPHA": [*[_LS] * 4, text("alpha")], "BETA": [*[_LS] * 4, text("beta")]}
    family = _family(tmp_path, {**work, "go": [_BOTH, text("done")]}, max_tokens=65_000)

    async with family.open_session() as session:
        limit = await session.send("go")
        asked = len(family.model.requests)
    async with family.open_session() as session:
        opened = await session.start()
        unasked = len(family.model.requests)
        rest, _ = await _continue_at_limits(session, opened)

    assert (limit.status, limit.budget, opened.status, asked, unasked) == ("limit", "max_tokens", "limit", 7, 7)
    assert (rest.status, rest.answer, rest.thread_usage["total_tokens"]) == ("done", "done", 120_000)
    assert set(family.statuses().values()) == {"success"}


async def test_the_usage_of_a_nested_sub_agent_counts_at_once_for_all_above_it(tmp_path: Path) -> None:
    deeper = calls(("c1", "new_task", {"prompt": "BETA"}))
    replies = {"ALPHA": [deeper, text("alpha")], "BETA": [_LS] * 6 + [text("beta")], "go": [_TASK, text("done")]}
    family = _family(tmp_path, replies, max_tokens=45_000)

    async with family.open_session() as session:
        limit = await session.send("go")
        asked = len(family.model.requests)
        rest, _ = await _continue_at_limits(session, limit)

    assert (limit.status, limit.budget, asked) == ("limit", "max_tokens", 5)
    assert (rest.status, rest.answer, rest.thread_usage["total_tokens"]) == ("done", "done", 110_000)


async def test_a_thread_budget_stays_used_up_until_it_is_raised(tmp_path: Path) -> None:
    replies = {"ALPHA": [_LS] * 4 + [text("alpha")], "go": [_TASK, text("done")]}
    family = _family(tmp_path, replies, max_thread_tokens=35_000)

    async with family.open_session() as session:
        limit = await session.send("go")
        again = await session.continue_turn()
        asked = len(family.model.requests)
    family.settings = {"max_thread_tokens": 500_000}
    async with family.open_session() as session:
        await session.start()
        rest = await session.continue_turn()

    assert (limit.status, again.status, again.budget, asked) == ("limit", "limit", "max_thread_tokens", 4)
    assert (rest.status, rest.answer) == ("done", "done")


async def test_a_message_after_a_shared_limit_ends_the_sub_agents_and_starts_a_new_budget(
    tmp_path: Path,
) -> None:
    deeper, other = calls(("c1", "new_task", {"prompt": "GAMMA"})), calls(("c2", "new_task", {"prompt": "BETA"}))
    replies = {
        "ALPHA": [deeper],
        "GAMMA": [_LS] * 4,
        "BETA": [_LS, text("beta")],
        "go": [_TASK, other, text("instead")],
    }
    family = _family(tmp_path, replies, max_tokens=35_000)

    async with family.open_session() as session:
        limit = await session.send("go")
        rest = await session.send("do this instead")

    assert (limit.status, limit.usage["total_tokens"], limit.thread_usage["requests"]) == ("limit", 40_000, 4)
    assert (rest.status, rest.answer, rest.usage["total_tokens"]) == ("done", "instead", 40_000)
    assert rest.thread_usage["total_tokens"] == 80_000
    assert family.statuses() == {"new_task 1": "success"}


@pytest.mark.parametrize("steps", [1, 3])
async def test_the_step_limit_of_a_task_ends_the_sub_agent_and_not_the_turn(tmp_path: Path, steps: int) -> None:
    task = calls(("c1", "new_task", {"prompt": "ALPHA", "max_steps": steps}))
    family = _family(tmp_path, {"ALPHA": [_LS] * 4, "go": [task, text("done")]})

    async with family.open_session(max_steps=20) as session:
        rest = await session.send("go")

    assert (rest.status, family.model.count("ALPHA")) == ("done", steps)


def test_usage_includes_finished_calls_that_the_model_has_not_received() -> None:
    def call(status: str, requests: int) -> dict[str, Any]:
        return {"call_id": status, "status": status, "metadata": {"usage": {"requests": requests}}}

    asked = calls(("success", "new_task", {}), ("interrupted", "new_task", {}))
    records = {"success": call("success", 4), "interrupted": call("interrupted", 8)}
    values = {"messages": [asked], "calls": records, "turn": {"usage": {"requests": 1}}, "usage": {"requests": 2}}

    assert usage_of(values) == ({"requests": 5}, {"requests": 6})
