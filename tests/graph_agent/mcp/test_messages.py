import pytest
from mcp.types import JSONRPCNotification

from graph_agent.mcp.messages import message_of


def test_half_a_surrogate_pair_is_replaced() -> None:
    read = message_of('{"jsonrpc": "2.0", "method": "m", "params": {"text": "half \\ud83d"}}')

    assert read is not None
    assert read.message.root == JSONRPCNotification(jsonrpc="2.0", method="m", params={"text": "half \ufffd"})


@pytest.mark.parametrize("line", ["a banner", "{}", "[]", "3", '{"jsonrpc": "1.0"}', "[" * 100_000])
def test_what_is_no_message_is_none(line: str) -> None:
    assert message_of(line) is None
