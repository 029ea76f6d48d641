import pytest
from pydantic import ValidationError

from graph_agent.config.settings import McpServer


@pytest.mark.parametrize("url", ["https://x/mcp/", "http://localhost:8000/mcp?key=k", "http://[::1]:9/"])
def test_an_address_is_taken_as_it_is_written(url: str) -> None:
    assert McpServer(url=f" {url} ").url == url


@pytest.mark.parametrize("url", ["x/mcp", "ftp://x/", "http://", "http://x/#a", "http://x:0/"])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="should be an address that starts with"):
        McpServer(url=url)


@pytest.mark.parametrize("table", [{}, {"command": "x", "url": "http://y/"}])
def test_there_is_one_way_to_a_server(table: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="either a command or a url"):
        McpServer.model_validate(table)
