import json
from typing import Any

import pytest

from graph_agent.config.mcp_servers import ClientServer, parse_client_config
from graph_agent.errors import UsageError


@pytest.mark.parametrize("path", [("mcpServers",), ("servers",), ("mcp", "servers")])
def test_servers_are_found_where_clients_keep_them(path: tuple[str, ...]) -> None:
    found: dict[str, Any] = {"a": {"command": "x", "type": "stdio"}}
    for key in reversed(path):
        found = {key: found}

    assert parse_client_config(json.dumps({"other": 1, **found})) == [ClientServer("a", {"command": "x"}, ())]


@pytest.mark.parametrize(
    ("entry", "table", "left_out"),
    [
        (
            {
                "command": "npx",
                "args": ["-y", "${workspaceFolder}/a"],
                "env": {"K": "${env:KEY}", "N": 1, "E": None},
            },
            {"command": "npx", "args": ["-y", "./a"], "env": {"K": "${KEY}", "N": "1"}},
            (),
        ),
        ({"command": ["uvx", "it"], "args": []}, {"command": "uvx", "args": ["it"]}, ()),
        (
            {"httpUrl": "http://x/mcp", "headers": {"A": "Bearer ${T}"}, "autoApprove": ["x"], "timeout": 5000},
            {"url": "http://x/mcp", "headers": {"A": "Bearer ${T}"}},
            ("autoApprove", "timeout"),
        ),
        ({"command": "x", "disabled": True}, {"command": "x", "enabled": False}, ()),
    ],
)
def test_an_entry_becomes_a_table_and_what_means_nothing_here_is_named(
    entry: dict[str, Any], table: dict[str, Any], left_out: tuple[str, ...]
) -> None:
    assert parse_client_config(json.dumps({"mcpServers": {"a": entry}})) == [ClientServer("a", table, left_out)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "this is no JSON"),
        ("[" * 100_000, "this is no JSON"),
        ("[]", "there are no servers in it"),
        ('{"mcpServers": {}}', "there are no servers in it"),
        ('{"mcpServers": {"a": "x"}}', "server 'a' should be an object"),
        (
            '{"mcpServers": {"a": {"type": "sse", "url": "http://x"}}}',
            "server 'a' is of type 'sse'; there are stdio",
        ),
        ('{"mcpServers": {"a": {"command": "x", "args": ["${input:key}"]}}}', "${input:key} in its command line"),
        (
            '{"mcpServers": {"a": {"command": "x", "env": {"K": "${input:key}"}}}}',
            "K: ${input:key} is not known here",
        ),
    ],
)
def test_what_cannot_be_used_here_is_told_for_what_it_is(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_client_config(text)

    assert said in str(caught.value)


def test_one_server_is_taken_by_its_name_beside_others_that_cannot_be_used() -> None:
    text = '{"mcpServers": {"a": {"type": "sse"}, "b": {"command": "x"}}}'

    assert parse_client_config(text, "b") == [ClientServer("b", {"command": "x"}, ())]
    with pytest.raises(UsageError, match="no server 'c' in it; it has: a, b"):
        parse_client_config(text, "c")
