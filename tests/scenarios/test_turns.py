"""What a turn does as the session shows it: order, questions, refusals, limits, the history the model is sent."""

import asyncio
import time
from pathlib import Path

import pytest

from graph_agent.app.reader import read_database
from graph_agent.calls import ToolCallInfo
from graph_agent.errors import AnswerRefused, ModelError, UsageError
from graph_agent.ports import AlwaysRules, Outcome, PreparedCall, Scope
from graph_agent.session.turn_result import OpenQuestion, TurnResult
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.fakes.scripted_toolbox import ScriptedToolbox
from tests.fakes.waiting import until
from tests.scenarios.stage import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path / "a.db", ScriptedModel())


def asked_about(rest: TurnResult) -> list[str]:
    return [item.question.call_id for item in rest.questions]


def item(rest: TurnResult, call_id: str) -> OpenQuestion:
    return next(item for item in rest.questions if item.question.call_id == call_id)


async def test_no_call_of_a_message_runs_before_every_question_of_it_has_an_answer(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("r", "read_a"), ("w", "write_a"), ("v", "write_b")), text("done"))
    async with stage.open_session() as session:
        rest = await session.send("go")
        await session.decide(item(rest, "w").question, "approve")
        still = await session.proceed()
        ran_before_the_last_answer = list(stage.toolbox.ran)
        await session.decide(item(rest, "v").question, "reject", reason="not that one")
        end = await session.proceed()

    assert (asked_about(rest), asked_about(still), ran_before_the_last_answer) == (["w", "v"], ["v"], [])
    assert (end.status, end.answer) == ("done", "done")
    assert [call_id for call_id, _ in stage.toolbox.ran] == ["r", "w"]
    assert stage.model.sent() == [
        ("human", "go"),
        ("ai", ""),
        ("tool", "result of r"),
        ("tool", "result of w"),
        ("tool", "Not run: the user rejected this call. Do not repeat it. The user said: not that one"),
    ]


async def test_going_on_where_nothing_was_begun_tells_how_the_thread_stands(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a")))
    async with stage.open_session() as session:
        fresh = await session.proceed()
        await session.send("go")
    async with stage.open_session() as session:
        asked = await session.proceed()

    assert (fresh.status, fresh.questions) == ("done", ())
    assert (asked.status, asked_about(asked)) == ("awaiting_approval", ["w"])
    assert stage.toolbox.ran == []


async def test_what_was_said_and_asked_after_the_clock_was_set_back_is_not_forgotten(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.model = ScriptedModel(text("hello"), calls(("w", "write_a")), text("done"))
    async with stage.open_session() as session:
        await session.send("hi")
    now = time.time_ns
    monkeypatch.setattr("time.time_ns", lambda: now() - 3600 * 10**9)
    found = []
    for prompt in ("write", None, None):
        # Another process: it has given no id yet.
        monkeypatch.setattr("langgraph.checkpoint.base.id._last_v6_timestamp", None)
        async with stage.open_session() as session:
            rest = await (session.send(prompt) if prompt else session.start())
            found.append((rest.status, asked_about(rest)))
            for question in rest.questions[: prompt is None]:
                await session.decide(question.question, "approve")
                await session.proceed()

    assert found == [("awaiting_approval", ["w"]), ("awaiting_approval", ["w"]), ("done", [])]
    assert [call_id for call_id, _ in stage.toolbox.ran] == ["w"]


class _ReadsThatMeet(ScriptedToolbox):
    """Its first two reads wait for each other."""

    def __init__(self) -> None:
        super().__init__()
        self._both = asyncio.Barrier(2)

    async def run(self, call: ToolCallInfo, scope: Scope) -> Outcome:
        if call["tool_name"] in ("read_a", "read_b"):
            await asyncio.wait_for(self._both.wait(), 10)
        return await super().run(call, scope)


async def test_neighbouring_reads_run_at_once_and_everything_else_alone_in_the_models_order(stage: Stage) -> None:
    stage.toolbox = _ReadsThatMeet()
    stage.model = ScriptedModel(
        calls(("r1", "read_a"), ("r2", "read_b"), ("f", "fail_a"), ("r3", "read_c")), text("done")
    )
    async with stage.open_session() as session:
        await session.send("go")

    started = [event.call_id for event in stage.events if event.type == "tool_call_started"]
    order = [
        (event.type, event.call_id) for event in stage.events if event.type in ("tool_call_started", "tool_result")
    ]
    assert started == ["r1", "r2", "f", "r3"]
    assert {kind for kind, _ in order[:2]} == {"tool_call_started"}
    assert order[4:] == [
        ("tool_call_started", "f"),
        ("tool_result", "f"),
        ("tool_call_started", "r3"),
        ("tool_result", "r3"),
    ]


async def test_an_id_the_thread_has_seen_before_is_replaced_so_no_old_result_is_taken_for_it(stage: Stage) -> None:
    stage.model = ScriptedModel(
        calls(("0", "read_a")), text("one"), calls(("0", "read_a"), ("", "read_b"), ("a b", "read_c")), text("two")
    )
    async with stage.open_session() as session:
        await session.send("first")
        await session.send("second")

    ids = [call_id for call_id, _ in stage.toolbox.ran]
    assert (len(ids), len(set(ids)), ids[0]) == (4, 4, "0")


async def test_edited_arguments_that_policy_denies_leave_the_question_open(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a")), text("done"))
    async with stage.open_session() as session:
        rest = await session.send("go")
        stage.toolbox.denied_now = {"write_a"}
        with pytest.raises(AnswerRefused, match="denied by now"):
            await session.decide(rest.questions[0].question, "edit", arguments={"text": "x"})
        still = await session.proceed()

    assert (asked_about(still), stage.toolbox.ran) == (["w"], [])


async def test_a_rule_that_became_stricter_stops_a_call_that_was_approved(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a")), text("done"))
    async with stage.open_session() as session:
        rest = await session.send("go")
        await session.decide(rest.questions[0].question, "approve")
        stage.toolbox.denied_now = {"write_a"}
        await session.proceed()

    assert (stage.toolbox.ran, stage.model.sent()[-1]) == (
        [],
        ("tool", "Not run: denied by policy. Do not repeat it. denied by now"),
    )


async def test_the_first_answer_wins_and_the_late_one_learns_whose_it_was(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a")))
    async with stage.open_session() as session:
        rest = await session.send("go")
        first = await session.decide(rest.questions[0].question, "reject", reason="no")
        again = await session.decide(rest.questions[0].question, "reject", reason="never")
        with pytest.raises(AnswerRefused, match=f"already has an answer: reject by {first.by} at "):
            await session.decide(rest.questions[0].question, "approve")

    assert again == first


async def test_always_without_a_rule_is_refused_and_the_question_stays_open(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a")), text("done"))
    async with stage.open_session() as session:
        question = (await session.send("go")).questions[0].question
        with pytest.raises(AnswerRefused, match="No rule can be made from call 'w'"):
            await session.decide(question, "approve", always=AlwaysRules("thread", ()))
        await session.decide(question, "approve")
        rest = await session.proceed()

    assert rest.status == "done"


async def test_a_message_is_refused_while_questions_are_open(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a")))
    async with stage.open_session() as session:
        await session.send("go")
        with pytest.raises(UsageError, match="waits for answers about w"):
            await session.send("never mind")


async def test_a_turn_that_used_up_its_steps_pauses_and_goes_on_where_it_was(stage: Stage) -> None:
    stage.model = ScriptedModel(*[calls((f"r{number}", "read_a")) for number in range(4)], text("finished"))
    stage.max_steps = 3
    async with stage.open_session() as session:
        paused = await session.send("go")
        asked = len(stage.model.requests)
        end = await session.continue_turn()
        again = await session.continue_turn()

    assert (paused.status, asked, end.status, end.answer) == ("limit", 3, "done", "finished")
    assert (again.status, again.answer, len(stage.model.requests)) == ("done", "finished", 5)


async def test_a_failed_model_request_keeps_the_message_and_can_be_repeated(stage: Stage) -> None:
    stage.model = ScriptedModel(ModelError("the server is down"), text("back"))
    async with stage.open_session() as session:
        failed = await session.send("go")
        end = await session.continue_turn()

    assert (failed.status, failed.error) == ("model_error", "the server is down")
    assert (end.answer, stage.model.sent()) == ("back", [("human", "go")])


async def test_new_text_after_a_failed_request_ends_that_turn_without_asking_the_model_for_it(stage: Stage) -> None:
    stage.model = ScriptedModel(ModelError("down"), text("hello"))
    async with stage.open_session() as session:
        await session.send("first")
        end = await session.send("second")

    assert (end.answer, stage.model.sent()) == ("hello", [("human", "first"), ("human", "second")])
    assert len(stage.model.requests) == 2


async def test_stopping_while_a_call_runs_cancels_it_and_what_follows_and_the_next_message_is_valid(
    stage: Stage,
) -> None:
    stage.model = ScriptedModel(calls(("s", "slow_a"), ("w", "write_a")), text("ok"))
    async with stage.open_session() as session:
        rest = await session.send("go")
        for question in rest.questions:
            await session.decide(question.question, "approve")
        turn = asyncio.create_task(session.proceed())
        await stage.toolbox.entered.wait()
        stopped = await session.stop()
        end = await session.send("never mind")

    assert (stopped.status, (await turn).status, end.answer) == ("stopped", "stopped", "ok")
    told = (
        "Cancelled: stopped by user, may have partly run. Its outcome is unknown: check its effect before you "
        "repeat it.\nOutput so far:\nhalf of attempt 1"
    )
    assert stage.model.sent() == [
        ("human", "go"),
        ("ai", ""),
        ("tool", told),
        ("tool", "Cancelled: stopped by user. It never started."),
        ("human", "never mind"),
    ]


async def test_the_mode_of_a_thread_is_stored_but_bypassing_permissions_never_is(stage: Stage) -> None:
    stage.model = ScriptedModel(text("one"), text("two"))
    async with stage.open_session(mode="bypassPermissions") as session:
        await session.send("go")
        available = stage.model.requests[-1].tools[0]["function"]["name"]
        position = await session._dependencies.graph.snapshot()
        with pytest.raises(UsageError, match="at the start"):
            session.mode = "bypassPermissions"

    assert (available, position.values["mode"]) == ("tool_in_bypassPermissions", "default")


async def test_a_turn_tells_its_story_in_order(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a")), text("done"))
    async with stage.open_session() as session:
        await session.start()
        rest = await session.send("go")
        await session.decide(rest.questions[0].question, "approve")
        await session.proceed()

    assert stage.types() == [
        "started",
        "turn_started",
        "step_started",
        "message",
        "tool_call",
        "turn_ended",
        "tool_call_decided",
        "tool_call_started",
        "tool_result",
        "step_started",
        "message",
        "turn_ended",
    ]


async def test_an_answer_that_an_earlier_life_left_is_not_asked_for_again(stage: Stage) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a"), ("v", "write_b")), text("done"))
    async with stage.open_session() as session:
        rest = await session.send("go")
        await session.decide(item(rest, "w").question, "approve")
    async with stage.open_session() as session:
        later = await session.start()
        await session.decide(item(later, "v").question, "approve")
        end = await session.proceed()

    assert (asked_about(later), end.status) == (["v"], "done")
    assert [call_id for call_id, _ in stage.toolbox.ran] == ["w", "v"]


@pytest.mark.parametrize("pauses", range(12))
async def test_a_stop_at_any_instant_after_the_answers_ends_the_turn_once_and_for_all(
    stage: Stage, pauses: int
) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a"), ("s", "slow_a")), text("ok"))
    async with stage.open_session() as session:
        rest = await session.send("go")
        for question in rest.questions:
            await session.decide(question.question, "approve")
        turn = asyncio.create_task(session.proceed())
        for _ in range(pauses):
            await asyncio.sleep(0.001 * pauses)
        stops = await asyncio.gather(session.stop(), session.stop())
        end = await session.send("go on")

    assert ({rest.status for rest in stops}, (await turn).status, end.answer) == ({"stopped"}, "stopped", "ok")
    assert len(stage.toolbox.ran) <= 2


async def test_stopping_a_thread_that_has_not_begun_is_harmless(stage: Stage) -> None:
    async with stage.open_session() as session:
        rest = await session.stop()

    assert (rest.status, rest.questions) == ("done", ())


async def test_when_the_model_fails_after_an_approved_call_ran_the_turn_goes_on_without_asking_again(
    stage: Stage,
) -> None:
    stage.model = ScriptedModel(calls(("w", "write_a")), ModelError("down"), text("done"))
    async with stage.open_session() as session:
        rest = await session.send("go")
        await session.decide(item(rest, "w").question, "approve")
        failed = await session.proceed()
        end = await session.continue_turn()

    assert (failed.status, failed.questions, end.status, end.answer) == ("model_error", (), "done", "done")
    assert [call_id for call_id, _ in stage.toolbox.ran] == ["w"]


class _Thinking(ScriptedToolbox):
    """Its plans take until nobody wants them any more."""

    asked = 0

    async def prepare(
        self, tool_name: str, arguments: object, scope: Scope, call_id: str = "", attempt: int = 1
    ) -> PreparedCall:
        self.asked += 1
        await asyncio.sleep(60)
        raise AssertionError("nobody waits so long")


async def test_who_stops_the_turn_waits_for_no_tool_that_thinks_about_a_call(tmp_path: Path) -> None:
    toolbox = _Thinking()
    stage = Stage(tmp_path / "agent.db", ScriptedModel(calls(("w", "write_a"))), toolbox)
    async with stage.open_session() as session:
        turn = asyncio.create_task(session.send("go"))
        assert await until(lambda: toolbox.asked == 1)

        rest = await asyncio.wait_for(session.stop(), 10)
        await asyncio.wait({turn})

    assert rest.status == "stopped"
    assert toolbox.asked == 1


_YES = text('{"allow": true, "reason": "it was asked for"}')
_NO = text('{"allow": false, "reason": "it reaches further"}')


async def test_a_yes_lets_the_call_run_and_stands_in_its_record_with_what_it_used(tmp_path: Path) -> None:
    model = ScriptedModel(calls(("w", "write_a")), _YES, text("done"))
    stage = Stage(tmp_path / "a.db", model, has_auto_mode=True)

    async with stage.open_session(mode="auto") as session:
        rest = await session.send("write a")

    with read_database(stage.database) as reader:
        [call] = [view.record for view in reader.calls()]
    assert (rest.status, rest.answer, rest.usage["requests"]) == ("done", "done", 3)
    assert (call["status"], call["decision"], call["rule"]) == ("success", "allow", "auto")
    assert (call["verdict"]["allow"], call["verdict"]["usage"]["total_tokens"]) == (True, 15)


async def test_a_no_asks_with_the_judges_reason_and_is_remembered_in_the_turn(tmp_path: Path) -> None:
    model = ScriptedModel(calls(("w", "write_a")), _NO, calls(("v", "write_a")))
    stage = Stage(tmp_path / "a.db", model, has_auto_mode=True)

    async with stage.open_session(mode="auto") as session:
        rest = await session.send("write a")
        [asked] = rest.questions
        await session.decide(asked.question, "approve")
        again = await session.proceed()

    assert (rest.status, "it reaches further" in asked.call["reason"]) == ("awaiting_approval", True)
    assert (again.status, len(model.requests)) == ("awaiting_approval", 3)


@pytest.mark.parametrize(("mode", "has_auto_mode"), [("auto", False), ("default", True)])
async def test_without_a_model_that_can_judge_or_in_another_mode_every_call_asks(
    tmp_path: Path, mode: str, has_auto_mode: bool
) -> None:
    model = ScriptedModel(calls(("w", "write_a")))
    stage = Stage(tmp_path / "a.db", model, has_auto_mode=has_auto_mode)

    async with stage.open_session(mode=mode) as session:
        rest = await session.send("write a")

    assert (rest.status, len(model.requests), stage.toolbox.ran) == ("awaiting_approval", 1, [])
