from pathlib import Path
from typing import Any

import pytest

from graph_agent.config.mcp_servers import delete_server_table, validate_server, write_server_tables
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
def test_a_table_is_added_below_all_else_and_taken_out_again_without_a_trace(path: Path, before: str) -> None:
    path.write_text(before)

    write_server_tables(path, {"my own": NEW})
    added = path.read_text()
    delete_server_table(path, "my own")

    assert added == (f"{before}\n{ADDED}" if before else ADDED)
    assert path.read_text() == before


def test_of_a_table_that_is_taken_out_the_tables_below_it_go_and_comments_after_it_stay(path: Path) -> None:
    path.write_text(f"# top\nmode = 'plan'\n\n{OF_A}\n# of rules\n[policy]\nallow = []\n")

    delete_server_table(path, "a")

    assert path.read_text() == "# top\nmode = 'plan'\n\n# of rules\n[policy]\nallow = []\n"


def test_a_value_that_looks_like_a_table_stays(path: Path) -> None:
    path.write_text(f"{OF_A}[policy]\nallow = ['''\n[mcp_servers.a]\n''']\n")

    delete_server_table(path, "a")

    assert path.read_text() == "[policy]\nallow = ['''\n[mcp_servers.a]\n''']\n"


def test_a_section_in_one_line_is_added_to_in_its_line(path: Path) -> None:
    path.write_text("mcp_servers = { a = { command = 'x' } }  # all\nmode = 'plan'\n")

    write_server_tables(path, {"b": {"url": "http://b/mcp"}})

    assert path.read_text() == (
        "mcp_servers = { a = { command = 'x' }, b = {url = \"http://b/mcp\"}}  # all\nmode = 'plan'\n"
    )


def test_a_name_that_is_taken_is_replaced_only_when_that_is_said(path: Path) -> None:
    path.write_text(OF_A)

    with pytest.raises(UsageError, match="has a server 'a' already; take another name, or --replace"):
        write_server_tables(path, {"b": NEW, "a": NEW})
    kept = path.read_text()
    write_server_tables(path, {"a": {"command": "y"}}, replace=True)

    assert (kept, path.read_text()) == (OF_A, '[mcp_servers.a]\ncommand = "y"\n')


def test_what_is_not_there_cannot_be_taken_out(path: Path) -> None:
    path.write_text(OF_A)

    with pytest.raises(UsageError, match="has no MCP server 'b'; it has: a"):
        delete_server_table(path, "b")


def test_a_section_that_is_no_table_is_told(path: Path) -> None:
    path.write_text("mcp_servers = 3\n")

    with pytest.raises(ConfigError, match="mcp_servers = 3 should be a table"):
        write_server_tables(path, {"b": NEW})


@pytest.mark.parametrize(
    ("name", "table", "said"),
    [
        ("", NEW, "'' is no name"),
        ("a\nb", NEW, "is no name"),
        (
            "a",
            {"command": "x", "url": "http://y/"},
            "a: should have either a command or a url. Nothing was changed.",
        ),
        ("a", {"url": "y"}, "a.url: should be an address"),
        ("a", {"command": "x", "env": {"TOKEN": 3}}, "a.env.TOKEN: Input should be"),
    ],
)
def test_what_is_no_server_is_refused_before_anything_is_written(
    name: str, table: dict[str, Any], said: str
) -> None:
    with pytest.raises(UsageError) as caught:
        validate_server(name, table)

    assert said in str(caught.value)
