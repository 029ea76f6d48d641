from pathlib import Path

import pytest

from graph_agent.app.named_agents import NO_AGENT, agent_from_json, agent_of_thread, agent_to_json, load_agents
from graph_agent.app.toolset import default_registry
from graph_agent.calls import PLAN_TOOL
from graph_agent.config.settings import Settings

_TOOLS = ("read_file", "bash", "web_fetch", "new_task")
_OURS, _THEIRS = ".graph-agent/agents", ".claude/agents"


def _load(home: Path, *files: tuple[str, str]) -> dict[str, tuple[str, tuple[str, ...] | None, str, str, str]]:
    settings = Settings(database=home / "db", project_agents=files)
    agents = load_agents(settings, {"GRAPH_AGENT_HOME": str(home)}, _TOOLS)
    return {one.name: (one.prompt, one.tools, one.model, one.mode, one.problem) for one in agents.values()}


@pytest.mark.parametrize(
    ("place", "head", "found", "problem"),
    [
        (_OURS, "description: x", (None, "", ""), ""),
        (_OURS, "tools: [Read, bash]\nmodel: fast\nmode: plan", (("read_file", "bash"), "fast", "plan"), ""),
        (_OURS, "tools:\n- web_*\n- mcp__a__b", (("web_*", "mcp__a__b"), "", ""), ""),
        (_OURS, "tools:", ((), "", ""), ""),
        (_OURS, "tools: bsh", (("bsh",), "", ""), "tools: There is no tool 'bsh'. Did you mean bash?"),
        (_OURS, "tols: bash", (None, "", ""), "There is no field 'tols'. The fields are name, description, tools"),
        (_OURS, "mode: yolo", (None, "", "yolo"), "mode: 'yolo' is not one of default, acceptEdits"),
        (_OURS, "name: a b", (None, "", ""), "name: 'a b' may have only letters"),
        (_OURS, f"name: {'x' * 64}", (None, "", ""), ""),
        (_OURS, f"name: {'x' * 65}", (None, "", ""), "name: it has 65 characters; at most 64 are allowed."),
        (
            _THEIRS,
            "tools: Read, WebFetch, Task, NotebookEdit\nmodel: opus\ncolor: red\npermissionMode: plan",
            (("read_file", "web_fetch", "new_task", "NotebookEdit"), "", ""),
            "",
        ),
    ],
)
def test_the_head_of_a_file_gives_tools_model_and_mode(
    tmp_path: Path, place: str, head: str, found: tuple[tuple[str, ...] | None, str, str], problem: str
) -> None:
    file = f"/p/{place}/x.md"

    [agent] = _load(tmp_path, (file, f"---\n{head}\n---\nDo it.")).values()

    assert agent[:4] == ("Do it.", *found)
    assert agent[4].startswith(f"{file}: {problem}" if problem else "")
    assert bool(agent[4]) == bool(problem)


def test_agents_of_the_user_hide_those_of_a_project_and_these_those_for_other_agents(tmp_path: Path) -> None:
    files = [
        (f"/p/{_OURS}/b.md", "ours"),
        (f"/p/{_THEIRS}/x.md", "---\nname: b\n---\ntheirs"),
        (f"/p/{_OURS}/c.md", ""),
    ]
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "a.md").write_text("mine")

    before = _load(tmp_path, *files)
    (tmp_path / "agents" / "b.md").write_text("mine")

    assert {name: one[0] for name, one in before.items()} == {"a": "mine", "b": "ours", "c": ""}
    assert before["c"][4] == f"/p/{_OURS}/c.md: There are no instructions below the front matter."
    assert _load(tmp_path, *files)["b"][0] == "mine"


@pytest.mark.parametrize(
    ("tools", "offered"), [("[read_file, bash]", ["read_file", "present_plan"]), ("[read_file]", ["read_file"])]
)
def test_an_agent_that_may_change_something_can_present_a_plan_in_plan_mode(
    tmp_path: Path, tools: str, offered: list[str]
) -> None:
    registry = default_registry(tmp_path)
    place, text = f"/p/{_OURS}/b.md", f"---\nmode: plan\ntools: {tools}\n---\nB"
    settings = Settings(database=tmp_path / "db", project_agents=((place, text),))

    agent_of_thread(None, "b", settings, registry)

    assert {one["function"]["name"] for one in registry.declarations("plan")} == set(offered)
    assert PLAN_TOOL not in {one["function"]["name"] for one in registry.declarations("default")}


def test_an_agent_is_stored_with_its_thread_as_it_was(tmp_path: Path) -> None:
    settings = Settings(
        database=tmp_path / "db", project_agents=((f"/p/{_OURS}/b.md", "---\ntools: bash\n---\nB"),)
    )
    [agent] = load_agents(settings, {"GRAPH_AGENT_HOME": str(tmp_path)}, _TOOLS).values()

    assert [agent_from_json(agent_to_json(one)) for one in (agent, NO_AGENT)] == [agent, NO_AGENT]
    assert [agent.allows(name) for name in ("bash", "read_file")] == [True, False]
