from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.errors import ModelError, UsageError
from graph_agent.model.openai.client import list_models, resolve_model_name
from tests.fakes.openai_server import FakeOpenAI

HERE = Path("unused.db")


def settings_for(url: str, name: str | None = None) -> Settings:
    return Settings(model=ModelSettings(base_url=url, name=name), database=HERE)


async def test_a_configured_model_needs_no_list() -> None:
    assert await resolve_model_name(settings_for("http://127.0.0.1:9/v1", "named")) == "named"


@pytest.mark.parametrize(("models", "found"), [(["a", "b"], "offers 2 models (a, b)"), ([], "lists no models")])
async def test_with_several_or_no_models_one_must_be_configured(models: list[str], found: str) -> None:
    with FakeOpenAI(models=models) as server, pytest.raises(UsageError) as caught:
        await resolve_model_name(settings_for(server.base_url))

    told = f"{server.base_url} {found}, and none is configured: set GRAPH_AGENT_MODEL, give --model NAME, or choose"
    assert (caught.value.exit_code, str(caught.value)) == (2, f"{told} one in the chat with /model NAME.")


async def test_the_model_list_is_given_in_the_endpoints_order() -> None:
    with FakeOpenAI(models=["b", "a"]) as server:
        assert await list_models(settings_for(server.base_url)) == ("b", "a")


async def test_an_endpoint_that_is_not_there_is_named() -> None:
    with pytest.raises(
        ModelError, match=r"list of models cannot be read\. Cannot connect to http://127.0.0.1:9/v1"
    ):
        await list_models(settings_for("http://127.0.0.1:9/v1"))


@pytest.mark.parametrize(
    "answer", ["<html><title>Log in</title></html>", "[1, 2]", '"text"', '{"data": 3}', "", "[" * 100_000]
)
async def test_another_answer_than_a_list_of_models_is_an_error(answer: str) -> None:
    class NoList(BaseHTTPRequestHandler):
        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base class names it so
            pass

        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer.encode())

    with HTTPServer(("127.0.0.1", 0), NoList) as server:
        Thread(target=server.handle_request, daemon=True).start()
        with pytest.raises(ModelError, match=r"cannot be read\. \S+ does not speak the OpenAI protocol"):
            await list_models(settings_for(f"http://127.0.0.1:{server.server_port}/v1"))


async def test_entries_of_the_list_that_name_no_model_are_left_out() -> None:
    with FakeOpenAI(models=["a", {"id": None}, {"id": ""}, {"id": 3}]) as server:
        assert await list_models(settings_for(server.base_url)) == ("a", "3")
