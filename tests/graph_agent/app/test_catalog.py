from pathlib import Path

from graph_agent.app.catalog import known_tools
from graph_agent.config.settings import PolicySettings, Settings
from tools import create_default_tools


async def test_every_default_tool_is_known_in_order(tmp_path: Path) -> None:
    settings = Settings(database=tmp_path / "x.db")

    known = (await known_tools(tmp_path, settings, "default")).tools

    assert [tool.name for tool in known] == [
        *(tool.name for tool in create_default_tools(workspace=tmp_path)),
        "tool_search",
    ]
    [bash] = [tool for tool in known if tool.name == "bash"]
    assert (bash.risk, bash.kind, bash.origin, bash.offered) == ("high", "execute", "builtin", True)
    assert bash.parameters["required"] == ["command"]


async def test_plan_mode_and_a_bare_deny_rule_take_tools_away_but_keep_them_known(tmp_path: Path) -> None:
    settings = Settings(database=tmp_path / "x.db", policy=PolicySettings(deny=("ls",)))

    offered = {tool.name: tool.offered for tool in (await known_tools(tmp_path, settings, "plan")).tools}

    wanted = {"read_file": True, "ls": False, "bash": False, "todo_write": True}
    assert {name: offered[name] for name in wanted} == wanted
