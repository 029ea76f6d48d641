import asyncio
import json
import stat
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from graph_agent.app.mcp_servers import log_in_at, log_out_at, trust_server, try_server
from graph_agent.errors import UsageError
from tests.fakes.mcp_oauth import LoginServer, login_server


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LoginServer]:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    with login_server() as started:
        config = tmp_path / "home" / "config.toml"
        config.parent.mkdir()
        config.write_text(f'[mcp_servers.s]\nurl = "{started.url}"\n[mcp_servers.p]\ncommand = "true"\n')
        yield started


def _tokens(folder: Path) -> Path:
    [file] = (folder / "home").rglob("mcp-tokens.json")
    return file


async def _browser(address: str) -> None:
    """Agrees, or is refused, as a person would in a browser."""

    async def visit() -> None:
        async with httpx.AsyncClient(follow_redirects=True) as client:
            await client.get(address)

    asyncio.get_running_loop().create_task(visit())


async def _works() -> tuple[bool, str]:
    trial = await try_server("s", Path.cwd())
    return [name for name, _, _ in trial.tools] == ["mcp__s__add"], " ".join(trial.warnings)


async def test_a_login_is_stored_privately_used_renewed_and_forgotten(tmp_path: Path, server: LoginServer) -> None:
    with pytest.raises(UsageError, match="not trusted"):
        await log_in_at("s", tmp_path, _browser)
    trust_server("s")
    without = await _works()
    server.seconds = 31  # The first token is renewed at once, because it ends within half a minute.
    logged_in = await log_in_at("s", tmp_path, _browser)
    file = _tokens(tmp_path)
    first = file.read_text()
    await asyncio.sleep(1.1)
    server.seconds = 3600
    renewed = await _works(), server.renewed
    again = await _works(), server.renewed
    second = file.read_text()
    forgotten = [log_out_at("s", tmp_path), log_out_at("s", tmp_path)]

    assert (without[0], "graph-agent mcp login s" in without[1]) == (False, True)
    assert (logged_in, stat.S_IMODE(file.stat().st_mode), file.is_relative_to(tmp_path / "home")) == (
        True,
        0o600,
        True,
    )
    assert (renewed, again) == (((True, ""), 1), ((True, ""), 1))
    assert first != second
    assert (forgotten, json.loads(file.read_text())) == ([True, False], {})


async def test_a_refused_login_says_so_and_stores_no_token(tmp_path: Path, server: LoginServer) -> None:
    trust_server("s")
    server.refuses = True

    with pytest.raises(UsageError, match=r"Cannot log in to MCP server 's': .*refused: access_denied\."):
        await log_in_at("s", tmp_path, _browser)
    with pytest.raises(UsageError, match="'p' is a program; only servers with a url"):
        await log_in_at("p", tmp_path, _browser)

    assert '"tokens"' not in _tokens(tmp_path).read_text()
    assert not server.access


async def test_a_login_that_cannot_be_renewed_asks_for_a_new_one(tmp_path: Path, server: LoginServer) -> None:
    trust_server("s")
    server.seconds = 1
    await log_in_at("s", tmp_path, _browser)
    server.refresh.clear()
    await asyncio.sleep(1.1)

    works, said = await _works()

    assert (works, "log in again: graph-agent mcp login s" in said) == (False, True)
    assert "access-" not in said
