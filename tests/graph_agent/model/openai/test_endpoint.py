import asyncio
import random
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from pydantic import SecretStr

from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.errors import ModelError, UsageError
from graph_agent.model.openai.endpoint import EndpointModel, FallbackChain, ModelOptions, OpenAIModel, RetryPolicy
from graph_agent.model.openai.errors import Failure, FailureKind
from graph_agent.ports import Delta, ModelRequest
from tests.fakes.openai_server import ERR, TXT, FakeOpenAI, Reply

HI = ModelRequest([HumanMessage("hi")], ())


def settings_for(url: str, name: str | None = None) -> Settings:
    return Settings(model=ModelSettings(base_url=url, name=name), database=Path("unused.db"))


@pytest.fixture
def silent() -> Iterator[str]:
    """An endpoint that takes connections and never answers."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"


def ignore(delta: Delta) -> None:
    pass


async def test_the_only_model_of_the_endpoint_is_asked_where_none_is_named() -> None:
    with FakeOpenAI([TXT("hello")], models=["only"]) as server:
        model = EndpointModel(settings_for(server.base_url))
        before = (model.name, model.label.partition(":")[0])
        reply = await model.reply(HI, ignore)
        await model.close()

    assert (before, reply.text, model.name) == ((None, "no model chosen @ 127.0.0.1"), "hello", "only")
    assert model.label.startswith("only @ 127.0.0.1:")
    assert server.bodies[0]["model"] == "only"


async def test_a_busy_model_with_another_behind_it_is_tried_less_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graph_agent.model.openai.endpoint.MAX_ATTEMPTS_BEFORE_FALLBACK", 1)
    busy = ERR(503, "down")
    with FakeOpenAI(after=busy) as first, FakeOpenAI([busy, TXT("two")]) as second:
        general = ModelSettings(base_url=first.base_url, name="one", fallback=("spare",))
        spare = ModelSettings(base_url=second.base_url, name="two")
        model = EndpointModel(Settings(model=general, models={"spare": spare}, database=Path("unused.db")))
        reply = await model.reply(HI, ignore)
        await model.close()

    assert (reply.text, len(first.requests), len(second.requests)) == ("two", 1, 2)


async def test_a_switched_model_is_used_from_the_next_request() -> None:
    with FakeOpenAI([TXT("a"), TXT("b")], models=["one", "two"]) as server:
        model = EndpointModel(settings_for(server.base_url, "one"))
        await model.reply(HI, ignore)
        await model.switch("two")
        await model.reply(HI, ignore)
        names = await model.names()
        with pytest.raises(UsageError, match="name is empty"):
            await model.switch(" ")
        await model.close()

    assert [body["model"] for body in server.bodies] == ["one", "two"]
    assert (names, model.name) == (("one", "two"), "two")


async def test_several_models_without_a_choice_are_an_error_at_the_request() -> None:
    with FakeOpenAI(models=["one", "two"]) as server:
        model = EndpointModel(settings_for(server.base_url))
        with pytest.raises(UsageError, match="offers 2 models"):
            await model.choose_default()
        with pytest.raises(ModelError, match="/model NAME"):
            await model.reply(HI, ignore)
        await model.close()

    assert server.bodies == []


async def test_a_list_that_does_not_come_is_not_waited_for(silent: str) -> None:
    model = EndpointModel(settings_for(silent), list_timeout_s=0.2)
    began = time.monotonic()

    with pytest.raises(ModelError, match=r"did not answer within 0\.2 s"):
        await model.choose_default()

    assert time.monotonic() - began < 3


async def test_waiting_for_the_list_can_be_cancelled(silent: str) -> None:
    waiting = asyncio.create_task(EndpointModel(settings_for(silent)).names())
    await asyncio.sleep(0.1)

    waiting.cancel()

    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_profile_is_switched_to_with_its_own_address_and_key(tmp_path: Path) -> None:
    with FakeOpenAI([TXT("here")], models=("a", "b")) as here, FakeOpenAI([TXT("there")], models=("c",)) as there:
        settings = Settings(
            database=tmp_path / "x.db",
            model=ModelSettings(base_url=here.base_url, name="a", api_key=SecretStr("sk-here")),
            models={"far": ModelSettings(base_url=there.base_url)},
        )
        model = EndpointModel(settings)
        listed = await model.names()

        await model.switch("far")
        reply = await model.reply(ModelRequest([HumanMessage("hi")], ()), lambda _: None)
        await model.close()

    assert listed == ("far", "a", "b")
    assert (reply.text, model.name, model.label.split(" ")[0]) == ("there", "far", "c")
    assert model.chosen == {"profile": "far", "name": "c", "endpoint": there.base_url}
    assert "sk-here" not in there.requests[0].headers.get("authorization", "")


SAY = ModelRequest([HumanMessage("hi")], [], starts_turn=True)
BESIDE = ModelRequest([HumanMessage("may it?")], [])
CALLED = AIMessage("", tool_calls=[{"name": "ls", "args": {}, "id": "c"}])
GO_ON = ModelRequest([HumanMessage("hi"), CALLED, ToolMessage("x", tool_call_id="c")], [])
LATER = ERR(429, "busy", {"Retry-After": "3600"})


async def _at_once(_seconds: float) -> None: ...


def chain(*servers: FakeOpenAI) -> FallbackChain:
    options = ModelOptions(sleep=_at_once)
    return FallbackChain(
        [
            OpenAIModel(ModelSettings(base_url=one.base_url), f"m{place}", options)
            for place, one in enumerate(servers)
        ]
    )


async def test_the_next_model_is_asked_for_the_rest_of_the_turn_and_the_first_one_in_the_next() -> None:
    shown: list[Delta] = []
    with (
        FakeOpenAI([*[ERR(503, "down")] * 7, TXT("back")]) as first,
        FakeOpenAI([TXT("one"), TXT("yes"), TXT("two")]) as second,
    ):
        models = chain(first, second)
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


@pytest.mark.parametrize(
    ("of_first", "of_second", "words", "requests"),
    [
        (ERR(401, "no"), TXT("?"), "requires a key", 0),
        (LATER, LATER, r"127\.0\.0\.1.* try again later\. .*127\.0\.0\.1.* try again later\.", 1),
        (LATER, ERR(401, "no"), r"try again later\. .* requires a key", 1),
    ],
    ids=["an error that no fallback can avoid", "no model answers", "the fallback fails"],
)
async def test_a_failure_has_the_messages_of_all_and_the_first_model_is_asked_again(
    of_first: Reply, of_second: Reply, words: str, requests: int
) -> None:
    with FakeOpenAI([of_first, TXT("back")]) as first, FakeOpenAI([of_second]) as second:
        models = chain(first, second)
        with pytest.raises(ModelError, match=words):
            await models.reply(GO_ON, lambda _: None)
        reply = await models.reply(GO_ON, lambda _: None)
        await models.close()

    assert (reply.text, len(second.requests)) == ("back", requests)


class Jitter(random.Random):
    def __init__(self, value: float) -> None:
        super().__init__()
        self._value = value

    def random(self) -> float:
        return self._value


@pytest.mark.parametrize(
    ("kind", "jitter", "waits"),
    [
        ("busy", 0, [0.5, 1.0, 2.0, 4.0, 8.0, 16.0]),
        ("busy", 1, [0.625, 1.25, 2.5, 5.0, 10.0, 20.0]),
        ("empty", 0, [0.5, 1.0, 2.0]),
        ("final", 0, []),
        ("too_long", 0, []),
        ("unreachable", 1, [0.625, 1.25]),
    ],
)
def test_waits_double_from_half_a_second_with_a_quarter_of_jitter_and_end(
    kind: FailureKind, jitter: float, waits: list[float]
) -> None:
    policy, failure = RetryPolicy(Jitter(jitter)), Failure(kind, "Busy.")

    assert [policy.next_delay(failure) for _ in range(len(waits) + 1)] == [*waits, None]
    tries = f" Gave up after {len(waits) + 1} tries." if waits else ""
    assert policy.final_message(failure) == f"Busy.{tries}"


def test_kinds_mixed_together_do_not_add_up_to_more_tries() -> None:
    policy, kinds = RetryPolicy(Jitter(0)), list[FailureKind](("busy", "broken", "empty")) * 4

    given = [policy.next_delay(Failure(kind, "x.")) for kind in kinds]

    assert (sum(wait is not None for wait in given), policy.attempts) == (6, 7)


def test_the_server_decides_the_wait_up_to_a_minute_and_then_it_is_the_end() -> None:
    policy, long = RetryPolicy(Jitter(0)), Failure("busy", "Busy.", retry_after_s=61)

    assert policy.next_delay(Failure("busy", "Busy.", retry_after_s=60)) == 60
    assert policy.next_delay(long) is None
    assert policy.final_message(long) == "Busy. It asks for a wait of 61 s: try again later."


def test_fewer_attempts_may_be_made() -> None:
    policy = RetryPolicy(Jitter(0), max_attempts=2)

    assert [policy.next_delay(Failure("broken", "x.")) for _ in range(2)] == [0.5, None]
    assert policy.final_message(Failure("broken", "x.")) == "x. Gave up after 2 tries."
