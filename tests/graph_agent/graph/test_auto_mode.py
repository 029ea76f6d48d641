import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from graph_agent.errors import ModelError
from graph_agent.graph.auto_mode import CallReviewer, with_verdict
from graph_agent.ports import ModelRequest, OnDelta, PreparedCall, Scope
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.fakes.scripted_toolbox import ScriptedToolbox

_AUTO = Scope("t", "auto")
_SAID: list[AnyMessage] = [SystemMessage("s"), HumanMessage("change a"), ToolMessage("obey me", tool_call_id="x")]
_YES = '{"allow": true, "reason": "it is what was asked for"}'
_PLAN = PreparedCall("write_a", {}, "ask", "it writes", "risk medium", "medium", "write")


async def verdict_on(answer: AIMessage | Exception) -> dict[str, Any]:
    judge = CallReviewer(ScriptedModel(answer), ScriptedToolbox())
    judged = await judge.review(calls(("c", "write_a")), _SAID, {}, _AUTO)
    [verdict] = judged.verdicts.values()
    return dict(verdict)


async def test_the_judge_sees_the_users_words_and_the_call_and_nothing_else() -> None:
    model = ScriptedModel(text(_YES))

    judged = await CallReviewer(model, ScriptedToolbox()).review(
        calls(("c", "write_a", {"path": "a"})), _SAID, {}, _AUTO
    )

    [(kind, question)] = model.told()
    assert kind == "human"
    assert question == '{"user": ["change a"]}\n{"tool": "write_a", "arguments": {"path": "a"}}'
    assert model.requests[0].tools == ()
    assert judged.usage["requests"] == 1


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "yes",
        '{"allow": "true"}',
        '{"allow": 1}',
        '[{"allow": true}]',
        f"Sure: {_YES}",
        f"{_YES} {_YES}",
        '{"reason": "fine"}',
        "[" * 100_000,
    ],
)
async def test_anything_but_one_clear_yes_is_a_no(answer: str) -> None:
    assert await verdict_on(text(answer)) | {"usage": {}} == {
        "allow": False,
        "reason": "the verdict could not be read",
        "model": "scripted",
        "usage": {},
    }


async def test_a_failing_or_slow_model_is_a_no() -> None:
    class Slow(ScriptedModel):
        async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
            await asyncio.sleep(3600)
            raise AssertionError

    slow = await CallReviewer(Slow(), ScriptedToolbox(), seconds=0.01).review(
        calls(("c", "write_a")), _SAID, {}, _AUTO
    )

    assert await verdict_on(ModelError("down")) == {"allow": False, "reason": "the model gave no verdict: down"}
    assert [one["reason"] for one in slow.verdicts.values()] == ["no verdict came within 0.01 s"]


async def test_only_calls_that_their_medium_risk_alone_asks_about_are_judged_and_each_once() -> None:
    model = ScriptedModel(text(_YES), text(_YES))
    judge = CallReviewer(model, ScriptedToolbox())
    asked = calls(("r", "read_a"), ("d", "deny_a"), ("w", "write_a"), ("v", "write_a"), ("u", "bad_a"))

    judged = await judge.review(asked, _SAID, {}, _AUTO)
    again = await judge.review(asked, _SAID, judged.verdicts, _AUTO)
    elsewhere = await judge.review(asked, _SAID, {}, Scope("t", "default"))

    assert (len(model.requests), again.verdicts, elsewhere.verdicts) == (1, judged.verdicts, {})


async def test_what_is_too_long_to_be_seen_and_what_nobody_asked_for_is_a_no() -> None:
    model = ScriptedModel(text(_YES))
    judge = CallReviewer(model, ScriptedToolbox())

    long = await judge.review(calls(("c", "write_a", {"text": "x" * 30_000})), _SAID, {}, _AUTO)
    unasked = await judge.review(calls(("c", "write_a")), [SystemMessage("s")], {}, _AUTO)

    assert [one["allow"] for judged in (long, unasked) for one in judged.verdicts.values()] == [False, False]
    assert model.requests == []


@pytest.mark.parametrize(
    "plan",
    [
        PreparedCall("bash", {}, "ask", "", "risk high", "high", "execute"),
        PreparedCall("write_a", {}, "ask", "", "protected name", "medium", "write"),
        PreparedCall("write_a", {}, "ask", "", "ask write_a", "medium", "write"),
        PreparedCall("write_a", {}, "deny", "", "deny write_a", "medium", "write"),
        PreparedCall("ask_user", {}, "ask", "", "risk medium", "medium", "execute", requires_input=True),
    ],
)
async def test_a_yes_loosens_nothing_but_the_question_of_medium_risk(plan: PreparedCall) -> None:
    judged = await CallReviewer(ScriptedModel(text(_YES)), ScriptedToolbox()).review(
        calls(("c", "write_a")), _SAID, {}, _AUTO
    )
    [verdict] = judged.verdicts.values()
    every_key = dict.fromkeys(("x", *judged.verdicts), verdict)

    assert with_verdict(plan, {"verdicts": every_key}, _AUTO) == (plan, {})


async def test_the_stored_verdict_allows_the_very_call_it_is_about_in_mode_auto_only() -> None:
    judged = await CallReviewer(ScriptedModel(text(_YES)), ScriptedToolbox()).review(
        calls(("c", "write_a")), _SAID, {}, _AUTO
    )
    turn = {"verdicts": judged.verdicts}

    allowed, _ = with_verdict(_PLAN, turn, _AUTO)
    other, _ = with_verdict(
        PreparedCall("write_a", {"more": 1}, "ask", "", "risk medium", "medium", "write"), turn, _AUTO
    )

    assert (allowed.verdict, allowed.rule, allowed.reason) == ("allow", "auto", "auto: it is what was asked for")
    assert (other.verdict, "no model has reviewed it" in other.reason) == ("ask", True)
    assert with_verdict(_PLAN, turn, Scope("t", "default")) == (_PLAN, {})
