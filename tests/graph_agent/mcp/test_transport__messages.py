import pytest
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from graph_agent.mcp.transport import error_response, parse_message


@pytest.mark.parametrize("half", ["\\ud83d", "\\uD83D"])
def test_half_a_surrogate_pair_is_replaced(half: str) -> None:
    read = parse_message(f'{{"jsonrpc": "2.0", "method": "m", "params": {{"text": "half {half}"}}}}')

    assert read is not None
    assert read.message.root == JSONRPCNotification(jsonrpc="2.0", method="m", params={"text": "half \ufffd"})


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ('{"jsonrpc": "2.0", "id": 1, "method": "m"}', JSONRPCRequest),
        ('{"jsonrpc": "2.0", "id": null, "method": "m"}', JSONRPCNotification),
        ('{"jsonrpc": "2.0", "id": 1, "result": {}, "error": null}', JSONRPCResponse),
        ('{"jsonrpc": "2.0", "id": "a", "error": {"code": 1, "message": "no"}}', JSONRPCError),
    ],
)
def test_a_message_is_what_its_keys_say(line: str, kind: type) -> None:
    read = parse_message(line)

    assert read is not None
    assert type(read.message.root) is kind


@pytest.mark.parametrize("line", ["a banner", "{}", "[]", "3", '{"jsonrpc": "1.0"}', "[" * 100_000])
def test_what_is_no_message_is_none(line: str) -> None:
    assert parse_message(line) is None


@pytest.mark.parametrize(
    "beginning",
    [b'{"jsonrpc":"2.0","id":7,"result":{"content":[', b' { "id" : 7, "jsonrpc": "2.0", "result" : {"content":['],
)
def test_in_the_place_of_an_answer_that_is_passed_over_stands_an_error(beginning: bytes) -> None:
    refusal = error_response(beginning, "too long")

    assert refusal is not None
    told = refusal.message.root
    assert isinstance(told, JSONRPCError)
    assert (told.id, told.error.message) == (7, "too long")


@pytest.mark.parametrize(
    "beginning", [b"x" * 256, b'{"jsonrpc":"2.0","method":"m","params":{"id":7,', b'{"id":"7","result":{', b""]
)
def test_what_answers_nothing_is_passed_over_in_silence(beginning: bytes) -> None:
    assert error_response(beginning, "too long") is None
