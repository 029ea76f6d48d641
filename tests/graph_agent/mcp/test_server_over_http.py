import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from graph_agent.config.settings import McpServer
from graph_agent.mcp.server import ManagedServer, ServerFailed
from tests.fakes.mcp_servers import McpTestServers

_PING = {"name": "ping", "inputSchema": {"type": "object"}}
_RESULTS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "far", "version": "1"},
    },
    "tools/list": {"tools": [_PING]},
}
_PONG = {"content": [{"type": "text", "text": "pong"}]}


def _answer(body: bytes, kind: str = "application/json", *, promised: int = 0, status: str = "200 OK") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body) + promised}\r\n\r\n"
    return head.encode() + body


def _message(number: object, result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()


def _event(number: object) -> bytes:
    return b"event: message\ndata: " + _message(number, _PONG) + b"\n\n"


_BROKEN: dict[str, Callable[[object], bytes]] = {
    "an event stream that breaks off": lambda id_: _answer(_event(id_)[:40], "text/event-stream", promised=1000),
    "an event stream without the answer": lambda _: _answer(b": nothing\n\n", "text/event-stream"),
    "half a message": lambda id_: _answer(_message(id_, _PONG)[:30], promised=30),
    "no message": lambda _: _answer(b"{]"),
    "the answer to another request": lambda _: _answer(_message(4711, _PONG)),
    "a page": lambda _: _answer(b"<html>", "text/html"),
    "no content": lambda _: _answer(b"", status="202 Accepted"),
    "a session that is not known any more": lambda _: _answer(b"", status="404 Not Found"),
    "nothing": lambda _: b"",
}


@asynccontextmanager
async def _served(
    answer: Callable[[object], bytes], folder: Path
) -> AsyncIterator[tuple[ManagedServer, McpTestServers]]:
    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        if not head.startswith("post"):
            writer.write(_answer(b"", status="405 Method Not Allowed"))
        else:
            length = int(head.split("content-length:")[1].split()[0])
            asked = json.loads(await reader.readexactly(length))
            if "id" not in asked:
                writer.write(_answer(b"", status="202 Accepted"))
            elif asked["method"] in _RESULTS:
                writer.write(_answer(_message(asked["id"], _RESULTS[asked["method"]])))
            else:
                writer.write(answer(asked["id"]))
        await writer.drain()
        writer.close()

    harbour = McpTestServers(folder)
    async with await asyncio.start_server(attend, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        async with harbour.fleet(far=McpServer(url=f"http://127.0.0.1:{port}/mcp", timeout=30)) as fleet:
            yield fleet.servers[0], harbour


async def _ignore(progress: float, total: float | None, message: str | None) -> None:
    pass


@pytest.mark.parametrize("how", _BROKEN)
async def test_a_call_without_a_complete_answer_ends_at_once_with_an_unknown_effect(
    tmp_path: Path, how: str
) -> None:
    async with _served(_BROKEN[how], tmp_path) as (server, _), asyncio.timeout(5):
        with pytest.raises(ServerFailed, match="went away during the call") as failed:
            await server.call("ping", {}, _ignore)

    assert "check before you repeat it" in str(failed.value)


async def test_a_call_that_is_answered_as_an_event_has_its_result_and_nothing_is_warned_of(tmp_path: Path) -> None:
    async with _served(lambda id_: _answer(_event(id_), "text/event-stream"), tmp_path) as (server, harbour):
        result = await server.call("ping", {}, _ignore)

    assert (result.model_dump(include={"content", "isError"}, exclude_none=True), harbour.warnings) == (
        {**_PONG, "isError": False},
        [],
    )


async def test_an_error_of_one_call_does_not_affect_others(tmp_path: Path) -> None:
    def fails(_: object) -> bytes:
        return _answer(b"oh", status="500 Internal Server Error")

    async with _served(fails, tmp_path) as (server, harbour):
        for _ in range(3):
            with pytest.raises(
                ServerFailed, match="'far' returned an error: it answered 500 Internal Server Error"
            ):
                await server.call("ping", {}, _ignore)

    assert harbour.warnings == []


async def test_a_server_that_lost_the_session_is_initialised_again(tmp_path: Path) -> None:
    answers = iter([_answer(b"", status="404 Not Found")])

    def forgot_once(id_: object) -> bytes:
        return next(answers, _answer(_message(id_, _PONG)))

    async with _served(forgot_once, tmp_path) as (server, harbour):
        with pytest.raises(ServerFailed):
            await server.call("ping", {}, _ignore)
        result = await server.call("ping", {}, _ignore)

    assert result.isError is False
    assert harbour.warnings == ["MCP server 'far': it no longer knows this session. Restarting it once."]
