from pathlib import Path
from typing import Any

import pytest

from graph_agent.ports import PreparedCall, Scope
from tests.fakes.toolbox_world import World, call_of


async def test_a_read_inside_is_allowed_and_needs_no_preview(tmp_path: Path) -> None:
    world = World(tmp_path)

    plan = await world.plan(" Read\n", path="a.txt", offset="2")

    assert plan == PreparedCall(
        tool_name="read_file",
        arguments={"file_path": "a.txt", "offset": 2},
        verdict="allow",
        reason="read_file has low risk.",
        rule="risk low",
        risk="low",
        kind="readonly",
        concurrency_safe=True,
        summary="read_file a.txt (offset 2)",
        paths=(str(world.workspace / "a.txt"),),
    )


async def test_a_write_asks_with_its_diff_and_what_the_diff_was_made_from(tmp_path: Path) -> None:
    world = World(tmp_path)

    plan = await world.plan("write_file", file_path="a.txt", content="x\n")

    path = str(world.workspace / "a.txt")
    assert (plan.verdict, plan.risk, plan.kind, plan.concurrency_safe) == ("ask", "medium", "write", False)
    assert plan.preview == {
        "kind": "diff",
        "text": f"--- /dev/null\n+++ {path}\n@@ -0,0 +1 @@\n+x\n",
        "observed": {"path": path, "device": None, "inode": None, "sha256": None},
    }
    assert not (world.workspace / "a.txt").exists()


async def test_a_command_asks_with_how_it_was_understood(tmp_path: Path) -> None:
    world = World(tmp_path)

    plan = await world.plan("bash", command="make\nmake test")

    assert (plan.verdict, plan.risk, plan.kind, plan.summary) == ("ask", "high", "execute", "$ make (+1 lines)")
    assert plan.preview == {
        "kind": "text",
        "text": f"runs    make\nruns    make test\nin      {world.workspace}",
        "observed": {"folder": str(world.workspace)},
    }


@pytest.mark.parametrize(
    ("tool", "arguments", "reason"),
    [
        ("search_files", {"query": "x"}, "There is no tool 'search_files'. Did you mean grep or glob?"),
        ("read_file", {"file_path": "a", "offset": "two"}, 'offset: got "two" (string), expected integer'),
        ("read_file", {"file_path": "a\0b"}, "NUL"),
        ("bash", {"command": " "}, "command: it is empty"),
        ("write_file", {"file_path": ".", "content": ""}, "'.' is a folder"),
    ],
)
async def test_a_call_that_cannot_work_is_unusable_and_says_what_to_do(
    tmp_path: Path, tool: str, arguments: dict[str, Any], reason: str
) -> None:
    plan = await World(tmp_path).plan(tool, **arguments)

    assert (plan.verdict, plan.preview) == ("unusable", None)
    assert reason in plan.reason


async def test_the_agents_own_files_are_denied_in_every_mode(tmp_path: Path) -> None:
    world = World(tmp_path)
    (world.workspace / "link").symlink_to(tmp_path / "agent")

    plan = await world.plan("write_file", "bypassPermissions", file_path="link/config.toml", content="x")

    assert (plan.verdict, plan.rule, plan.preview) == ("deny", "agent's own files", None)


async def test_a_read_through_a_link_to_outside_asks_and_names_both(tmp_path: Path) -> None:
    world = World(tmp_path)
    (tmp_path / "secret").write_text("s")
    (world.workspace / "notes").symlink_to(tmp_path / "secret")

    plan = await world.plan("read_file", file_path="notes")

    assert plan.verdict == "ask"
    assert f"notes leads to {tmp_path.resolve() / 'secret'}" in plan.reason


async def test_a_long_preview_is_bounded_and_kept_whole_in_a_blob(tmp_path: Path) -> None:
    world = World(tmp_path)

    plan = await world.plan("write_file", file_path="a", content="0123456789\n" * 5000)

    assert plan.preview is not None
    assert len(plan.preview["text"]) < 21_000
    assert plan.preview["text"].endswith(f"the whole text is {plan.preview['full']}]\n")
    assert len(world.around.blobs.get(plan.preview["full"])) == plan.preview["full_chars"]


@pytest.mark.parametrize(("is_approved", "moves"), [(True, True), (True, False), (False, True)])
async def test_a_command_that_a_person_let_run_in_one_folder_runs_in_no_other(
    tmp_path: Path, is_approved: bool, moves: bool
) -> None:
    world = World(tmp_path)
    (world.workspace / "sub").mkdir()
    plan = await world.plan("bash", command="touch here")
    call = call_of(plan.tool_name, plan.arguments)
    call["preview"] = plan.preview or {}
    if is_approved:
        call["approved_at"] = "2026-01-01T00:00:00Z"
    now = str(world.workspace / "sub") if moves else ""

    outcome = await world.box.run(call, Scope("t1", "default", now))

    made = [path for path in ("here", "sub/here") if (world.workspace / path).exists()]
    if is_approved and moves:
        told = f"approved to run in {world.workspace}, and would run in {now} now, so nothing was done"
        assert (outcome.status, told in (outcome.error or ""), made) == ("error", True, [])
    else:
        assert (outcome.status, made) == ("success", ["sub/here" if moves else "here"])
