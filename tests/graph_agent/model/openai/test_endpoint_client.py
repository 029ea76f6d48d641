import asyncio
import contextlib
import json
import sys
from types import FrameType

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from graph_agent.config.settings import ModelSettings
from graph_agent.errors import ConfigError
from graph_agent.model.openai.capabilities import Capabilities
from graph_agent.model.openai.client import EndpointClient, open_client
from graph_agent.model.openai.errors import StalledReply
from tests.fakes.openai_server import SSE, TXT, FakeOpenAI

CALLED = [
    HumanMessage("hi"),
    AIMessage("", tool_calls=[{"name": "ls", "args": {"path": "a\ud800"}, "id": "c1"}]),
    ToolMessage("out", tool_call_id="c1"),
]


def test_a_body_has_only_supported_fields() -> None:
    wire = open_client(ModelSettings(base_url="http://localhost:1/v1"), "m")

    streamed = wire.request_body([HumanMessage("hi")], [], Capabilities())
    plain = wire.request_body(CALLED, [], Capabilities(streaming=False, null_content=False))

    assert json.loads(streamed) == {
        "model": "m",
        "stream": True,
        "stream_options": {"include_usage": True},
        "messages": [{"role": "user", "content": "hi"}],
    }
    function = {"name": "ls", "arguments": '{"path": "a\ufffd"}'}
    call = {"type": "function", "id": "c1", "function": function}
    assert json.loads(plain) == {
        "model": "m",
        "stream": False,
        "messages": [
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "out"},
        ],
    }


async def test_events_are_yielded_without_keepalives() -> None:
    chunks = ['RAW {"a": "\u2028"}', "RAW \n: keep-alive\n\nevent: ping\ndata:", 'RAW {"b": 2}']
    with FakeOpenAI([SSE(chunks)]) as server:
        wire = open_client(ModelSettings(base_url=server.base_url), "m")
        body = wire.request_body([HumanMessage("hi")], [], Capabilities())
        payloads = [payload async for payload in wire.payloads(body)]
        await wire.close()

    assert payloads == ['{"a": "\u2028"}', '{"b": 2}', "[DONE]"]


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
        wire = open_client(ModelSettings(base_url=url, timeout_s=0.3, connect_timeout_s=0.2), "m")
        body = wire.request_body([HumanMessage("hi")], [], Capabilities())
        with pytest.raises(StalledReply, match=r"^0\.5 s$"):
            await anext(wire.payloads(body))
        await wire.close()
        await gone.wait()


async def test_lines_end_in_any_way_and_events_may_be_sent_under_the_name_of_json() -> None:
    chunks = ['RAW {"a": 1}\r\rdata: {"b": 2}\r\n\r\n\ufeffdata: {"c": 3}']
    with FakeOpenAI([SSE(chunks), SSE(chunks, headers={"Content-Type": "application/json"})]) as server:
        wire = open_client(ModelSettings(base_url=server.base_url), "m")
        body = wire.request_body([HumanMessage("hi")], [], Capabilities())
        answers = [[payload async for payload in wire.payloads(body)] for _ in range(2)]
        await wire.close()

    assert answers == [['{"a": 1}', '{"b": 2}', '{"c": 3}', "[DONE]"]] * 2


async def test_an_answer_that_is_not_streamed_is_handed_on_whole() -> None:
    with FakeOpenAI([TXT("hello")]) as server:
        wire = open_client(ModelSettings(base_url=server.base_url), "m")
        body = wire.request_body([HumanMessage("hi")], [], Capabilities(streaming=False))
        payloads = [payload async for payload in wire.payloads(body)]
        await wire.close()

    assert [payload.startswith('{"id": "chatcmpl-fake"') for payload in payloads] == [True]


async def test_the_work_of_the_client_does_not_grow_with_the_history() -> None:
    with FakeOpenAI([TXT("warm"), TXT("short"), TXT("long")]) as server:
        wire = open_client(ModelSettings(base_url=server.base_url), "m")
        counts = [await _walked(wire, length) for length in (1, 1, 200)]
        await wire.close()

    assert counts[1] == counts[2]
    assert [len(body["messages"]) for body in server.bodies] == [1, 1, 200]


async def _walked(wire: EndpointClient, length: int) -> int:
    """How many values the client holds against its type declarations while it sends a history of this length."""
    body = wire.request_body([HumanMessage("hi")] * length, [], Capabilities(streaming=False))
    walked = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal walked
        walked += event == "call" and frame.f_code.co_filename.endswith("_transform.py")

    sys.setprofile(count)
    try:
        async for _ in wire.payloads(body):
            pass
    finally:
        sys.setprofile(None)
    return walked


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("ALL_PROXY", "socks5://127.0.0.1:1", "cannot be used: SOCKS is not supported. Set an http:// one"),
        ("SSL_CERT_FILE", "/no/such/file", r"SSL_CERT_FILE or SSL_CERT_DIR cannot be read \(/no/such/file\)"),
    ],
)
def test_an_unusable_environment_is_named_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, words: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(ConfigError, match=words):
        open_client(ModelSettings(base_url="https://host/v1"), "m")
