import json
from pathlib import Path
from typing import Any

import pytest

from graph_agent.config.mcp_servers import (
    ClientServer,
    delete_server_table,
    parse_client_config,
    validate_server,
    write_server_tables,
)
from graph_agent.errors import ConfigError, UsageError

NEW: dict[str, Any] = {"command": "npx", "args": ["-y", "it"], "env": {"KEY": "${KEY}"}}
ADDED = '[mcp_servers."my own"]\ncommand = "npx"\nargs = ["-y", "it"]\nenv = {KEY = "${KEY}"}\n'
OF_A = "[mcp_servers.a]\ncommand='x'  # why\n\n[mcp_servers.a.env]\nX = '1'\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


@pytest.mark.parametrize(
    "before",
    [
        "",
        "# mine\nmode='plan' # careful\n",
        f"{OF_A}# of rules\n[policy]\nallow=[]\n",
        "mcp_servers.a.command='x'\n",
    ],
)
def test_a_table_is_added_at_the_end_and_deleted_without_a_trace(path: Path, before: str) -> None:
    path.write_text(before)

    write_server_tables(path, {"my own": NEW})
    added = path.read_text()
    delete_server_table(path, "my own")

    assert added == (f"{before}\n{ADDED}" if before else ADDED)
    assert path.read_text() == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("# top\nmode = 'plan'\n\n", "# of rules\n[policy]\nallow = []\n"),
        ("", "[policy]\nallow = ['''\n[mcp_servers.a]\n''']\n"),
    ],
    ids=["comments after it", "a value that looks like a table"],
)
def test_a_table_is_deleted_with_the_tables_below_it_and_everything_else_stays(
    path: Path, before: str, after: str
) -> None:
    path.write_text(f"{before}{OF_A}{after}")

    delete_server_table(path, "a")

    assert path.read_text() == f"{before}{after}"


def test_a_section_in_one_line_is_added_to_in_its_line(path: Path) -> None:
    path.write_text("mcp_servers = { a = { command = 'x' } }  # all\nmode = 'plan'\n")

    write_server_tables(path, {"b": {"url": "http://b/mcp"}})

    assert path.read_text() == (
        "mcp_servers = { a = { command = 'x' }, b = {url = \"http://b/mcp\"}}  # all\nmode = 'plan'\n"
    )


def test_a_name_that_is_taken_is_replaced_only_on_request(path: Path) -> None:
    path.write_text(OF_A)

    with pytest.raises(UsageError, match="already has a server 'a'"):
        write_server_tables(path, {"b": NEW, "a": NEW})
    kept = path.read_text()
    write_server_tables(path, {"a": {"command": "y"}}, replace=True)

    assert (kept, path.read_text()) == (OF_A, '[mcp_servers.a]\ncommand = "y"\n')


def test_a_server_that_does_not_exist_and_a_section_that_is_no_table_are_named(path: Path) -> None:
    path.write_text(OF_A)
    with pytest.raises(UsageError, match="has no MCP server 'b'"):
        delete_server_table(path, "b")
    path.write_text("mcp_servers = 3\n")
    with pytest.raises(ConfigError, match="mcp_servers = 3 should be a table"):
        write_server_tables(path, {"b": NEW})


@pytest.mark.parametrize(
    ("name", "table", "said"),
    [
        ("", NEW, "'' is not a valid server name"),
        ("a\nb", NEW, "is not a valid server name"),
        (
            "a",
            {"command": "x", "url": "http://y/"},
            "a: should have either a command or a url. Nothing was changed.",
        ),
        ("a", {"url": "y"}, "a.url: should be an address"),
        ("a", {"command": "x", "env": {"TOKEN": 3}}, "a.env.TOKEN: Input should be"),
    ],
)
def test_an_invalid_table_is_refused_without_showing_its_values(
    name: str, table: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        validate_server(name, table)

    assert said in str(caught.value)


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
def test_an_entry_becomes_a_table_and_keys_without_a_counterpart_are_named(
    entry: dict[str, Any], table: dict[str, Any], left_out: tuple[str, ...]
) -> None:
    assert parse_client_config(json.dumps({"mcpServers": {"a": entry}})) == [ClientServer("a", table, left_out)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "this is not JSON"),
        ("[" * 100_000, "this is not JSON"),
        ("[]", "it contains no servers"),
        ('{"mcpServers": {}}', "it contains no servers"),
        ('{"mcpServers": {"a": "x"}}', "server 'a' should be an object"),
        (
            '{"mcpServers": {"a": {"type": "sse", "url": "http://x"}}}',
            "server 'a' has type 'sse'; only stdio",
        ),
        ('{"mcpServers": {"a": {"command": "x", "args": ["${input:key}"]}}}', "${input:key} in its command line"),
        (
            '{"mcpServers": {"a": {"command": "x", "env": {"K": "${input:key}"}}}}',
            "K: ${input:key} is not supported",
        ),
    ],
)
def test_what_cannot_be_used_here_is_named(text: str, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_client_config(text)

    assert said in str(caught.value)


def test_one_server_is_taken_by_its_name_beside_others_that_cannot_be_used() -> None:
    text = '{"mcpServers": {"a": {"type": "sse"}, "b": {"command": "x"}}}'

    assert parse_client_config(text, "b") == [ClientServer("b", {"command": "x"}, ())]
    with pytest.raises(UsageError, match="no server 'c'"):
        parse_client_config(text, "c")
