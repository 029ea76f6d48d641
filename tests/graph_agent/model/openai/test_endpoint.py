import asyncio
import socket
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from pydantic import SecretStr

from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.errors import ModelError, UsageError
from graph_agent.model.openai.endpoint import EndpointModel
from graph_agent.ports import Delta, ModelRequest
from tests.fakes.openai_server import ERR, TXT, FakeOpenAI

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
