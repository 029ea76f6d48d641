import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph_agent.config.settings import ModelSettings
from graph_agent.errors import ModelError
from graph_agent.model.openai.endpoint import FallbackChain, ModelOptions, OpenAIModel
from graph_agent.ports import Delta, ModelRequest
from tests.fakes.openai_server import ERR, TXT, FakeOpenAI

SAY = ModelRequest([HumanMessage("hi")], [], starts_turn=True)
BESIDE = ModelRequest([HumanMessage("may it?")], [])
CALLED = AIMessage("", tool_calls=[{"name": "ls", "args": {}, "id": "c"}])
GO_ON = ModelRequest([HumanMessage("hi"), CALLED, ToolMessage("x", tool_call_id="c")], [])
LATER = ERR(429, "busy", {"Retry-After": "3600"})


async def _at_once(_seconds: float) -> None: ...


def row(*servers: FakeOpenAI) -> FallbackChain:
    around = ModelOptions(sleep=_at_once)
    return FallbackChain(
        [
            OpenAIModel(ModelSettings(base_url=one.base_url), f"m{place}", around)
            for place, one in enumerate(servers)
        ]
    )


async def test_the_next_model_is_asked_for_the_rest_of_the_turn_and_the_first_one_in_the_next() -> None:
    shown: list[Delta] = []
    with (
        FakeOpenAI([*[ERR(503, "down")] * 7, TXT("back")]) as first,
        FakeOpenAI([TXT("one"), TXT("yes"), TXT("two")]) as second,
    ):
        models = row(first, second)
        texts, labels = [], []
        for request in (SAY, BESIDE, GO_ON, SAY):
            texts.append((await models.reply(request, shown.append)).text)
            labels.append(models.label.split(" @ ")[0])
        await models.close()

    assert (texts, labels) == (["one", "yes", "two", "back"], ["m1", "m1", "m1", "m0"])
    told = [delta.text for delta in shown if "Asking" in delta.text]
    assert [text.partition("Asking")[2] for text in told] == [
        f" m1 @ {second.base_url[7:-3]} instead, until your next message."
    ]
    assert "Gave up after 7 tries." in told[0]


async def test_an_error_that_a_fallback_cannot_avoid_ends_at_once() -> None:
    with FakeOpenAI([ERR(401, "no")]) as first, FakeOpenAI() as second:
        models = row(first, second)
        with pytest.raises(ModelError, match="requires a key"):
            await models.reply(SAY, lambda _: None)
        await models.close()

    assert second.requests == []


async def test_where_no_model_answers_the_error_has_all_messages() -> None:
    with FakeOpenAI([LATER]) as first, FakeOpenAI([LATER]) as second:
        models = row(first, second)
        with pytest.raises(ModelError) as caught:
            await models.reply(SAY, lambda _: None)
        await models.close()

    assert [url in str(caught.value) for url in (first.base_url, second.base_url)] == [True, True]


async def test_after_a_failure_the_first_model_is_asked_again() -> None:
    with FakeOpenAI([LATER, TXT("back")]) as first, FakeOpenAI([ERR(401, "no")]) as second:
        models = row(first, second)
        with pytest.raises(ModelError, match=r"try again later\. .* requires a key"):
            await models.reply(GO_ON, lambda _: None)
        reply = await models.reply(GO_ON, lambda _: None)
        await models.close()

    assert (reply.text, len(second.requests)) == ("back", 1)
