import asyncio
import contextlib
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from types import FrameType

import pytest
from langchain_core.messages import HumanMessage

from graph_agent.config.settings import ModelSettings, Settings
from graph_agent.errors import ConfigError, ModelError, UsageError
from graph_agent.model.openai.capabilities import Capabilities
from graph_agent.model.openai.client import (
    EndpointClient,
    list_models,
    open_client,
    resolve_model_name,
)
from graph_agent.model.openai.errors import StalledReply
from tests.fakes.openai_server import SSE, TXT, FakeOpenAI, Reply

ODD_LINES = ['RAW {"a": 1}\r\rdata: {"b": 2}\r\n\r\n\ufeffdata: {"c": 3}']
THREE = ['{"a": 1}', '{"b": 2}', '{"c": 3}', "[DONE]"]


@pytest.mark.parametrize(
    ("sent", "payloads"),
    [
        (
            SSE(['RAW {"a": "\u2028"}', "RAW \n: keep-alive\n\nevent: ping\ndata:", 'RAW {"b": 2}']),
            ['{"a": "\u2028"}', '{"b": 2}', "[DONE]"],
        ),
        (SSE(ODD_LINES), THREE),
        (SSE(ODD_LINES, headers={"Content-Type": "application/json"}), THREE),
    ],
    ids=["keep-alives", "line ends", "called json"],
)
async def test_events_are_yielded_however_they_are_framed(sent: Reply, payloads: list[str]) -> None:
    with FakeOpenAI([sent]) as server:
        assert await _payloads(server, Capabilities()) == payloads


async def test_an_answer_that_is_not_streamed_is_handed_on_whole() -> None:
    with FakeOpenAI([TXT("hello")]) as server:
        (payload,) = await _payloads(server, Capabilities(streaming=False))

    assert payload.startswith('{"id": "chatcmpl-fake"')


async def _payloads(server: FakeOpenAI, capabilities: Capabilities) -> list[str]:
    client = open_client(ModelSettings(base_url=server.base_url), "m")
    body = client.request_body([HumanMessage("hi")], [], capabilities)
    payloads = [payload async for payload in client.payloads(body)]
    await client.close()
    return payloads


async def test_a_head_that_never_ends_is_waited_for_no_longer_than_an_answer() -> None:
    gone = asyncio.Event()

    async def drip(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nX-Queue: ")
        with contextlib.suppress(ConnectionError):
            while True:
                writer.write(b".")
                await writer.drain()
                await asyncio.sleep(0.05)
        writer.close()
        gone.set()

    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        client = open_client(ModelSettings(base_url=url, timeout_s=0.3, connect_timeout_s=0.2), "m")
        body = client.request_body([HumanMessage("hi")], [], Capabilities())
        with pytest.raises(StalledReply, match=r"^0\.5 s$"):
            await anext(client.payloads(body))
        await client.close()
        await gone.wait()


async def test_the_work_of_the_client_does_not_grow_with_the_history() -> None:
    with FakeOpenAI([TXT("warm"), TXT("short"), TXT("long")]) as server:
        client = open_client(ModelSettings(base_url=server.base_url), "m")
        counts = [await _checked_values(client, length) for length in (1, 1, 200)]
        await client.close()

    assert counts[1] == counts[2]
    assert [len(body["messages"]) for body in server.bodies] == [1, 1, 200]


async def _checked_values(client: EndpointClient, length: int) -> int:
    """How many values the client holds against its type declarations while it sends a history of this length."""
    body = client.request_body([HumanMessage("hi")] * length, [], Capabilities(streaming=False))
    checked = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal checked
        checked += event == "call" and frame.f_code.co_filename.endswith("_transform.py")

    sys.setprofile(count)
    try:
        async for _ in client.payloads(body):
            pass
    finally:
        sys.setprofile(None)
    return checked


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ALL_PROXY", "socks4://127.0.0.1:1", "cannot be used: its address begins with socks4://. Set an http://"),
        ("SSL_CERT_FILE", "/no/such/file", r"SSL_CERT_FILE or SSL_CERT_DIR cannot be read \(/no/such/file\)"),
    ],
)
def test_an_unusable_environment_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(ConfigError, match=words):
        open_client(ModelSettings(base_url="https://host/v1"), "m")


def settings_for(url: str, name: str | None = None) -> Settings:
    return Settings(model=ModelSettings(base_url=url, name=name), database=Path("unused.db"))


async def test_a_configured_model_needs_no_list() -> None:
    assert await resolve_model_name(settings_for("http://127.0.0.1:9/v1", "named")) == "named"


@pytest.mark.parametrize(("models", "found"), [(["a", "b"], "offers 2 models (a, b)"), ([], "lists no models")])
async def test_with_several_or_no_models_one_must_be_configured(models: list[str], found: str) -> None:
    with FakeOpenAI(models=models) as server, pytest.raises(UsageError) as caught:
        await resolve_model_name(settings_for(server.base_url))

    told = f"{server.base_url} {found}, and none is configured: set GRAPH_AGENT_MODEL, give --model NAME, or choose"
    assert (caught.value.exit_code, str(caught.value)) == (2, f"{told} one in the chat with /model NAME.")


async def test_the_names_are_listed_in_order_without_entries_that_name_no_model() -> None:
    with FakeOpenAI(models=["b", "a", {"id": None}, {"id": ""}, {"id": 3}]) as server:
        assert await list_models(settings_for(server.base_url)) == ("b", "a", "3")


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
