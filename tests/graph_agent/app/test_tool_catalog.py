import os
from pathlib import Path

import pytest

from graph_agent.app.tool_catalog import load_tool_catalog
from graph_agent.config.settings import PolicySettings, Settings
from graph_agent.config.trust import trust_file
from graph_agent.mcp.settings import fingerprint
from tests.fakes.mcp_servers import odd
from tools import create_default_tools


async def test_every_default_tool_is_known_in_order(tmp_path: Path) -> None:
    settings = Settings(database=tmp_path / "x.db")

    known = (await load_tool_catalog(tmp_path, settings, "default")).tools

    assert [tool.name for tool in known] == [
        *(tool.name for tool in create_default_tools(workspace=tmp_path)),
        "tool_search",
    ]
    [bash] = [tool for tool in known if tool.name == "bash"]
    assert (bash.risk, bash.kind, bash.origin, bash.offered) == ("high", "execute", "builtin", True)
    assert bash.parameters["required"] == ["command"]


async def test_plan_mode_and_a_bare_deny_rule_take_tools_away_but_keep_them_known(tmp_path: Path) -> None:
    settings = Settings(database=tmp_path / "x.db", policy=PolicySettings(deny=("ls",)))

    available = {tool.name: tool.offered for tool in (await load_tool_catalog(tmp_path, settings, "plan")).tools}

    wanted = {"read_file": True, "ls": False, "bash": False, "todo_write": True}
    assert {name: available[name] for name in wanted} == wanted


async def test_a_servers_tool_is_shown_with_its_own_name_by_which_rules_take_it_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GRAPH_AGENT_HOME", str(tmp_path / "home"))
    denied = PolicySettings(deny=("mcp__my data__a b",))
    settings = Settings(database=tmp_path / "x.db", policy=denied, mcp_servers={"my data": odd(sandbox=False)})
    trust_file(os.environ).add_server("my data", fingerprint(settings.mcp_servers["my data"]), "now")

    known = await load_tool_catalog(tmp_path, settings, "default", about="mcp__my_data__a_b")

    found = {tool.original_name: (tool.name, tool.offered) for tool in known.tools if tool.origin == "mcp"}
    assert (found["a b"], found["now"]) == (
        ("mcp__my_data__a_b", False),
        ("mcp__my_data__now", True),
    )
