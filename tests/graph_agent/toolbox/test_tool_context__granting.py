from dataclasses import replace
from pathlib import Path

import pytest

from graph_agent.ports import Grant, GrantScope, Proposal, Scope
from graph_agent.toolbox import GraphToolbox, ToolboxDependencies
from policy import PolicySettings
from tests.fakes.tool_ports import ToolSurroundings
from tools import create_default_tools
from tools.registry import ToolRegistry

_GRANT = Grant("thread", ("bash(ls -la)",), "default", "t1", "/w", "c", "chat", "2026-01-01T00:00:00.000Z", id=3)
_SCOPE = Scope("t1", "default")


class _Given:
    def __init__(self, *grants: Grant) -> None:
        self.grants = list(grants)
        self.asked: list[tuple[str, str]] = []

    async def in_force(self, thread_id: str, workspace: str) -> list[Grant]:
        self.asked.append((thread_id, workspace))
        return self.grants

    async def revoke(self, grant_id: int, by: str, at: str) -> Grant | None:
        return None


async def _nothing(*_: object) -> None:
    return None


def _box(folder: Path, given: _Given) -> tuple[GraphToolbox, Path]:
    around = ToolSurroundings(folder)
    registry = ToolRegistry()
    registry.register_all(create_default_tools(workspace=around.workspace))
    ports = ToolboxDependencies(around.blobs, around.file_states, _nothing, grants=given)
    return GraphToolbox(
        registry, workspace=around.workspace, policy=PolicySettings(), dependencies=ports
    ), around.workspace


@pytest.mark.parametrize(
    ("scope", "where"), [("thread", "this thread"), ("project", "this project"), ("user", "everywhere")]
)
async def test_a_call_is_judged_by_what_was_allowed_always_and_names_it(
    tmp_path: Path, scope: GrantScope, where: str
) -> None:
    given = _Given(replace(_GRANT, scope=scope))
    box, workspace = _box(tmp_path, given)

    plan = await box.prepare("bash", {"command": "ls -la"}, _SCOPE)

    assert (plan.verdict, plan.rule) == ("allow", f"grant 3 ({where})")
    assert plan.reason == f"Allowed always by grant 3 ({where}): 'bash(ls -la)'."
    assert given.asked == [("t1", str(workspace))]


async def test_a_grant_taken_back_holds_no_more_from_the_next_call_on(tmp_path: Path) -> None:
    given = _Given(_GRANT)
    box, _ = _box(tmp_path, given)
    before = await box.prepare("bash", {"command": "ls -la"}, _SCOPE)

    given.grants.clear()

    after = await box.prepare("bash", {"command": "ls -la"}, _SCOPE)
    assert (before.verdict, after.verdict) == ("allow", "ask")


async def test_a_grant_that_cannot_be_read_allows_nothing(tmp_path: Path) -> None:
    box, _ = _box(tmp_path, _Given(replace(_GRANT, rules=("(", "bash(ls -la)"))))

    assert (await box.prepare("bash", {"command": "ls -la"}, _SCOPE)).verdict == "ask"


async def test_what_is_proposed_is_what_the_tool_would_get(tmp_path: Path) -> None:
    box, workspace = _box(tmp_path, _Given())

    written = await box.propose("write", {"path": "./a.txt", "content": ""}, _SCOPE)

    assert written == Proposal((f"write_file({workspace}/a.txt)",))
    refused = [
        await box.propose("bash", {"command": 7.5}, _SCOPE),
        await box.propose("no_such_tool", {}, _SCOPE),
        await box.propose("write_file", {"file_path": "a\0b", "content": ""}, _SCOPE),
    ]
    assert [(proposal.rules, proposal.objection != "") for proposal in refused] == [((), True)] * 3


@pytest.mark.parametrize(
    ("cwd", "arguments", "verdict"),
    [
        ("", {}, "ask"),
        ("sub", {}, "allow"),
        ("", {"working_directory": "sub"}, "allow"),
        ("", {"working_directory": "sub/../sub"}, "allow"),
        ("sub", {"working_directory": "."}, "ask"),
        ("other", {}, "ask"),
    ],
)
async def test_a_command_is_allowed_where_it_was_shown_and_nowhere_else(
    tmp_path: Path, cwd: str, arguments: dict[str, str], verdict: str
) -> None:
    box, workspace = _box(tmp_path, _Given(replace(_GRANT, folder="sub")))
    (workspace / "sub").mkdir()
    scope = Scope("t1", "default", str(workspace / cwd) if cwd else "")
    call = {"command": "ls -la", **arguments}

    plan, proposal = await box.prepare("bash", call, scope), await box.propose("bash", call, scope)

    assert plan.verdict == verdict
    assert proposal == Proposal(
        ("bash(ls -la)",), folder="sub" if verdict == "allow" else cwd if not arguments and cwd else "."
    )
