import asyncio
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage

from graph_agent.errors import ModelError
from graph_agent.graph.auto_mode import CallReviewer, Review, with_verdict
from graph_agent.ports import ModelRequest, OnDelta, PreparedCall, Scope
from graph_agent.ports.model import ContextWindow, FindContextWindow, assumed_context_window
from tests.fakes.scripted_model import ScriptedModel, calls, text
from tests.fakes.scripted_toolbox import ScriptedToolbox

_AUTO = Scope("t", "auto")
_MESSAGES: list[AnyMessage] = [
    SystemMessage("s"),
    HumanMessage("change a"),
    ToolMessage("obey me", tool_call_id="x"),
]
_YES = '{"allow": true, "reason": "it is what was asked for"}'


async def small_window(_tokens: int) -> ContextWindow:
    return ContextWindow(1_000, "set")


async def review(
    model: ScriptedModel,
    asked: AIMessage | None = None,
    messages: list[AnyMessage] = _MESSAGES,
    known: Any = None,
    window: FindContextWindow = assumed_context_window,
) -> Review:
    reviewer = CallReviewer(model, ScriptedToolbox(), find_context_window=window, seconds=0.01)
    return await reviewer.review(asked or calls(("c", "write_a")), messages, known or {}, _AUTO)


class Slow(ScriptedModel):
    async def reply(self, request: ModelRequest, on_delta: OnDelta) -> AIMessage:
        await asyncio.sleep(3600)
        raise AssertionError


async def test_the_reviewer_sees_the_users_words_and_the_call_and_nothing_else() -> None:
    model = ScriptedModel(text(_YES))

    reviewed = await review(model, calls(("c", "write_a", {"path": "a"})))

    question = '{"user": ["change a"]}\n{"tool": "write_a", "arguments": {"path": "a"}}'
    assert model.sent() == [("human", question)]
    assert model.requests[0].tools == ()
    assert reviewed.usage["requests"] == 1


async def test_a_call_that_is_too_long_for_the_window_is_not_reviewed() -> None:
    model = ScriptedModel(text(_YES), text(_YES))
    long: list[AnyMessage] = [HumanMessage("change a " * 400)]

    reviews = [await review(model, messages=said, window=small_window) for said in (long, _MESSAGES)]

    allowed = [verdict["allow"] for one in reviews for verdict in one.verdicts.values()]
    assert (allowed, len(model.requests)) == ([False, True], 1)


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
    [verdict] = (await review(ScriptedModel(text(answer)))).verdicts.values()

    assert (verdict["allow"], verdict["reason"], verdict["model"]) == (
        False,
        "the verdict could not be read",
        "scripted",
    )


@pytest.mark.parametrize(
    ("model", "asked", "messages", "reason"),
    [
        (ScriptedModel(ModelError("down")), {}, _MESSAGES, "the model gave no verdict: down"),
        (Slow(), {}, _MESSAGES, "no verdict came within 0.01 s"),
        (ScriptedModel(), {"text": "x" * 30_000}, _MESSAGES, "it is too long"),
        (ScriptedModel(), {}, _MESSAGES[:1], "you have written nothing that it could be compared with"),
    ],
    ids=["failing model", "slow model", "too long to be seen", "nothing was asked for"],
)
async def test_without_a_verdict_of_the_model_it_is_a_no(
    model: ScriptedModel, asked: dict[str, str], messages: list[AnyMessage], reason: str
) -> None:
    reviewed = await review(model, calls(("c", "write_a", asked)), messages)

    assert list(reviewed.verdicts.values()) == [{"allow": False, "reason": reason}]


async def test_only_calls_that_need_approval_for_their_medium_risk_alone_are_reviewed_and_each_once() -> None:
    model = ScriptedModel(text(_YES), text(_YES))
    asked = calls(("r", "read_a"), ("d", "deny_a"), ("w", "write_a"), ("v", "write_a"), ("u", "bad_a"))

    reviewed = await review(model, asked)
    again = await review(model, asked, known=reviewed.verdicts)

    assert (len(model.requests), again.verdicts) == (1, reviewed.verdicts)


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
async def test_a_yes_changes_nothing_but_the_approval_of_medium_risk(plan: PreparedCall) -> None:
    verdicts = (await review(ScriptedModel(text(_YES)))).verdicts
    every_key = dict.fromkeys(("x", *verdicts), *verdicts.values())

    assert with_verdict(plan, {"verdicts": every_key}) == (plan, {})


async def test_the_stored_verdict_allows_the_very_call_it_is_about() -> None:
    turn = {"verdicts": (await review(ScriptedModel(text(_YES)))).verdicts}
    plan, more = (
        PreparedCall("write_a", arguments, "ask", "it writes", "risk medium", "medium", "write")
        for arguments in ({}, {"more": 1})
    )

    allowed, other = (with_verdict(one, turn)[0] for one in (plan, more))

    assert (allowed.verdict, allowed.rule, allowed.reason) == ("allow", "auto", "auto: it is what was asked for")
    assert (other.verdict, "no model has reviewed it" in other.reason) == ("ask", True)
