import asyncio
import contextlib
import ssl
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import openai
import pytest
from langchain_core.messages import HumanMessage

from graph_agent.config.settings import ModelSettings
from graph_agent.model.openai.capabilities import Capabilities
from graph_agent.model.openai.client import EndpointClient, open_client
from graph_agent.model.openai.early_request import EarlyRequest
from graph_agent.model.openai.errors import BrokenReply, StalledReply
from graph_agent.model.openai.request_body import PlainMessage, RequestEncoder
from tests.fakes.openai_server import CUT, DELAY, ERR, SSE, TXT, FakeOpenAI
from tests.scenarios.command import free_port, until

EVENT = b'data: {"choices": [{"delta": {"content": "early"}}]}\n\n'


class Cleared:
    """Counts how often it was noted that nothing was paid in vain."""

    def __init__(self) -> None:
        self.count = 0

    async def __call__(self) -> None:
        self.count += 1


def body_of(settings: ModelSettings) -> bytes:
    return RequestEncoder(settings, "m").body([PlainMessage("human", "hi")], [], Capabilities())


def send(settings: ModelSettings, cleared: Cleared) -> EarlyRequest:
    early = EarlyRequest(settings)
    early.send(body_of(settings), cleared)
    return early


async def ask(client: EndpointClient, text: str = "hi") -> str:
    body = client.request_body([HumanMessage(text)], [], Capabilities())
    return "".join([payload async for payload in client.payloads(body)])


@contextlib.asynccontextmanager
async def answering(
    head: bytes, *pieces: bytes, certificates: ssl.SSLContext | None = None, closed: int = 0
) -> AsyncIterator[ModelSettings]:
    """An endpoint that sends these bytes on the first connection and a plain answer on each later one.

    As many connections as `closed` it closes before that, without an answer.
    """
    asked = -closed

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        if asked <= 0:
            writer.close()
            return
        head_of_request = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head_of_request.lower().split(b"\r\n") if line.startswith(b"content-length"))
        await reader.readexactly(int(length.partition(b":")[2]))
        with contextlib.suppress(ConnectionError, asyncio.CancelledError):
            for piece in (head, *pieces) if asked == 1 else (OK + b"\r\n", b"data: late\n\n"):
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(0.01)
            writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=certificates) as server:
        port = server.sockets[0].getsockname()[1]
        kind = "http" if certificates is None else "https"
        yield ModelSettings.model_validate({"base_url": f"{kind}://localhost:{port}/v1", "api_key": "key"})


OK = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"


@pytest.mark.parametrize(
    "sent",
    [
        (OK + b"\r\n", EVENT),
        (OK + b"Content-Length: %d\r\n\r\n" % len(EVENT), EVENT[:9], EVENT[9:]),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"%x;x=y\r\n%s\r\n" % (len(EVENT), EVENT), b"0\r\n\r\n"),
        (OK + b"Transfer-Encoding: Chunked\r\n\r\n", b"5\r", b"\n%s\r\n" % EVENT[:5], b"1000\r\n" + EVENT[5:]),
        (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", OK + b"\r\n", EVENT),
        (OK[:20], OK[20:] + b"content-encoding: identity\r\n\r\n" + EVENT),
        (OK + b"X-\xe9: \xfc\r\nX-\x00: \x1b[31m\r\n: no name\r\nno colon\r\n\r\n" + EVENT,),
    ],
    ids=["until the end", "length", "chunks", "cut chunks", "hints", "cut head", "odd headers"],
)
async def test_an_answer_is_taken_over_however_it_is_framed(sent: tuple[bytes, ...]) -> None:
    cleared = Cleared()
    async with answering(*sent) as settings:
        early = send(settings, cleared)
        client = open_client(settings, "m", early)
        with contextlib.suppress(BrokenReply):  # Of the one that ends in the middle of a chunk.
            assert "early" in await ask(client)
        again = await ask(client)
        await client.close()

    assert (cleared.count, again) == (1, "late")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    """A certificate for localhost that nobody trusts, and a server's context with it."""
    folder = tmp_path_factory.mktemp("tls")
    key, certificate = folder / "key.pem", folder / "cert.pem"
    made = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext"
    files = ["subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([*made.split(), *files], check=True, capture_output=True)
    own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    own.load_cert_chain(certificate, key)
    return certificate, own


async def test_an_answer_over_tls_is_taken_over(
    certificate: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    file, own = certificate
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    cleared = Cleared()

    async with answering(OK + b"\r\n", EVENT, certificates=own) as settings:
        refused = send(settings, cleared)
        await refused.sent(5)
        await refused.close()
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        early = send(settings, cleared)
        await early.sent(5)
        client = open_client(settings, "m", early)
        answer = await ask(client)
        await client.close()

    # The first one trusts no such server, so it never left.
    assert ("early" in answer, cleared.count) == (True, 2)


@pytest.mark.parametrize("closed", [0, 1])
@pytest.mark.parametrize("is_early", [True, False])
async def test_a_connection_that_was_opened_ahead_carries_the_request_unless_the_server_closed_it(
    certificate: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch, closed: int, is_early: bool
) -> None:
    file, own = certificate
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    cleared = Cleared()

    async with answering(OK + b"\r\n", EVENT, certificates=own, closed=closed) as settings:
        early = EarlyRequest(settings)
        early.connect_ahead()
        await asyncio.sleep(0.3)
        if is_early:
            early.send(body_of(settings), cleared)
        client = open_client(settings, "m", early)
        answer = await ask(client)
        await client.close()

    # The first connection that the server keeps is the only one that is answered like this.
    assert ("early" in answer, cleared.count) == (True, int(is_early))


async def test_a_connection_is_opened_ahead_only_where_that_takes_round_trips() -> None:
    with FakeOpenAI([TXT("late")]) as server:
        settings = ModelSettings(base_url=server.base_url)
        early = EarlyRequest(settings)
        early.connect_ahead()
        early.send_if_connected(early.encode(b"{}"))
        await early.close()

    assert (early.request, server.requests) == (None, [])


Change = Callable[[ModelSettings], tuple[ModelSettings, str]]


@pytest.mark.parametrize(
    "changed",
    [
        lambda settings: (settings, "other"),
        lambda settings: (settings.model_copy(update={"base_url": settings.endpoint.replace("v1", "v2")}), "hi"),
        lambda settings: (settings.model_copy(update={"api_key": None}), "hi"),
        lambda settings: (settings.model_copy(update={"effort": "high"}), "hi"),
    ],
    ids=["message", "address", "key", "body"],
)
async def test_an_answer_to_another_request_is_dropped(changed: Change) -> None:
    cleared = Cleared()
    with FakeOpenAI([TXT("early"), TXT("late")]) as server:
        settings = ModelSettings.model_validate({"base_url": server.base_url, "api_key": "key"})
        early = send(settings, cleared)
        await early.sent(5)
        other, text = changed(settings)
        client = open_client(other, "m", early)
        await ask(client, text)
        await client.close()

    assert (cleared.count, len(server.requests)) == (0, 2)


HTML = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\n<html>"


@pytest.mark.parametrize(
    "sent",
    [
        (b"HTTP/1.1 429 Too Many\r\nContent-Type: text/event-stream\r\nRetry-After: 9\r\n\r\n",),
        (b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n",),
        (b"HTTP/1.1 307 Elsewhere\r\nLocation: /v2\r\nContent-Length: 0\r\n\r\n",),
        (HTML,),
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",),
        (OK + b"Content-Encoding: gzip\r\n\r\n", b"\x1f\x8b"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n",),
        (b"",),
        (OK,),
        (OK + b"\r\n",),
        (OK + b"\r\n", b": wait\n\n"),
        (OK + b"Content-Length: 50\r\n\r\n", b"da"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"zz\r\n"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"-5\r\n" + EVENT),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"0x_5\r\n" + EVENT),
        (OK + b"Content-Length: -5\r\n\r\n", EVENT),
        (OK + b"Content-Length: 1_0\r\n\r\n", EVENT),
        (OK + b"X: " + b"x" * 100_000 + b"\r\n\r\n",),
        (OK + b"\r\n", *[b": wait\n" * 30_000] * 6),
        (b"HTTP/1.1 429 Too Many\r\n\r\n{", *[b" " * 200_000] * 6, b'"error": {}}'),
    ],
    ids=lambda sent: sent[0][:40].decode() if isinstance(sent, tuple) else None,
)
async def test_an_answer_that_is_no_stream_or_breaks_before_its_first_event_is_asked_for_again(
    sent: tuple[bytes, ...],
) -> None:
    cleared = Cleared()
    async with answering(*sent) as settings:
        early = send(settings, cleared)
        await early.sent(5)
        client = open_client(settings, "m", early)
        answer = await ask(client)
        await client.close()

    assert (answer, cleared.count) == ("late", 0)


@pytest.mark.parametrize("status", [400, 401, 404, 422, 429, 500, 502, 503])
async def test_an_error_of_the_endpoint_is_the_answer_in_its_own_words(status: int) -> None:
    cleared = Cleared()
    with FakeOpenAI([ERR(status, "not this one", {"Retry-After": "7"}), TXT("late")]) as server:
        settings = ModelSettings(base_url=server.base_url)
        client = open_client(settings, "m", send(settings, cleared))
        with pytest.raises(openai.APIStatusError, match="not this one") as raised:
            await ask(client)
        await client.close()

    found = (raised.value.status_code, raised.value.response.headers["retry-after"])
    assert (found, cleared.count, len(server.requests)) == ((status, "7"), 1, 1)


async def test_a_stream_that_breaks_after_its_first_event_fails_as_every_other() -> None:
    cleared = Cleared()
    with FakeOpenAI([CUT(TXT("one two"), after=2), TXT("late")]) as server:
        settings = ModelSettings(base_url=server.base_url)
        client = open_client(settings, "m", send(settings, cleared))
        with pytest.raises(BrokenReply, match="closed in the middle"):
            await ask(client)
        await client.close()

    assert (cleared.count, len(server.requests)) == (1, 1)


async def test_an_endpoint_that_cannot_be_reached_costs_nothing_and_is_asked_again() -> None:
    cleared, port = Cleared(), free_port()
    settings = ModelSettings(base_url=f"http://127.0.0.1:{port}/v1")
    early = send(settings, cleared)
    await early.sent(5)

    with FakeOpenAI([TXT("late")], port=port) as server:
        client = open_client(settings, "m", early)
        answer = await ask(client)
        await client.close()

    assert ("[DONE]" in answer, cleared.count, len(server.requests)) == (True, 1, 1)


async def test_a_silent_endpoint_stalls_as_it_does_in_the_turn() -> None:
    cleared = Cleared()
    with FakeOpenAI([DELAY(30, TXT("late"))]) as server:
        settings = ModelSettings(base_url=server.base_url, timeout_s=0.2, connect_timeout_s=0.1)
        client = open_client(settings, "m", send(settings, cleared))
        with pytest.raises(StalledReply):
            await ask(client)
        await client.close()

    assert cleared.count == 0


async def test_a_request_that_nobody_asks_for_is_closed_and_stays_counted() -> None:
    cleared = Cleared()
    with FakeOpenAI([DELAY(30, TXT("late"))]) as server:
        early = send(ModelSettings(base_url=server.base_url), cleared)
        await early.sent(5)
        await asyncio.to_thread(until, lambda: bool(server.requests))
        await early.close()
        await early.close()

    assert cleared.count == 0


async def test_only_the_first_request_can_take_the_answer_over() -> None:
    cleared = Cleared()
    with FakeOpenAI([TXT("early"), TXT("other"), TXT("late")]) as server:
        settings = ModelSettings(base_url=server.base_url)
        early = send(settings, cleared)
        await early.sent(5)
        client = open_client(settings, "m", early)
        answers = [await ask(client, "other"), await ask(client)]
        await client.close()

    assert ['"ot"' in answers[0], '"la"' in answers[1], cleared.count] == [True, True, 0]


async def test_a_large_answer_waits_in_the_connection_and_arrives_whole() -> None:
    cleared = Cleared()
    chunks: list[object] = [{"content": "x" * 1000} for _ in range(1000)]
    with FakeOpenAI([SSE(chunks)]) as server:
        settings = ModelSettings(base_url=server.base_url)
        early = send(settings, cleared)
        await early.sent(5)
        await asyncio.sleep(0.3)
        client = open_client(settings, "m", early)
        answer = await ask(client)
        await client.close()

    assert (answer.count("x" * 1000), cleared.count) == (1000, 1)
