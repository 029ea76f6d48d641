import asyncio
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from graph_agent.acp import jsonrpc
from graph_agent.acp.jsonrpc import Connection, PeerError, Reply, RpcError, read_lines
from graph_agent.errors import ThreadHeld, UnknownId, UsageError


class Peer:
    """The other end, which keeps what it gets."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.served: list[str] = []
        self.connection = Connection(lambda line: self.got.append(json.loads(line)), self._serve)

    async def _serve(self, method: str, params: Mapping[str, Any]) -> Reply:
        self.served.append(method)
        match method:
            case "refused":
                raise RpcError(-32000, "no")
            case "unknown":
                raise UnknownId("no such thread")
            case "wrong":
                raise UsageError("wrong")
            case "held":
                raise ThreadHeld("held")
            case "bug":
                raise ZeroDivisionError
        return Reply({"echo": params}, lambda: self.served.append("then"))

    async def send(self, line: str | bytes) -> dict[str, Any] | None:
        """The one answer to a line; None for no answer."""
        before = len(self.got)
        self.connection.receive(line if isinstance(line, bytes) else line.encode())
        for _ in range(5):
            await asyncio.sleep(0)
        assert len(self.got) - before <= 1
        return self.got[-1] if len(self.got) > before else None


@pytest.mark.parametrize(
    ("line", "number", "code"),
    [
        ("not json", None, -32700),
        ('{"jsonrpc": "2.0", "id": 1, "method"', None, -32700),
        (b"\xff\xfe{}", None, -32700),
        ("[" * 100_000, None, -32700),
        ("42", None, -32600),
        ("null", None, -32600),
        ('[{"jsonrpc": "2.0", "id": 1, "method": "echo"}]', None, -32600),
        ("{}", None, -32600),
        ('{"id": 7}', 7, -32600),
        ('{"id": 7, "method": 3}', 7, -32600),
        ('{"id": [], "method": "echo"}', None, -32600),
        ('{"id": true, "method": "echo"}', None, -32600),
        ('{"id": 1e999, "method": "echo"}', None, -32600),
        ('{"id": NaN, "method": "echo"}', None, -32700),
        ('{"id": 7, "method": "echo", "params": {"x": -Infinity}}', None, -32700),
        ('{"id": 7, "method": "echo", "params": [1]}', 7, -32602),
        ('{"id": 7, "method": "echo", "params": "x"}', 7, -32602),
        ('{"id": "a", "method": "refused"}', "a", -32000),
        ('{"id": 7, "method": "unknown"}', 7, -32002),
        ('{"id": 7, "method": "wrong"}', 7, -32602),
        ('{"id": 7, "method": "held"}', 7, -32603),
        ('{"id": 7, "method": "bug"}', 7, -32603),
    ],
)
async def test_what_is_no_request_is_answered_with_an_error(line: str | bytes, number: object, code: int) -> None:
    peer = Peer()

    answer = await peer.send(line)

    assert answer is not None
    assert (answer["id"], answer["error"]["code"], "\n" in answer["error"]["message"]) == (number, code, False)
    assert await peer.send('{"id": 1, "method": "echo", "params": {"x": 1}}') == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"echo": {"x": 1}},
    }
    assert peer.served[-1] == "then"


@pytest.mark.parametrize(
    "line", ["", "  \r", '{"method": "bug"}', '{"method": "refused"}', '{"id": 99, "result": {}}']
)
async def test_what_needs_no_answer_gets_none(line: str) -> None:
    assert await Peer().send(line) is None


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"result": {"a": 1}}, {"a": 1}),
        ({"result": None}, None),
        ({"error": {"code": 1, "message": "gone"}}, "gone"),
        ({"error": "odd"}, "odd"),
    ],
)
async def test_a_request_gets_the_answer_with_its_id(answer: dict[str, Any], result: object) -> None:
    peer = Peer()
    asking = asyncio.ensure_future(peer.connection.request("ask", {}))
    await asyncio.sleep(0)
    await peer.send(json.dumps({"id": 12345, "result": "of another"}))

    await peer.send(json.dumps({"id": peer.got[0]["id"], **answer}))

    if "error" in answer:
        with pytest.raises(PeerError, match=str(result)):
            await asking
    else:
        assert await asking == result


async def test_a_request_that_is_given_up_is_taken_back_and_one_that_is_open_at_the_end_fails() -> None:
    peer = Peer()
    given_up, left = (asyncio.ensure_future(peer.connection.request("ask", {})) for _ in range(2))
    await asyncio.sleep(0)
    given_up.cancel()
    await asyncio.wait({given_up})
    await peer.connection.close()

    assert peer.got[-1] == {"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}}
    with pytest.raises(PeerError):
        await left
    with pytest.raises(PeerError):
        await peer.connection.request("ask", {})


async def test_lone_surrogates_leave_as_valid_text() -> None:
    lines: list[bytes] = []
    Connection(lines.append, Peer()._serve).notify("say", {"text": "a\udcff"})

    assert lines == [b'{"jsonrpc":"2.0","method":"say","params":{"text":"a?"}}\n']


async def test_a_line_that_is_too_long_is_skipped_and_the_next_one_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jsonrpc, "_MAX_LINE_BYTES", 10)
    monkeypatch.setattr(jsonrpc, "_READ_BYTES", 7)
    path = tmp_path / "input"
    path.write_bytes(b"short\n" + b"x" * 25 + b"\n\n" + b"y" * 11 + b"\nfits\nno newline")
    with path.open("rb") as file:
        read = [line async for line in read_lines(os.dup(file.fileno()))]

    kinds = [("line", b"short"), ("long", b""), ("line", b""), ("long", b"")]
    assert read == [*kinds, ("line", b"fits"), ("line", b"no newline")]
